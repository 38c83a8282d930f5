"""Questions asked again after the answer, repeated sentences, refusals, stalling and echoes."""

from itertools import pairwise

from aftercall.tester.claims import promises_answer, says_done
from aftercall.tester.finding import CallView, Finding, Findings
from aftercall.tester.phrases import (
    ANYTHING_ELSE,
    asked_fields,
    content_words,
    find_any,
    likeness,
    plain_text,
    questions_of,
    sentences_of,
    word_set,
    words_of,
)
from aftercall.tester.scenario import Who
from aftercall.tester.slots import HOUR_WORDS, find_slots

MIN_SIMILARITY = 0.86
MIN_REPEATS = 3
_REFUSING = (
    r"/\b(?:i can'?t|i cannot|i'm unable|i am unable|unable to|not able to)\b/",
    r"/\b(?:i'm not allowed|we don'?t)\b/",
)
_STALLING = (
    "one moment|just a moment|let me check|checking|please hold|bear with me",
    "still looking|let me look|one second|hold on",
)
_POLITE = (
    *ANYTHING_ELSE,
    "are you still there|is that correct|is that right",
)


_MORE = ("anything else|something else|what else|anything more|anything further",)
_CLARIFIES = (
    "spell|spelling|spelled|letter by letter|how do you write|last four|once more|one more time",
    (
        r"/\b(?:catch|hear|heard|understand|misheard|repeat|say (?:that|it) again|come again|pardon"
        r"|read (?:that|it) back|double.check|verify|confirm|correct|right\?|make sure|sorry|"
        r"apolog\w+)\b/"
    ),
)
_ANOTHER = (
    "another|other|else|second|alternate|alternative|as well|backup|different|new one",
)
# the name on a card, the number of a pharmacy
_NOT_THEIRS = (
    "card|account|policy|insurance|emergency|contact|pharmacy|same|plan|account holder|on file",
)
# after this the question is open again
_TAKEN = (
    "taken|full|booked|unavailable|not available|closed|gone|nothing free|no openings",
    "unfortunately",
)
_PARTS = (
    "first name|last name|family name|surname|middle name|given name|year|month|zip",
)
_ANSWERS = ("turn:", "stage:", "opening", "answer:", "filler:slot", "filler:usual")
_SCRIPT = ("opening", "turn:", "stage:", "answer:", "filler:reason", "filler:slot")
_OPEN_QUESTION = ("what|which|when|where|who|why|how",)
_PUZZLED = (
    (
        r"/\b(?:didn't|did not|couldn't|could not|don't|do not|can't|cannot) (?:quite )?"
        r"(?:catch|get|hear|understand|follow)\b|\b(?:say|repeat) (?:that|it|yourself)(?: again)?\b"
        r"|\b(?:come again|pardon|what was that|once more|one more time|rephrase)\b/"
    ),
)
_QUESTION_WORDS = word_set("""
    what when where who which why how would like want need know tell give may might shall should
    could today just also okay ok great thanks thank sure any some get got have has does did
    going go let us now help you're i've we've there's that's what's
""")


def find(view: CallView) -> Findings:
    """What is said or asked more often than a caller bears."""
    yield from _answers_alike(view)
    yield from _loops(view)
    yield from _never_understands(view)
    yield from _asks_stage_again(view)
    yield from _says_twice(view)
    yield from _asks_again(view)
    yield from _says_again(view)
    yield from _stalls(view)
    yield from _echoes(view)


def _asks_again(view: CallView) -> Findings:
    """The same thing asked for after the caller gave it; spelling and reading back are neither."""
    answers = view.answers
    ways = {name: item.asked_as for name, item in answers.items()}
    answered: dict[str, int] = {}  # field: the caller's turn that answered it
    asked: list[tuple[str, int, int]] = []  # question, its turn, the answer's turn or 0
    for number, span in enumerate(view.spans, 1):
        if span.who == "caller":
            _note_answers(view, number, answered)
            if span.why.startswith(_ANSWERS):
                asked = [
                    (question, turn, answer or number)
                    for question, turn, answer in asked
                ]
            continue
        for question in questions_of(span.text):
            fields = [name for name in asked_fields(question, ways) if name in answers]
            for name in fields:
                if name in answered and _asks_anew(view, number, name, question):
                    text = f"asked for {name} again after it was answered"
                    turns = (answered[name], number)
                    yield view.finding("asks_again", text, *turns, detail=name)
            if not fields:
                yield from _repeated_question(view, question, number, asked)
                asked.append((question, number, 0))


