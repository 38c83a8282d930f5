"""Days named in speech, resolved against the day of the call. Only days to come."""

import calendar
import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import NamedTuple

from aftercall.english.text import Plain, normalise
from aftercall.english.words import compile_pattern, remember

_MONTHS = [name.lower() for name in calendar.month_name]
_WEEKDAYS = [name.lower() for name in calendar.day_name]
_SHORT = {"tues": "tuesday", "weds": "wednesday", "thurs": "thursday", "fri": "friday"}
_W = rf"(?:{'|'.join((*_WEEKDAYS, *_SHORT))})"
_M = (
    rf"(?:{'|'.join((*_MONTHS[1:], 'jan', 'feb', 'aug', 'sept', 'oct', 'nov', 'dec'))})"
)
_O = r"(?:\d{1,2}(?:st|nd|rd|th)|first|second|third)"
_COUNT = r"(?P<count>\d{1,3}|an?|one|couple of|a couple of|a couple|a few)"
_UNIT = r"(?P<unit>day|week|fortnight|month)s?(?:'s|')?"
_FROM = (
    rf"(?:from now|(?:from |on )?(?:today|(?P<tomorrow>tomorrow)|(?P<weekday>{_W})))"
)
_PART = r"(?:morning|afternoon|evening|night|lunchtime)"
# After "the third" these show that no noun follows: "the third floor" is no day.
_FREE = (
    r"(?= (?:at|by|for|from|in|of|on|or|and|but|is|if|then|to|please|instead|though|because|so|same"
    r"|works?|would|will|before|after|about|around|i|we|you|he|she|they|it|with|when|not|that"
    r"|until|till|no|yes|maybe|thanks|thank|ok|say|(?:half|quarter)(?: past| to)? \d+|\d+)(?!\S)|$)"
)
_COUNTS = {"a": 1, "an": 1, "one": 1, "a few": 3}
_DAYS_OF = {"day": 1, "week": 7, "fortnight": 14}
_PLACES = {"first": 0, "second": 1, "third": 2, "4th": 3, "last": -1}
_FEASTS = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "boxing day": (12, 26),
    "new year's eve": (12, 31),
    "new year's day": (1, 1),
    "valentine's day": (2, 14),
    "halloween": (10, 31),
}
_MAX_MONTHS_AHEAD = 25
_MAX_AHEAD = timedelta(
    days=240
)  # a day of a month that is further off is past: a birthday

Resolve = Callable[[re.Match[str], date], date | None]


class DateMention(NamedTuple):
    """A day, and where the normal form of the text names it."""

    start: int
    end: int
    day: date


def find_dates(
    text: Plain | str, today: date, anchor: date | None = None
) -> list[DateMention]:
    """Every day the text puts forward, in order.

    `anchor` is the day talked of: "the day before" is the day before it.
    """
    plain = normalise(text) if isinstance(text, str) else text
    return _find_in(plain.text, today, anchor) if may_name_day(plain.text) else []


@remember
def may_name_day(text: str) -> bool:
    """One look rules out most texts before all the patterns are tried."""
    return _MAY_NAME.search(text) is not None


@remember
def _find_in(text: str, today: date, anchor: date | None) -> list[DateMention]:
    """Days in one sentence: those named, and those counted from them ("the day before")."""
    named = _find_named(text, today, anchor)
    around = [item for item in _reckon(text, named, anchor) if item.day >= today]
    apart = [item for item in named if not _is_taken(item.start, item.end, around)]
    return sorted((*apart, *around))


def _find_named(text: str, today: date, anchor: date | None) -> list[DateMention]:
    """Days that are named, and not refused: "not Monday, Tuesday" is Tuesday.

    A place in the text belongs to the first pattern that fits; a day in the past is none.
    """
    found: list[DateMention] = []
    refused: set[date] = set()
    for pattern, resolve in _PATTERNS:
        for match in pattern.finditer(text):
            if _is_taken(*match.span(), found):
                continue
            mention = _resolve(text, match, resolve, _base(match, today, anchor))
            found.append(mention or DateMention(*match.span(), date.min))
            if mention and _NEGATED.search(text[: match.start()]):
                refused.add(mention.day)
    return sorted(
        item for item in found if item.day >= today and item.day not in refused
    )


def _is_taken(start: int, end: int, found: list[DateMention]) -> bool:
    """Whether an earlier pattern has read these words already."""
    return any(start < other.end and other.start < end for other in found)


