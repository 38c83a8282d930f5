"""Days told from another day: "a fortnight before", "the Friday before", "the same day", "the
Monday" of a week spoken of.
"""

import calendar
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from aftercall.llm.rules.cue import Cue, words_of
from aftercall.llm.rules.numbers import COUNT, count
from aftercall.llm.rules.vocabulary import vocabulary

_WEEKDAYS = (
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
)
WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DAYS_OF = {"week": 7, "fortnight": 14, "year": 365}
_SHIFT = (
    rf"\b(?:(?P<count>{COUNT}) |the )?(?P<unit>day|night|evening|afternoon|morning|week"
    "|fortnight|month)s? "
    "(?P<which>before(?:hand)?|ahead(?: of)?|earlier(?: than)?|prior(?: to)?|after(?:wards?)?"
    r"|later(?: than)?)\b"
)
# "Two days before the tenth", "a fortnight from Friday", "a week this Friday": told from a day
# that follows at once. "for a week from Friday" is how long it lasts
_AHEAD = rf"(?<!for )\b(?P<number>{COUNT}) (?P<of>week|fortnight|month)s?(?: from| on)?"
SHIFTED = Cue(rf"(?:{_SHIFT}|{_AHEAD})(?: (?:the|that|on|of))?\s*$")
_OFF = Cue(rf"{_SHIFT}(?! (?:yesterday|tomorrow|last|next|long|all|this|in the|on)\b)")
_WEEKDAY_OFF = Cue(
    rf"\b(?:the|that) (?P<weekday>{WEEKDAY}) (?P<which>before|after)\b(?! (?:last|next|that "
    "one|yesterday))"
)
_SAME_DAY = Cue(
    r"\b(?:on )?(?:the|that) same (?:day|morning|afternoon|evening|date)\b|"
    r"\bwhile (?:i|we|he|she|they|it|you)(?:['’](?:m|re|s)| am| is| are) (?:there|here|in|out"
    r"|over|at it)\b"
)
_THE_WEEKDAY = Cue(
    rf"\bthe (?P<weekday>{WEEKDAY})\b(?!['’]s| (?:before|after|the|of|in|{COUNT}|week))"
)


_TELLING = vocabulary(
    "before beforehand ahead earlier prior after afterward afterwards later same while"
) | frozenset(_WEEKDAYS)


@dataclass(frozen=True, slots=True)
class Mention:
    """A day named in a text; `weekday_only` when that is all that was said, so that a day of
    the month may put it right.
    """

    start: int
    end: int
    day: date
    weekday_only: bool = False


def weekday_of(name: str) -> int:
    return next(
        index for index, full in enumerate(_WEEKDAYS) if full[:3] == name[:3].lower()
    )


def month_end(day: date, offset: int = 0) -> date:
    year, month_index = divmod(day.month - 1 + offset, 12)
    return date(
        day.year + year,
        month_index + 1,
        calendar.monthrange(day.year + year, month_index + 1)[1],
    )


def later(day: date, number: int, unit: str) -> date | None:
    try:
        if unit == "month":
            end = month_end(day, number)
            return end.replace(day=min(day.day, end.day))
        return day + timedelta(days=number * _DAYS_OF.get(unit, 1))
    except (OverflowError, ValueError):
        return None


def shift(day: date, match: re.Match[str]) -> date:
    """The day so far before or after another."""
    said = match.groupdict()
    number = count(said["count"] or said.get("number") or "a") or 1
    ahead = said["which"] is None or said["which"].lower().startswith(
        ("after", "later")
    )
    return (
        later(day, number if ahead else -number, (said["unit"] or said["of"]).lower())
        or day
    )


def reckon(
    text: str, named: Iterable[Mention], anchor: date | None
) -> Iterator[Mention]:
    """Days told from the last one named before them in the text, or else from `anchor`."""
    if _TELLING.isdisjoint(words_of(text)):
        return
    for cue, resolve in (
        (_OFF, shift),
        (_WEEKDAY_OFF, _weekday_off),
        (_SAME_DAY, _same),
        (_THE_WEEKDAY, _nearest),
    ):
        for match in cue.finditer(text):
            if any(
                mention.start <= match.start() < mention.end
                and mention.end > match.end()
                for mention in named
            ):
                continue
            before = [mention.day for mention in named if mention.end <= match.start()]
            if origin := before[-1] if before else anchor:
                yield Mention(match.start(), match.end(), resolve(origin, match))


def _weekday_off(day: date, match: re.Match[str]) -> date:
    weekday = weekday_of(match["weekday"])
    if match["which"].lower() == "after":
        return day + timedelta(days=(weekday - day.weekday() - 1) % 7 + 1)
    return day - timedelta(days=(day.weekday() - weekday - 1) % 7 + 1)


def _same(day: date, match: re.Match[str]) -> date:
    return day


def _nearest(day: date, match: re.Match[str]) -> date:
    """ "The first is a Saturday? Could you do the Monday?": the one next to the day talked of."""
    ahead = (weekday_of(match["weekday"]) - day.weekday()) % 7
    return day + timedelta(days=ahead if ahead <= 3 else ahead - 7)