def _note_answers(view: CallView, number: int, answered: dict[str, int]) -> None:
    words = set(words_of(view.text_of(number)))
    for name, item in view.answers.items():
        if set(words_of(item.answer)) <= words and view.was_heard(view.span(number)):
            answered[name] = number


def _asks_anew(view: CallView, number: int, name: str, question: str) -> bool:
    """Not if the agent reads the answer back, has it spelled, or asks for one part of it."""
    answer = view.answers[name].answer
    turn = view.text_of(number)
    if _reads_back(turn, answer) or find_any(_CLARIFIES, turn):
        return False
    part = find_any(_PARTS, question)
    earlier = (span.text for at, span in view.agent_turns() if at < number)
    if part and not any(find_any((part,), text) for text in earlier):
        return False
    return find_any((*_ANOTHER, *_NOT_THEIRS), question) is None


def _reads_back(text: str, answer: str) -> bool:
    """A turn that holds most of the answer asks for a yes."""
    known = set(content_words(answer))
    return bool(known) and len(known & set(content_words(text))) >= min(2, len(known))


def _repeated_question(
    view: CallView, question: str, number: int, asked: list[tuple[str, int, int]]
) -> Findings:
    """Judged on what is asked for: the words that are not those of every question."""
    matter = _matter(question)
    if find_any((*_POLITE, *_ANOTHER), question) or len(matter) < 2:
        return
    if find_any((*_CLARIFIES, *_TAKEN), view.text_of(number)):
        return
    for earlier, turn, answer in asked:
        same = set(matter) == set(_matter(earlier))
        if not (turn < number and answer and same):
            continue
        if find_slots(earlier, view.today) != find_slots(question, view.today):
            continue
        text = "asked the same question again after it was answered"
        detail = " ".join(matter[:6])
        turns, who = (turn, answer, number), view.blame(answer)
        yield view.finding("asks_again", text, *turns, who=who, detail=detail)
        return


def _matter(question: str) -> list[str]:
    """The words of a question that say what it asks for."""
    return [word for word in content_words(question) if word not in _QUESTION_WORDS]


def _answers_alike(view: CallView) -> Findings:
    """Gives one answer to different things: it does not listen."""
    pairs = [
        (heard.text, item.agent[0])
        for item in view.exchanges
        if item.agent
        and not (heard := view.span(item.caller)).is_planned_overlap
        and heard.why != "goodbye"
    ]
    if len(pairs) < MIN_REPEATS or len({heard for heard, _ in pairs}) < MIN_REPEATS:
        return
    answers = [view.text_of(turn) for _, turn in pairs]
    first = " ".join(words_of(answers[0]))
    if first and all(" ".join(words_of(text)) == first for text in answers):
        turns = [turn for _, turn in pairs]
        text = f"gave the same answer {len(pairs)} times, whatever the caller said"
        yield view.finding("answers_alike", text, *turns[:4])


def _loops(view: CallView) -> Findings:
    """Says one turn again and again while the caller goes on with the script."""
    turns: dict[str, list[int]] = {}
    for number, span in view.agent_turns():
        before = view.spans[number - 2].why if number > 1 else ""
        said = " ".join(words_of(span.text))
        is_in_script = number == 1 or before.startswith(_SCRIPT)
        if len(said.split()) < 4 or not is_in_script or find_any(_MORE, said):
            continue
        turns.setdefault(said, []).append(number)
    for found in turns.values():
        if len(found) >= MIN_REPEATS:
            text = f"came back to the same words {len(found)} times"
            yield view.finding("loops", text, *found, who=_blame_between(view, found))
            return


def _never_understands(view: CallView) -> Findings:
    """Asks again and again to hear it once more."""
    turns = [
        number
        for number, span in view.agent_turns()
        if number > 1
        and view.spans[number - 2].why.startswith(_SCRIPT)
        and find_any(_PUZZLED, span.text)
    ]
    if len(turns) >= MIN_REPEATS:
        text = f"did not understand the caller {len(turns)} times"
        who = _blame_between(view, turns)
        yield view.finding("loops", text, *turns, who=who, detail="not understood")