def _base(match: re.Match[str], today: date, anchor: date | None) -> date:
    """A bare "the twenty-third" is of the month that was talked of last."""
    if anchor is None or "bare" not in match.groupdict():
        return today
    return max(today, anchor.replace(day=1) - timedelta(days=1))


def latest_day(text: str, today: date) -> date | None:
    """The last of the days that a text names."""
    return max((mention.day for mention in find_dates(text, today)), default=None)


def _resolve(
    text: str, match: re.Match[str], resolve: Resolve, today: date
) -> DateMention | None:
    before = text[: match.start()]
    not_meant = (_NOT_MEANT.search(before) and not _KEPT_TILL.search(before)) or (
        _RANGE.search(before) and not _MOVES.search(before)
    )
    if not_meant or _REFUSED_AFTER.match(text[match.end() :]):
        return None
    day = resolve(match, today)
    if day is None:
        return None
    if (shifted := _SHIFTED.search(before)) is not None:
        return DateMention(shifted.start(), match.end(), _shift(day, shifted))
    if _BEFORE.search(before) and "end of" not in match.group():
        day -= timedelta(days=1)
    return DateMention(match.start(), match.end(), day)


def _weekday(name: str) -> int:
    return _WEEKDAYS.index(_SHORT.get(name, name))


def _month(name: str) -> int:
    return next(at for at, full in enumerate(_MONTHS) if full[:3] == name[:3])


def _day_number(ordinal: str) -> int:
    return _PLACES[ordinal] + 1 if ordinal in _PLACES else int(ordinal.rstrip("stndrh"))


def _month_end(day: date, offset: int = 0) -> date:
    """The last day of the month, or of one so many months later."""
    year, month = divmod(day.month - 1 + offset, 12)
    last = calendar.monthrange(day.year + year, month + 1)[1]
    return date(day.year + year, month + 1, last)


def _later(day: date, number: int, unit: str) -> date:
    """So many days, weeks or months on; the 31st of a shorter month is its last day."""
    if unit in _DAYS_OF:
        return day + timedelta(days=number * _DAYS_OF[unit])
    end = _month_end(day, number)
    return end.replace(day=min(day.day, end.day))


def _count(match: re.Match[str]) -> int:
    """ "A week" is one, "3 weeks" are three, "a couple of weeks" two."""
    said = match["count"] or "a"
    return int(said) if said.isdecimal() else _COUNTS.get(said, 2)


def _upcoming(number: int, today: date, month: int | None = None) -> date | None:
    """The next such day of a month; today only if its month is named."""
    for offset in range(_MAX_MONTHS_AHEAD):
        end = _month_end(today, offset)
        if not 0 < number <= end.day or (month and end.month != month):
            continue
        day = end.replace(day=number)
        if day > today or (month and day == today):
            return day
    return None


def _coming(weekday: int, today: date) -> date:
    """The next such weekday; on a Monday, "Monday" is the one in a week."""
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


def _weekday_of(match: re.Match[str], today: date) -> date:
    return _coming(_weekday(match["weekday"]), today)


def _counted_from(match: re.Match[str], today: date) -> date:
    """ "A week today", "two weeks on Friday", "Friday week"."""
    start = _weekday_of(match, today) if match["weekday"] else today
    start += timedelta(days=1 if match["tomorrow"] else 0)
    return _later(start, _count(match), match["unit"])


def _of_next_week(match: re.Match[str], today: date) -> date:
    """ "Next Friday" is the Friday of the week that begins on the coming Monday."""
    weeks = 2 if match.group().endswith("after next") else 1
    weekday = _weekday(match["weekday"] or match["later"])
    return today + timedelta(days=7 * weeks - today.weekday() + weekday)


def _end_of_week(match: re.Match[str], today: date) -> date:
    """The Friday that comes, or the one of next week."""
    friday = today + timedelta(days=4 - today.weekday())
    is_later = match["next"] or friday < today
    return friday + timedelta(days=7 if is_later else 0)


def _numbered_weekday(match: re.Match[str], today: date) -> date | None:
    """ "Tuesday the third" is the next third that is a Tuesday, else the next third."""
    number = _day_number(match["ordinal"])
    month = _month(match["month"]) if match["month"] else None
    ends = (_month_end(today, offset) for offset in range(7))
    days = (end.replace(day=number) for end in ends if number <= end.day)
    weekday = _weekday(match["weekday"])
    fits = (day for day in days if day >= today and day.weekday() == weekday)
    return (next(fits, None) if month is None else None) or _upcoming(
        number, today, month
    )


