"""Weighs what the agent said about a criterion: yes, no, or it cannot be told.

An agent that only says yes names no detail: then the caller asks an open question, which a yes
does not answer. What the words leave open stays open.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from aftercall.tester.claims import (
    HOLLOW,
    guess_deed,
    is_denial,
    is_hollow,
    is_negated,
    is_polite,
    is_refusal,
    names_detail,
    names_other_slot,
    promises_answer,
    says_done,
    states_all,
)
from aftercall.tester.criterion import Criterion, Deed
from aftercall.tester.finding import CallView
from aftercall.tester.phrases import (
    asked_fields,
    find_any,
    is_question,
    likeness,
    plain_text,
    sentences_of,
    words_of,
)
from aftercall.tester.slots import find_slots

State = Literal["met", "missed", "unknown"]
MAX_ECHO = 0.8
_ASSENT = re.compile(
    r"\W*(?:yes|yeah|yep|sure|of course|absolutely|certainly|okay|ok|definitely|no problem"
    r"|right|indeed|totally)\b"
)
_TAG = re.compile(r",? (?:ok|okay|alright|all right|right|yes|yeah|cool|great)\?$")


@dataclass(frozen=True)
class Weighed:
    """The matcher's answer, with the turns it rests on."""

    state: State
    reason: str
    turns: tuple[int, ...] = ()
    quote: str = ""


@dataclass(frozen=True)
class AgentSentence:
    turn: int
    text: str
    is_question: bool
    is_echo: bool

    @property
    def is_statement(self) -> bool:
        return not self.is_question and not self.is_echo


def agent_sentences(view: CallView) -> Iterator[AgentSentence]:
    """In order; a sentence that repeats the caller's words is an echo."""
    heard = ""
    for number, span in enumerate(view.spans, 1):
        if span.who == "caller":
            heard = span.text
            continue
        for sentence in sentences_of(span.text):
            plain = plain_text(sentence)
            asks = is_question(sentence) and not _TAG.search(plain)
            echo = _is_echo(sentence, heard)
            yield AgentSentence(number, plain, asks, echo)


def _is_echo(sentence: str, heard: str) -> bool:
    parts = [heard, *sentences_of(heard)]
    return any(len(words_of(part)) > 2 and _same(sentence, part) for part in parts)


def _same(one: str, other: str) -> bool:
    first, second = set(words_of(one)), set(words_of(other))
    return likeness(one, other) > MAX_ECHO and len(first & second) > MAX_ECHO * len(
        first | second
    )


def weigh_criterion(view: CallView, criterion: Criterion) -> Weighed:
    """What one call shows about a criterion of words."""
    if criterion.not_said:
        if found := view.find_said(criterion.not_said):
            return Weighed("missed", "was said", (found[0],), found[1])
        return Weighed("met", "was never said")
    if criterion.said:
        return _weigh_said(view, criterion)
    return weigh(view, criterion)


def _weigh_said(view: CallView, criterion: Criterion) -> Weighed:
    """The words, or other words for the same deed; the caller's words said back are no evidence."""
    sentences = list(agent_sentences(view))
    for item in sentences:
        if not item.is_echo and names_detail(criterion.said, item.text, view.today):
            return Weighed("met", "was said", (item.turn,), item.text)
    deed = guess_deed(criterion.said)
    if deed is None:
        turns = _last_turns(sentences)
        return Weighed("missed", "was never said", turns)
    found = weigh(view, Criterion(judged="the deed", deed=deed))
    if found.state == "met" and not _is_engaged(view, sentences):
        return Weighed("missed", "said that it is done, but never what", found.turns)
    return found


def says(view: CallView, pattern: str, heard: str) -> bool:
    """Whether these words say what the pattern asks for, also in other words for a deed."""
    if names_detail((pattern,), heard, view.today):
        return True
    deed = guess_deed((pattern,))
    return deed is not None and any(
        says_done(deed, plain_text(sentence))
        for sentence in sentences_of(heard)
        if not is_question(sentence)
    )


def weigh(view: CallView, criterion: Criterion) -> Weighed:
    """What one call shows about a criterion with a deed."""
    deed = criterion.deed or "answer"
    sentences = _sentences_about(view, deed)
    detailed = _detailed(view, criterion, sentences)
    if deed == "answer":
        weighed = _weigh_answer(view, sentences, detailed)
        is_open = weighed.state == "unknown"
        return (_weigh_checks(view, criterion) if is_open else None) or weighed
    statements = [item for item in sentences if item.is_statement]
    decided = _weigh_deed(view, criterion, deed, statements, detailed)
    decided = decided or _weigh_checks(view, criterion)
    says_so = any(
        says_done(deed, item.text) and not is_about_another(view, criterion, item.text)
        for item in statements
    )
    return decided or _weigh_rest(view, sentences, says_so)


