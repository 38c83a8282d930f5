"""The agent's words against the calendar, its earlier words, and what the caller asked for."""

import re
from collections.abc import Iterator
from datetime import date

from aftercall.tester.claims import says_done
from aftercall.tester.criterion import Deed
from aftercall.tester.finding import CallView, Finding
from aftercall.tester.phrases import (
    content_words,
    is_question,
    likeness,
    questions_of,
    sentences_of,
)
from aftercall.tester.record import Span
from aftercall.tester.slots import DAYS, MONTHS, Slots, find_dated_days, find_slots

_DENIED = re.compile(
    r"\b(?:no|don't (?:have|see) (?:any|a)?|there (?:is|are) no|have no|couldn't find (?:any"
    r"|a)?)\s+"
    r"([a-z][a-z ]{3,40}?) (?:on file|on record|in (?:the|our) system|listed|for you)\b"
)
_DONE = re.compile(
    r"\b(?:sending|sent|refilled|refilling|cancell?ed|rescheduled|moved|updated|processed"
    r"|submitted)\b(.{3,60})"
)
_OTHER_DAY = re.compile(r"\b(?:not|can't|cannot|instead of|rather than|from)\b")
_YES = re.compile(r"\W*(?:yes|sure|okay|that works|fine|the first one)\b")
_DEEDS: tuple[Deed, ...] = ("book", "move")
_ASIDE = re.compile(
    r"\b(?:open|opening|hours|closed|close|was|were|from|instead of|old|previous|earlier"
    r"|cancel\w*|reminder|remind|call you|before|until|arrive|by|between|taken|full|available)\b"
)
_ASKS_SLOT = re.compile(r"\b(?:day|time|when|date)\b", re.IGNORECASE)
_HOURS = re.compile(r"\b(?:open|close|hours|closing)\b")
_PRICE = re.compile(r"(?:[$€£] ?\d[\d.,]*|\b\d[\d.,]* (?:dollars|euros|pounds)\b)")
_NOT = re.compile(
    r"\b(?:do not|does not|don't|doesn't|not|no|never|cannot|can't|isn't|aren't)\b"
)
_TODAY = re.compile(r"\btoday\b", re.IGNORECASE)  # mostly a courtesy
_PARTS = re.compile(r"[,;.!?]| but ")
_TAKEN = re.compile(
    r"\b(?:taken|full|fully booked|booked up|booked solid|unavailable|not|no|gone|closed|can't)\b"
)
_ACCEPTS = ("filler:yes", "filler:choice")
_BIRTH = re.compile(r"\b(?:birth|born)\b")
_SYNONYMS = {
    "medication": "drug",
    "prescription": "drug",
    "refill": "drug",
    "appointment": "visit",
    "booking": "visit",
}


def find(view: CallView) -> Iterator[Finding]:
    yield from _weekdays(view)
    yield from _contradictions(view)
    yield from _turned_facts(view)
    yield from _slots(view)


def _weekdays(view: CallView) -> Iterator[Finding]:
    today = view.record.started_at.date()
    for number, span in view.agent_turns():
        for day, meant in find_dated_days(span.text, today):
            true = DAYS[meant.weekday()]
            if true != day:
                said = f"{MONTHS[meant.month - 1].capitalize()} {meant.day}"
                text = f"{said} is a {true.capitalize()}, not a {day.capitalize()}"
                yield view.finding("wrong_weekday", text, number)


def _contradictions(view: CallView) -> Iterator[Finding]:
    denied: list[tuple[int, set[str]]] = []
    for number, span in view.agent_turns():
        text = span.text.lower().replace("’", "'")
        for rest in _DONE.findall(text):
            for turn, things in denied:
                if things & _stems(rest):
                    text = "does what it said there is nothing for"
                    yield view.finding("contradiction", text, turn, number)
                    return
        denied += [(number, _stems(thing)) for thing in _DENIED.findall(text)]


def _turned_facts(view: CallView) -> Iterator[Finding]:
    """Two statements about one thing that cannot both be true."""
    today = view.record.started_at.date()
    told: list[tuple[int, str]] = []
    for number, span in view.agent_turns():
        for sentence in sentences_of(span.text):
            if is_question(sentence):
                continue
            for turn, earlier in told:
                if turn < number and (what := _clash(earlier, sentence, today)):
                    text = f"contradicts itself about {what}"
                    yield view.finding("contradiction", text, turn, number, detail=what)
                    return
            told.append((number, sentence))


