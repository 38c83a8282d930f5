"""What the agent says against the calendar, against what it said before, and against what the
caller asked for.
"""

import re
from collections.abc import Iterator
from datetime import date

from aftercall.tester.finding import CallView, Finding
from aftercall.tester.phrases import content_words, find_any

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_DATED = re.compile(
    rf"\b({'|'.join(_DAYS)}),? (?:the )?({'|'.join(_MONTHS)}) (\d{{1,2}})(?:st|nd|rd"
    rf"|th)?(?:,? (\d{{4}}))?",
    re.IGNORECASE,
)
_DAY = re.compile(rf"\b({'|'.join(_DAYS)})\b", re.IGNORECASE)
_BOOKED = ("booked|scheduled|confirmed|all set|see you|you're down|put you down|appointment is",)
_DENIED = re.compile(
    r"\b(?:no|don't (?:have|see) (?:any|a)?|there (?:is|are) no|have no|couldn't find (?:any"
    r"|a)?)\s+"
    r"([a-z][a-z ]{3,40}?) (?:on file|on record|in (?:the|our) system|listed|for you)\b"
)
_DONE = re.compile(
    r"\b(?:sending|sent|refilled|refilling|cancell?ed|rescheduled|moved|updated|processed"
    r"|submitted)\b(.{3,60})"
)


def find(view: CallView) -> Iterator[Finding]:
    yield from _weekdays(view)
    yield from _contradictions(view)
    yield from _slots(view)


def _weekdays(view: CallView) -> Iterator[Finding]:
    for number, span in view.agent_turns():
        for day, month, number_of_day, year in _DATED.findall(span.text):
            meant = _date(
                _MONTHS.index(month.lower()) + 1,
                int(number_of_day),
                int(year) if year else None,
                view.record.started_at.date(),
            )
            if meant is not None and _DAYS[meant.weekday()] != day.lower():
                text = (
                    f"{month} {number_of_day} is a {_DAYS[meant.weekday()].capitalize()}, not "
                    f"a {day.capitalize()}"
                )
                yield view.finding("wrong_weekday", "major", "agent", text, number)


def _date(month: int, day: int, year: int | None, today: date) -> date | None:
    """Without a year, the next such day is meant."""
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
                if things & _stems(rest) and turn < number:
                    yield view.finding(
                        "contradiction",
                        "major",
                        "agent",
                        "does what it said there is nothing for",
                        turn,
                        number,
                    )
                    return
        denied += [(number, _stems(thing)) for thing in _DENIED.findall(text)]


def _stems(text: str) -> set[str]:
    kin = {
        "medication": "drug",
        "prescription": "drug",
        "refill": "drug",
        "appointment": "visit",
        "booking": "visit",
    }
    words = {word.removesuffix("s") for word in content_words(text)}
    return {kin.get(word, word) for word in words}


def _slots(view: CallView) -> Iterator[Finding]:
    """The day that is confirmed against the day that was asked for last."""
    wanted: tuple[int, str] | None = None
    offered: set[str] = set()
    for number, span in enumerate(view.spans, 1):
        days = [day.lower() for day in _DAY.findall(span.text)]
        if span.who == "caller":
            if len(set(days)) == 1 and not re.search(
                r"\b(?:not|can't|cannot|instead of|rather than|from)\b", span.text.lower()
            ):
                wanted = (number, days[0])
            elif span.why.startswith("filler:yes") or re.match(
                r"\W*(?:yes|sure|okay|that works|fine)\b", span.text.lower()
            ):
                wanted = None if offered else wanted
            continue
        if (
            days
            and wanted
            and find_any(_BOOKED, span.text)
            and wanted[1] not in days
            and "?" not in span.text.split(days[0])[-1][:40]
        ):
            text = (
                f"confirmed {days[0].capitalize()}; the caller had asked for "
                f"{wanted[1].capitalize()}"
            )
            yield view.finding(
                "slot_changed", "major", view.blame(wanted[0]), text, wanted[0], number
            )
            return
        offered = set(days) if span.text.rstrip().endswith("?") else set()