def is_about_another(view: CallView, criterion: Criterion, text: str) -> bool:
    """Whether a sentence names details of another wish of the caller, and none of this one."""
    others = (item for item in view.scenario.success if item is not criterion)
    return not names_detail(criterion.details, text, view.today) and any(
        names_detail(item.details, text, view.today) for item in others
    )


def _weigh_checks(view: CallView, criterion: Criterion) -> Weighed | None:
    """Missed if the caller asked openly, and the agent answered something else."""
    checks = [
        item.agent[0]
        for item in view.exchanges
        if item.agent and criterion.ask and _asks(view, item.caller, criterion.ask)
    ]
    told = [item for item in agent_sentences(view) if item.turn in checks]
    if any(names_detail(criterion.details, item.text, view.today) for item in told):
        return None
    other = [item for item in told if item.is_statement and _names_something(item.text)]
    if not other or any(promises_answer(item.text) for item in told):
        return None
    reason = "asked for it openly, it said something else"
    return Weighed("missed", reason, (other[0].turn,), other[0].text)


def _names_something(text: str) -> bool:
    """More than a courtesy or a word of joy, and not a goodbye."""
    has_words = len(set(words_of(text))) > 1 and not is_hollow(text)
    return has_words and not says_done("part", text)


def _asks(view: CallView, turn: int, question: str) -> bool:
    span = view.span(turn)
    return span.why == "check" and span.text.endswith(question)


def _weigh_deed(
    view: CallView,
    criterion: Criterion,
    deed: Deed,
    statements: list[AgentSentence],
    detailed: list[AgentSentence],
) -> Weighed | None:
    """What the agent's statements decide; None if they leave it open."""
    done = [item for item in statements if says_done(deed, item.text)]
    refused = [item for item in statements if is_refusal(item.text)]
    if done and (detailed or not criterion.details):
        shown = (detailed or done)[-1]
        turns = tuple(sorted({done[-1].turn, shown.turn}))
        return Weighed("met", "said so, and named it", turns, shown.text)
    named = _answers_check(view, detailed) or _stated(view, criterion, statements)
    # a refusal before it was of something else
    is_last = bool(refused) and (named is None or refused[-1].turn >= named.turn)
    if is_last and not done:
        return Weighed("missed", "the agent refused", (refused[-1].turn,))
    if other := _named_otherwise(view, criterion, done):
        return Weighed("missed", "named another day or time", (other.turn,), other.text)
    if named is not None and not is_last:
        return Weighed("met", "named it", (named.turn,), named.text)
    return None


def _named_otherwise(
    view: CallView, criterion: Criterion, done: list[AgentSentence]
) -> AgentSentence | None:
    """The last word on the day and time, if it is not the wanted one."""
    about = [item for item in done if find_slots(item.text, view.today)]
    last = about[-1] if about else None
    if last is None or not names_other_slot(criterion.details, last.text, view.today):
        return None
    return last


def _sentences_about(view: CallView, deed: Deed) -> list[AgentSentence]:
    """A goodbye counts in the answer to the script's last turn only."""
    sentences = list(agent_sentences(view))
    if deed != "part":
        return sentences
    return [item for item in sentences if item.turn in _last_answers(view)]


def _detailed(
    view: CallView, criterion: Criterion, sentences: list[AgentSentence]
) -> list[AgentSentence]:
    return [
        item
        for item in sentences
        if not item.is_echo and names_detail(criterion.details, item.text, view.today)
    ]


def _stated(
    view: CallView, criterion: Criterion, sentences: list[AgentSentence]
) -> AgentSentence | None:
    """A statement with every detail; not what the agent only heard, or would need.

    What it said before the caller's last answer was on the way to it.
    """
    given = [
        number
        for number, span in view.caller_turns()
        if span.why.startswith(("answer:", "opening", "turn:", "stage:"))
    ]
    found = (
        item
        for item in sentences
        if item.turn > max(given, default=0)
        and states_all(criterion.details, item.text, view.today)
    )
    return next(found, None)


