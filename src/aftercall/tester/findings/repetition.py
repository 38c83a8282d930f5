"""Questions asked again after the answer, repeated sentences, refusals, stalling and echoes."""

from collections.abc import Iterator

from aftercall.tester.finding import CallView, Finding
from aftercall.tester.phrases import (
    asked_fields,
    content_words,
    find_any,
    is_question,
    likeness,
    questions_of,
    sentences_of,
    words_of,
)
from aftercall.tester.scenario import Who

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
    "anything else|something else|what else|how can i help|how may i help|what can i do",
    "are you still there|is that correct|is that right",
)


def find(view: CallView) -> Iterator[Finding]:
    yield from _asks_again(view)
    yield from _says_again(view)
    yield from _stalls(view)
    yield from _echoes(view)


def _asks_again(view: CallView) -> Iterator[Finding]:
    answers = view.plan.caller_context.verification.answers
    ways = {name: item.asked_as for name, item in answers.items()}
    answered: dict[str, int] = {}  # field: the caller's turn that answered it
    asked: list[tuple[str, int, int]] = []  # question, its turn, the answer's turn or 0
    for number, span in enumerate(view.spans, 1):
        if span.who == "caller":
            words = set(words_of(span.text))
            for name, item in answers.items():
                if set(words_of(item.answer)) <= words:
                    answered[name] = number
            if span.why.startswith(("turn:", "stage:", "opening")):
                asked = [
                    (question, turn, answer or number)
                    for question, turn, answer in asked
                ]
            continue
        for question in questions_of(span.text):
            fields = [name for name in asked_fields(question, ways) if name in answers]
            for name in fields:
                if name in answered and not _reads_back(question, answers[name].answer):
                    text = f"asked for {name} again after it was answered"
                    turns, who = (answered[name], number), view.blame(answered[name])
                    yield view.finding("asks_again", text, *turns, who=who, detail=name)
            if not fields:
                yield from _repeated_question(view, question, number, asked)
                asked.append((question, number, 0))


def _reads_back(question: str, answer: str) -> bool:
    """A question that holds the answer asks for a yes."""
    known = set(content_words(answer))
    return bool(known) and len(known & set(content_words(question))) >= min(
        2, len(known)
    )


def _repeated_question(
    view: CallView, question: str, number: int, asked: list[tuple[str, int, int]]
) -> Iterator[Finding]:
    if find_any(_POLITE, question) or len(words_of(question)) < 3:
        return
    for earlier, turn, answer in asked:
        if turn < number and answer and likeness(earlier, question) >= MIN_SIMILARITY:
            text = "asked the same question again after it was answered"
            detail = " ".join(content_words(question)[:6])
            turns, who = (turn, answer, number), view.blame(answer)
            yield view.finding("asks_again", text, *turns, who=who, detail=detail)
            return


def _says_again(view: CallView) -> Iterator[Finding]:
    for sentence, turns in _group_sentences(view):
        if len(turns) < MIN_REPEATS:
            continue
        kind, text = "says_again", f"said the same sentence {len(turns)} times"
        if find_any(_REFUSING, sentence):
            kind, text = "refusal_loop", f"refused the same way {len(turns)} times"
        yield view.finding(kind, text, *turns, who=_blame_between(view, turns))


def _group_sentences(view: CallView) -> list[tuple[str, list[int]]]:
    """Sentences that are about the same, and the turns that have them."""
    groups: list[tuple[str, list[int]]] = []
    for number, span in view.agent_turns():
        for sentence in sentences_of(span.text):
            if is_question(sentence) or len(words_of(sentence)) < 4:
                continue
            if find_any((*_POLITE, *_STALLING), sentence):
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


def _stalls(view: CallView) -> Iterator[Finding]:
    run: list[int] = []
    for number, span in [*view.agent_turns(), (0, None)]:
        if (
            span is not None
            and run
            and find_any(("still there|are you there",), span.text)
        ):
            continue
        if (
            span is not None
            and find_any(_STALLING, span.text)
            and len(words_of(span.text)) <= 14
        ):
            run.append(number)
            continue
        if len(run) >= MIN_REPEATS:
            text = f"{len(run)} turns of checking without an outcome"
            yield view.finding("stalls", text, *run)
        run = []


def _echoes(view: CallView) -> Iterator[Finding]:
    echoed: list[int] = []
    said = 0
    for exchange in view.exchanges:
        caller = words_of(view.spans[exchange.caller - 1].text)
        if len(caller) < 3 or not exchange.agent:
            continue
        said += 1
        answer = words_of(view.spans[exchange.agent[0] - 1].text)
        if (
            answer
            and len(set(caller) & set(answer)) / len(set(caller) | set(answer)) > 0.8
        ):
            echoed += [exchange.caller, exchange.agent[0]]
    if len(echoed) >= 4 or (echoed and said == 1):
        yield view.finding(
            "echoes", "the agent says the caller's own words back", *echoed
        )
