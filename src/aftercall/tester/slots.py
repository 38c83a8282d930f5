"""Days and times of day in spoken words, so that two ways of saying one slot compare equal."""

import re
from dataclasses import dataclass
from datetime import date, timedelta

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
HOUR_WORDS = {
    word: number
    for number, word in enumerate(
        (
            *("one", "two", "three", "four", "five", "six"),
            *("seven", "eight", "nine", "ten", "eleven", "twelve"),
        ),
        1,
    )
}
_MINUTES = {
    "fifteen": 15,
    "thirty": 30,
    "forty five": 45,
    "forty-five": 45,
    "oh five": 5,
    "ten": 10,
    "twenty": 20,
    "forty": 40,
    "fifty": 50,
}
_SHORT_DAYS = {"mon": 0, "tue": 1, "tues": 1, "wed": 2, "weds": 2, "thu": 3} | {
    "thur": 3,
    "thurs": 3,
    "fri": 4,
}
ORDINALS = {
    word: number
    for number, word in enumerate(
        (
            *("first", "second", "third", "fourth", "fifth", "sixth", "seventh"),
            *("eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth"),
            *("fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth"),
            *("nineteenth", "twentieth", "twenty-first", "twenty-second"),
            *("twenty-third", "twenty-fourth", "twenty-fifth", "twenty-sixth"),
            *("twenty-seventh", "twenty-eighth", "twenty-ninth", "thirtieth"),
            "thirty-first",
        ),
        1,
    )
}
_NUMBER = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?|{'|'.join(sorted(ORDINALS, key=len, reverse=True))})"
_HOUR = rf"(?:{'|'.join(HOUR_WORDS)}|\d{{1,2}})"
_DAY = re.compile(rf"\b({'|'.join((*DAYS, *_SHORT_DAYS))})(?:'s|s)?\b(?!-)")
_RELATIVE = re.compile(r"\b(today|day after tomorrow|tomorrow)\b")
_DATE = re.compile(
    rf"\b(?:(?P<month>{'|'.join(MONTHS)}) (?:the )?(?P<day>{_NUMBER})"
    rf"|(?:the )?(?P<day_first>{_NUMBER}) (?:of )?(?P<month_last>{'|'.join(MONTHS)}))\b"
    r"(?:,? (?P<year>(?:19|20)\d\d))?"
)
_TIME = re.compile(
    rf"\b(?:(?P<half>half past|half|quarter past|quarter to|quarter after) (?P<base>{_HOUR})\b"
    r"|(?P<clock>\d{1,2})[:.](?P<minute>\d\d)\b"
    rf"|(?P<lead>at|around|about|by|for|to|from|until|till|past) (?P<hour>{_HOUR})"
    rf"(?: (?P<minutes>{'|'.join(_MINUTES)}))?\b(?![:.]\d|-)"
    rf"|(?P<marked>{_HOUR})(?: (?P<marked_minutes>{'|'.join(_MINUTES)}))? ?"
    r"(?:o'clock|a\.?m\b|p\.?m\b|in the (?:morning|afternoon|evening))"
    r"|(?P<noon>noon|midday))"
)
_NOT_A_TIME = re.compile(
    r"\s*(?:minutes?|hours?|days?|weeks?|months?|years?|people|persons?|of|or|tickets?|percent"
    r"|dollars?|euros?|milligrams?|tablets?|adults?|guests?|things?|more|seconds?)\b"
)
_BIRTH = re.compile(r"\b(?:birth|born|birthday|dob)\b")


@dataclass(frozen=True)
class Slots:
    """The weekdays (0 is Monday) and times ("10:00" of a 12-hour clock) that a text names."""

    days: frozenset[int]
    times: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.days or self.times)


def find_slots(text: str, today: date) -> Slots:
    plain = " ".join(text.lower().replace("’", "'").split())
    return Slots(_find_days(plain, today), _find_times(plain))


def _find_days(text: str, today: date) -> frozenset[int]:
    found = set()
    for match in _DAY.finditer(text):
        name = match.group(1)
        found.add(DAYS.index(name) if name in DAYS else _SHORT_DAYS[name])
    for match in _RELATIVE.finditer(text):
        ahead = ("today", "tomorrow", "day after tomorrow").index(match.group(1))
        found.add((today.weekday() + ahead) % 7)
    if not found:
        for match in _DATE.finditer(text):
            meant = read_date(match, today)
            if meant is not None and not match.group("year"):
                found.add(meant.weekday())
    return frozenset(found)


def find_dated_days(text: str, today: date) -> list[tuple[str, date]]:
    """Weekdays that are said together with a date: the weekday's name, and the date."""
    plain = " ".join(text.lower().replace("’", "'").split())
    found = []
    for match in _DATE.finditer(plain):
        before = plain[: match.start()].rstrip(", ").removesuffix(" the")
        named = next((day for day in DAYS if before.endswith(day)), None)
        meant = read_date(match, today)
        if named is not None and meant is not None:
            found.append((named, meant))
    return found


def find_dates(text: str) -> set[date]:
    """Dates that are said with their year."""
    plain = " ".join(text.lower().replace("’", "'").split())
    found = (
        read_date(match, date.min)
        for match in _DATE.finditer(plain)
        if match.group("year")
    )
    return {day for day in found if day is not None}


def read_date(match: re.Match[str], today: date) -> date | None:
    """Without a year, the next such day."""
    month = MONTHS.index(match.group("month") or match.group("month_last")) + 1
    said = match.group("day") or match.group("day_first")
    day = ORDINALS.get(said) or int(re.sub(r"\D", "", said))
    try:
        if year := match.group("year"):
            return date(int(year), month, day)
        meant = date(today.year, month, day)
        is_over = meant < today - timedelta(days=1)
        return date(today.year + 1, month, day) if is_over else meant
    except ValueError:
        return None


def _find_times(text: str) -> frozenset[str]:
    if _BIRTH.search(text):
        return frozenset()
    found = set()
    for match in _TIME.finditer(text):
        if _NOT_A_TIME.match(text[match.end() :]):
            continue
        time = _read_time(match)
        if time is not None:
            found.add(time)
    return frozenset(found)


def _read_time(match: re.Match[str]) -> str | None:
    if match.group("noon"):
        return "12:00"
    minute = 0
    if match.group("half"):
        hour = _read_hour(match.group("base"))
        kind = match.group("half")
        minute = 30 if kind.startswith("half") else 15
        if kind == "quarter to":
            hour, minute = hour - 1 or 12, 45
    elif match.group("clock"):
        hour, minute = int(match.group("clock")), int(match.group("minute"))
    else:
        hour = _read_hour(match.group("hour") or match.group("marked"))
        said = match.group("minutes") or match.group("marked_minutes")
        minute = _MINUTES[said] if said else 0
    if not 1 <= hour <= 24 or minute > 59:
        return None
    return f"{(hour - 1) % 12 + 1}:{minute:02}"


def _read_hour(word: str) -> int:
    return HOUR_WORDS.get(word) or int(word)