def _nth_weekday(match: re.Match[str], today: date) -> date | None:
    """ "The first Monday in April"."""
    place = _PLACES[match["place"]]
    weekday = _weekday(match["weekday"])
    for offset in range(13):
        end = _month_end(today, offset)
        days = (end.replace(day=number) for number in range(1, end.day + 1))
        day = [day for day in days if day.weekday() == weekday][place]
        is_meant = not match["month"] or end.month == _month(match["month"])
        if is_meant and day >= today:
            return day
    return None


def _weekend(match: re.Match[str], today: date) -> date:
    """The Saturday that comes; from a weekday, "next weekend" is the one after it."""
    later = 7 if match["next"] and today.weekday() < 5 else 0
    return today + timedelta(days=(5 - today.weekday()) % 7 + later)


def _month_day(match: re.Match[str], today: date) -> date | None:
    """ "The 4th of May": the next one, unless it is too far ahead to be meant, or a birthday."""
    day = _upcoming(_day_number(match["ordinal"]), today, _month(match["month"]))
    is_far = day is None or day - today > _MAX_AHEAD
    return None if is_far or match["past"] else day


def _end_of_month(match: re.Match[str], today: date) -> date:
    month = _month(match["month"]) if match["month"] else today.month
    return _month_end(today, 1 if match["next"] else (month - today.month) % 12)


def _days(number: int) -> Resolve:
    return lambda _, today: today + timedelta(days=number)