def _clash(one: str, other: str, today: date) -> str:
    """What the two sentences disagree about; empty if both may be true."""
    first, second = one.lower().replace("’", "'"), other.lower().replace("’", "'")
    if _HOURS.search(first) and _HOURS.search(second):
        before, after = find_slots(first, today), find_slots(second, today)
        same_days = before.days == after.days or not before.days or not after.days
        both = before.times and after.times
        if both and same_days and not before.times & after.times:
            return "the opening hours"
    if _has_other_price(first, second):
        return "the price"
    if bool(_NOT.search(first)) == bool(_NOT.search(second)):
        return ""
    stripped = _NOT.sub(" ", first), _NOT.sub(" ", second)
    words = set(content_words(stripped[0])), set(content_words(stripped[1]))
    if len(words[0] & words[1]) >= 3 and likeness(*stripped) >= 0.8:
        return "whether it is so"
    return ""


def _has_other_price(one: str, other: str) -> bool:
    first, second = set(_PRICE.findall(one)), set(_PRICE.findall(other))
    if not first or not second or first & second:
        return False
    words = set(content_words(_PRICE.sub("", one)))
    others = set(content_words(_PRICE.sub("", other)))
    return len(words & others) >= 0.6 * max(1, len(words | others))


def _stems(text: str) -> set[str]:
    words = {word.removesuffix("s") for word in content_words(text)}
    return {_SYNONYMS.get(word, word) for word in words}


def _slots(view: CallView) -> Iterator[Finding]:
    """The day and time that the agent confirms against those that were agreed on last."""
    today = view.record.started_at.date()
    agreed, said_at = Slots(frozenset(), frozenset()), 0
    offered = agreed
    was_checked = False  # asked which day and time the agent has
    for number, span in enumerate(view.spans, 1):
        if span.who == "caller":
            agreed, changed = _agree(span, agreed, offered, today)
            said_at = number if changed else said_at
            was_checked = (
                span.why == "check" and _ASKS_SLOT.search(span.text) is not None
            )
            continue
        for sentence in sentences_of(span.text):
            confirmed = _confirmed(sentence, today, is_answer=was_checked)
            other = _differs(agreed, confirmed)
            if said_at and other:
                text = f"confirmed {other}; the caller had agreed to {_speak(agreed)}"
                detail = "day" if confirmed.days - agreed.days else "time"
                turns = (said_at, number)
                yield view.finding("slot_changed", text, *turns, detail=detail)
                return
        offered = _offered(span.text, today)


def _agree(
    span: Span, agreed: Slots, offered: Slots, today: date
) -> tuple[Slots, bool]:
    """What is agreed on after the caller's turn, and whether the turn changed it."""
    plain = span.text.lower()
    own = find_slots(_TODAY.sub(" ", span.text), today)
    if _BIRTH.search(plain) or span.why.startswith(("answer:", "gap", "check")):
        return agreed, False
    if own and not _OTHER_DAY.search(plain):
        return _take_over(own, agreed), True
    if offered and (span.why.startswith(_ACCEPTS) or _YES.match(plain)):
        taken = _take_over(offered, agreed)
        return taken, taken != agreed
    return agreed, False


def _take_over(new: Slots, agreed: Slots) -> Slots:
    """With several days or times it is open which one is agreed on."""
    if len(new.days) > 1 or len(new.times) > 1:
        return Slots(frozenset(), frozenset())
    return Slots(new.days or agreed.days, new.times or agreed.times)


def _offered(text: str, today: date) -> Slots:
    """The day and time that a yes would agree to: what is asked, or what is said to be free."""
    asked = find_slots(" ".join(questions_of(text)), today)
    if asked:
        return asked
    free = [part for part in _PARTS.split(text) if not _TAKEN.search(part.lower())]
    return find_slots(" . ".join(free), today)


def _confirmed(sentence: str, today: date, *, is_answer: bool) -> Slots:
    """The day and time of a sentence that says that something is booked, or answers for when."""
    plain = sentence.lower().replace("’", "'")
    is_done = is_answer or any(says_done(deed, plain) for deed in _DEEDS)
    if is_question(sentence) or not is_done or _ASIDE.search(plain):
        return Slots(frozenset(), frozenset())
    return find_slots(_TODAY.sub(" ", sentence), today)


def _differs(agreed: Slots, confirmed: Slots) -> str:
    if agreed.days and confirmed.days and not agreed.days & confirmed.days:
        return _speak(confirmed)
    if agreed.times and confirmed.times and not agreed.times & confirmed.times:
        return _speak(confirmed)
    return ""


def _speak(slots: Slots) -> str:
    days = [DAYS[day].capitalize() for day in sorted(slots.days)]
    return " at ".join([*days[:1], *sorted(slots.times)[:1]]) or "nothing"