def _asks_stage_again(view: CallView) -> Findings:
    """Asks in other words for what a stage of the script has answered.

    Of several times the first counts that no gap in the script can excuse.
    """
    said: dict[str, int] = {}
    found: list[Finding] = []
    for number, span in view.caller_turns():
        if not span.why.startswith("stage:") or span.text.lower().startswith("yes"):
            continue
        before = said.get(span.why)
        asked = view.spans[number - 2] if number > 1 else span
        if asked.who == "agent" and asked_fields(asked.text):
            continue  # beside the question: the agent may not have taken it in
        said[span.why] = number
        if before is None or find_any((*_CLARIFIES, *_TAKEN), asked.text):
            continue
        question = " ".join(questions_of(asked.text)) if asked.who == "agent" else ""
        if find_any(_OPEN_QUESTION, question):
            text = "asked again for what the caller had answered"
            turns = (before, number - 1)
            found.append(view.finding("asks_again", text, *turns, detail=span.why))
            if all(item.why != "gap" for item in view.spans[before : number - 1]):
                break
    yield from found[-1:]


def _says_twice(view: CallView) -> Findings:
    """A sentence twice in a row in one turn, or one turn after the other without a reason."""
    before, said_before, short_ones = 0, "", 0
    for number, span in view.agent_turns():
        sentences = [" ".join(words_of(part)) for part in sentences_of(span.text)]
        doubled = [one for one, other in pairwise(sentences) if one == other]
        short_ones += len(doubled)
        half = sentences[: len(sentences) // 2]
        is_all = len(half) > 1 and half + half == sentences
        is_long = any(len(one.split()) >= 3 for one in doubled)
        if is_all or is_long or (doubled and short_ones >= MIN_REPEATS):
            text = (
                "everything of a turn twice" if is_all else "a sentence twice in a row"
            )
            yield view.finding("says_twice", f"said {text}", number, detail="in a turn")
            return
        whole = " ".join(sentences)
        is_next = before == number - 1 and not find_any(_POLITE, span.text)
        if is_next and whole == said_before and len(whole.split()) >= 4:
            text = "said the same twice without hearing anything in between"
            yield view.finding("says_twice", text, before, number, detail="turns")
            return
        before, said_before = number, whole


def _says_again(view: CallView) -> Findings:
    """The same sentence several times; a refusal that leads nowhere is worse."""
    for sentence, turns in _group_sentences(view):
        if len(turns) < MIN_REPEATS:
            continue
        kind, text = "says_again", f"said the same sentence {len(turns)} times"
        plain = plain_text(sentence)
        has_way_out = promises_answer(plain) or says_done("take", plain)
        if find_any(_REFUSING, sentence) and not has_way_out:
            kind, text = "refusal_loop", f"refused the same way {len(turns)} times"
        yield view.finding(kind, text, *turns, who=_blame_between(view, turns))


def _group_sentences(view: CallView) -> list[tuple[str, list[int]]]:
    """Sentences that are about the same, and the turns that have them."""
    groups: list[tuple[str, list[int]]] = []
    for number, sentence in view.statements:
        is_short = len(words_of(sentence)) < 4
        if is_short or find_any((*_POLITE, *_STALLING), sentence):
            continue
        for known, turns in groups:
            if likeness(known, sentence) >= MIN_SIMILARITY:
                turns.append(number)
                break
        else:
            groups.append((sentence, [number]))
    return groups


def _blame_between(view: CallView, turns: list[int]) -> Who:
    between = [
        number for number, _ in view.caller_turns() if turns[0] < number < turns[-1]
    ]
    return view.blame(*between[:4])


def _stalls(view: CallView) -> Findings:
    """Turns in a row that only say that it is checking."""
    run: list[int] = []
    for number, span in [*view.agent_turns(), (0, None)]:
        said = span.text if span is not None else ""
        if run and find_any(("still there|are you there",), said):
            continue
        if find_any(_STALLING, said) and len(words_of(said)) <= 14:
            run.append(number)
            continue
        if len(run) >= MIN_REPEATS:
            text = f"{len(run)} turns of checking without an outcome"
            yield view.finding("stalls", text, *run)
        run = []


def _echoes(view: CallView) -> Findings:
    """Answers that only say the words of the caller back."""
    echoed: list[int] = []
    said = 0
    for exchange in view.exchanges:
        span = view.span(exchange.caller)
        caller = words_of(span.text)
        # to say an answer or a number back is to confirm it
        confirms = span.why.startswith("answer:") or all(
            word.isdigit() or word in HOUR_WORDS or len(word) == 1 for word in caller
        )
        if len(caller) < 3 or not exchange.agent or confirms:
            continue
        said += 1
        answer = words_of(view.text_of(exchange.agent[0]))
        if (
            answer
            and len(set(caller) & set(answer)) / len(set(caller) | set(answer)) > 0.8
        ):
            echoed += [exchange.caller, exchange.agent[0]]
    if len(echoed) >= 4 or (echoed and said == 1):
        yield view.finding(
            "echoes", "the agent says the caller's own words back", *echoed
        )