def _last_answers(view: CallView) -> tuple[int, ...]:
    """The agent's answers to the last turn of the script."""
    answers = [
        exchange.agent
        for exchange in view.exchanges
        if view.span(exchange.caller).why.startswith("turn:")
    ]
    return answers[-1] if answers else ()


def _weigh_rest(
    view: CallView, sentences: list[AgentSentence], says_so: bool
) -> Weighed:
    """No detail was named. Silence about it is a no; words that might mean it are open."""
    turns = _last_turns(sentences)
    is_engaged = _is_engaged(view, sentences)
    if not is_engaged and not says_so:
        reason = "never came to it: no question, no detail, no result"
        return Weighed("missed", reason, turns)
    if not is_engaged and _says_yes_to_all(view):
        reason = "said that it is done, but never what; asked, it said yes"
        return Weighed("missed", reason, turns)
    if says_so:
        reason = "said that it is done, but never named what; a probe could tell"
        return Weighed("unknown", reason, turns)
    first = view.first_caller_turn
    names = _caller_names(view)
    statements = [item for item in sentences if item.is_statement and item.turn > first]
    if all(is_hollow(item.text, names) for item in statements):
        return Weighed("missed", "never said that it is done", turns)
    return Weighed("unknown", "the agent's words do not tell; a probe could", turns)


def _weigh_answer(
    view: CallView, sentences: list[AgentSentence], detailed: list[AgentSentence]
) -> Weighed:
    """Whether the agent told what was asked: said it, promised to find out, or neither."""
    told = [item for item in detailed if item.is_statement]
    if told:
        return Weighed("met", "told the caller", (told[0].turn,), told[0].text)
    promised = [
        item for item in sentences if item.is_statement and promises_answer(item.text)
    ]
    turns = _last_turns(sentences)
    if promised:
        quote = promised[0].text
        return Weighed("met", "promised an answer", (promised[0].turn,), quote)
    statements = [item for item in sentences if item.is_statement and item.turn > 1]
    if all(_says_nothing(item.text) for item in statements):
        return Weighed("missed", "never answered", turns)
    if not _is_engaged(view, sentences) and not _has_substance(statements):
        return Weighed("missed", "never answered", turns)
    return Weighed("unknown", "the agent's words do not tell; a probe could", turns)


def _last_turns(sentences: list[AgentSentence]) -> tuple[int, ...]:
    return tuple(sorted({item.turn for item in sentences}))[-2:]


def _says_nothing(text: str) -> bool:
    return is_hollow(text) or is_refusal(text) or is_denial(text)


def _has_substance(statements: list[AgentSentence]) -> bool:
    """Whether two different sentences say something beyond what is polite."""
    return len({item.text for item in statements if not is_polite(item.text)}) > 1


def _answers_check(
    view: CallView, detailed: list[AgentSentence]
) -> AgentSentence | None:
    """A detail that was named in answer to the caller's open question."""
    asked = [at for at, span in view.caller_turns() if span.why == "check"]
    after = [item for item in detailed if asked and item.turn > asked[0]]
    return next(
        (item for item in after if item.is_statement and not is_negated(item.text)),
        None,
    )


def _says_yes_to_all(view: CallView) -> bool:
    """Answers an open question with a yes, or with what it had said before."""
    answers = [
        (view.span(item.caller).why, view.text_of(item.agent[0]))
        for item in view.exchanges
        if item.agent
    ]
    for place, (why, text) in enumerate(answers):
        earlier = [said for reason, said in answers[:place] if reason != "check"]
        if why == "check" and (_ASSENT.match(text.lower()) or text in earlier):
            return True
    return False


def _is_engaged(view: CallView, sentences: list[AgentSentence]) -> bool:
    """Whether the agent took up anything of this caller's: asked for it, or named it."""
    context = view.caller_context
    own = [item.text for item in sentences if not item.is_echo]
    if any(asked_fields(text) or find_any((_ASKS_SLOT,), text) for text in own):
        return True
    script = " ".join(
        span.text
        for span in view.record.caller_spans
        if span.why.startswith(("opening", "turn:", "stage:", "answer:"))
    )
    given = " ".join(item.answer for item in context.verification.answers.values())
    known = set(words_of(f"{script} {given}")) - HOLLOW
    return any(known & set(words_of(text)) for text in own)


_ASKS_SLOT = (
    r"/\b(?:which|what) (?:day|time|date)|when would|how (?:do you|is that) spell/"
)


def _caller_names(view: CallView) -> frozenset[str]:
    known = view.answers.get("name")
    return frozenset(words_of(known.answer)) if known else frozenset()
