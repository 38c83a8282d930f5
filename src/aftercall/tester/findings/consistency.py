"""The agent's words against the calendar, its earlier words, and what the caller asked for."""

import re
from collections.abc import Iterator
from datetime import date

from aftercall.tester.finding import CallView, Finding
from aftercall.tester.phrases import content_words, find_any

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DATED = re.compile(
    rf"\b({'|'.join(_DAYS)}),? (?:the )?({'|'.join(_MONTHS)}) (\d{{1,2}})"
    r"(?:st|nd|rd|th)?(?:,? (\d{4}))?",
    re.IGNORECASE,
)
_DAY = re.compile(rf"\b({'|'.join(_DAYS)})\b", re.IGNORECASE)
_BOOKED = (
    "booked|scheduled|confirmed|all set|see you|you're down|put you down|appointment is",
)
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
_YES = re.compile(r"\W*(?:yes|sure|okay|that works|fine)\b")
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
    yield from _slots(view)


def _weekdays(view: CallView) -> Iterator[Finding]:
    today = view.record.started_at.date()
    for number, span in view.agent_turns():
        for day, month, day_number, year in _DATED.findall(span.text):
            month_number = _MONTHS.index(month.lower()) + 1
            meant = _date(
                month_number, int(day_number), int(year) if year else None, today
            )
            if meant is not None and _DAYS[meant.weekday()] != day.lower():
                true = _DAYS[meant.weekday()].capitalize()
                text = f"{month} {day_number} is a {true}, not a {day.capitalize()}"
                yield view.finding("wrong_weekday", text, number)


def _date(month: int, day: int, year: int | None, today: date) -> date | None:
    """Without a year, the next such day."""
    try:
        if year:
            return date(year, month, day)
        meant = date(today.year, month, day)
        return meant if meant >= today else date(today.year + 1, month, day)
    except ValueError:
        return None


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


def _stems(text: str) -> set[str]:
    words = {word.removesuffix("s") for word in content_words(text)}
    return {_SYNONYMS.get(word, word) for word in words}


def _slots(view: CallView) -> Iterator[Finding]:
    """The day that is confirmed against the day that was asked for last."""
    wanted: tuple[int, str] | None = None
    was_offered = False
    for number, span in enumerate(view.spans, 1):
        days = [day.lower() for day in _DAY.findall(span.text)]
        text = span.text.lower()
        if span.who == "caller":
            if len(set(days)) == 1 and not _OTHER_DAY.search(text):
                wanted = (number, days[0])
            elif was_offered and (
                span.why.startswith("filler:yes") or _YES.match(text)
            ):
                wanted = None
            continue
        is_booked = bool(days) and find_any(_BOOKED, span.text) is not None
        if (
            wanted
            and is_booked
            and wanted[1] not in days
            and not _is_asked(span.text, days[0])
        ):
            booked, asked = days[0].capitalize(), wanted[1].capitalize()
            text = f"confirmed {booked}; the caller had asked for {asked}"
            who = view.blame(wanted[0])
            yield view.finding("slot_changed", text, wanted[0], number, who=who)
            return
        was_offered = bool(days) and span.text.rstrip().endswith("?")


def _is_asked(text: str, day: str) -> bool:
    return "?" in text.split(day)[-1][:40]