# The first pattern that matches at a place wins; longer readings come first.
_PATTERNS: tuple[tuple[re.Pattern[str], Resolve], ...] = tuple(
    (compile_pattern(pattern), resolve)
    for pattern, resolve in (
        (r"(?:the )?day after tomorrow", _days(2)),
        (
            rf"{_COUNT} {_UNIT} {_FROM}",
            _counted_from,
        ),
        (
            rf"(?P<count>)(?:(?P<tomorrow>tomorrow)|(?P<weekday>{_W})) (?P<unit>week|fortnight)",
            _counted_from,
        ),
        (
            rf"(?:in|within)(?: the next| about| around)? {_COUNT} {_UNIT}(?: time)?",
            lambda m, today: _later(today, _count(m), m["unit"]),
        ),
        (
            (
                rf"(?:the )?(?P<place>first|second|third|4th|last) (?P<weekday>{_W})"
                rf" (?:in|of) (?:(?P<month>{_M})|(?:the|this) month)"
            ),
            _nth_weekday,
        ),
        (
            (
                rf"(?:this |next |on )?(?P<weekday>{_W}) (?:the )?(?P<ordinal>{_O})"
                rf"(?: (?:of )?(?P<month>{_M}))?{_FREE}"
            ),
            _numbered_weekday,
        ),
        (
            (
                rf"(?:the )?(?P<ordinal>{_O}|\d{{1,2}}) (?:of )?(?P<month>{_M})(?: (?:a )?{_W})?"
                r"(?P<past> (?:19\d\d|[4-9]\d)$)?"
            ),
            _month_day,
        ),
        (
            rf"(?P<month>{_M}) (?:the )?(?P<ordinal>{_O}|\d{{1,2}})(?P<past> 19\d\d)?",
            _month_day,
        ),
        (
            rf"not this (?P<weekday>{_W})",
            lambda m, today: _later(_weekday_of(m, today), 1, "week"),
        ),
        (
            (
                rf"(?:the )?(?P<weekday>{_W}) (?:(?:the week )?after next|(?:of )?next week|next)"
                rf"|next (?:week )?(?P<later>{_W})"
            ),
            _of_next_week,
        ),
        (
            r"(?:the )?end of (?:(?P<next>next)|the|this) (?:working )?week",
            _end_of_week,
        ),
        (
            rf"(?:the )?(?:end|last day) of (?:(?P<month>{_M})|(?:(?P<next>next)|the|this) month)",
            _end_of_month,
        ),
        (r"(?:(?P<next>next)|this|the) weekend", _weekend),
        (rf"tomorrow(?: {_PART})?|(?<!\S)first thing in the morning", _days(1)),
        (
            (
                rf"today|tonight|this {_PART}|eod|close of business"
                rf"|(?:the )?end of (?:the |this )?(?:day|business)(?! (?:on )?(?:{_W}|tomorrow))"
            ),
            _days(0),
        ),
        (
            rf"(?:{'|'.join(_FEASTS)})",
            lambda m, today: _upcoming(
                _FEASTS[m.group()][1], today, _FEASTS[m.group()][0]
            ),
        ),
        (
            rf"(?:this |this coming |on )?(?P<weekday>{_W})(?:'s| {_PART})?",
            _weekday_of,
        ),
        (
            rf"(?:the (?P<ordinal>{_O})|^(?P<bare>\d{{1,2}}(?:st|nd|rd|th))){_FREE}",
            lambda m, today: _upcoming(_day_number(m["ordinal"] or m["bare"]), today),
        ),
    )
)
_MAY_NAME = re.compile(
    rf"\d(?:st|nd|rd|th)\b|\b(?:{_W}|{_M}|to(?:day|night|morrow)|days?|weeks?|weekend"
    r"|months?|years?|fortnights?|eod|first|second|third|morning|afternoon|evening|business|"
    rf"{'|'.join(_FEASTS)})\b"
)
# "Since Friday" is past; "till Friday" says how long something lasts.
_NOT_MEANT = re.compile(
    r"(?:^| )(?:last|since|until|till|\S+day through|easter|bank holiday|mean|except|instead of"
    r"|rather than|can not (?:do|make)|every(?: other| second| single)?|each|after|a|was|been"
    r"|(?<!later )than|(?<!no )good)(?: (?:this|the|on|for|past|week))? $"
)
# "Keep it till Friday" is to be done until then.
_KEPT_TILL = re.compile(
    r"\b(?:keep|hold|renew|extend|save|prolong|pause|freeze|stay)\b.* (?:until|till)(?: the)? $"
)
# "From the third to the tenth" begins on the third; moved from one to the other, it is the other.
_RANGE = re.compile(r"(?:^| )from (?:\S+ ){1,4}to (?:the )?$")
_MOVES = re.compile(r"\b(?:change|move|switch|swap|shift|push|bring|put)")
_NEGATED = re.compile(r"(?:^| )not(?: (?:this|the|on|for|until))? $")
_REFUSED_AFTER = re.compile(
    r" (?:of|in) (?:each|every) month"
    r"| (?:before|after) (?:christmas|easter|new|that|my|our)(?!\S)"
    r"| (?:is |are )?(?:no good|not (?:good|possible|great|going)|out|a holiday|already|taken|full"
    r"|bad|tricky|gone|does not|will not|is not|was|here"
    r"|i was|we were|i can not|we can not)(?!\S)"
    r"| (?:i am|we are|i have|we have|i work|we close|my \S+|he|she)"
    r"(?! (?:free|available|good|off|fine|around|able|home|there))(?!\S)"
)
_BEFORE = re.compile(r"(?<!on or )(?:^|(?<= ))before(?: the)? $")
_SHIFTED = re.compile(
    rf"(?:^|(?<= ))(?:the |{_COUNT} )?(?P<unit>day|week|fortnight)s? (?P<which>before|after|from) $"
)
_OFF = compile_pattern(
    rf"(?:the (?:very )?|{_COUNT} )(?P<unit>day|week|fortnight)s?"
    r" (?P<which>before|ahead|after|later)(?! (?:tomorrow|next|yesterday))"
    r"|(?P<same>the same day|that same day|same day|that day|by then)"
    rf"|the (?P<weekday>{_W}) (?P<side>before|after)|(?:the|that) (?P<near>{_W})"
)


def _shift(day: date, match: re.Match[str]) -> date:
    """ "Two days after that", "a week earlier"."""
    number = _count(match)
    is_ahead = match["which"] in ("after", "later", "from")
    return _later(day, number if is_ahead else -number, match["unit"])


def _reckon(
    text: str, named: list[DateMention], anchor: date | None
) -> list[DateMention]:
    """Days told from the last one named before them in the text, or else from the anchor."""
    found = []
    for match in _OFF.finditer(text):
        if any(
            item.start <= match.start() and item.end > match.end() for item in named
        ):
            continue
        before = [item.day for item in named if item.end <= match.start()]
        origin = before[-1] if before else anchor
        if origin:
            found.append(DateMention(*match.span(), _reckon_from(origin, match)))
    return found


def _reckon_from(origin: date, match: re.Match[str]) -> date:
    """A day told by another one: "the same day", "the Friday before", "the week after".

    A weekday without a side is the nearest to the other day.
    """
    if match["same"]:
        return origin
    if match["unit"]:
        return _shift(origin, match)
    weekday = _weekday(match["weekday"] or match["near"])
    ahead = (weekday - origin.weekday()) % 7
    if match["side"] == "after":
        ahead = ahead or 7
    elif match["side"] == "before" or ahead > 3:
        ahead -= 7
    return origin + timedelta(days=ahead)
