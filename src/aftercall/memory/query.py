"""What a query asks for.

Any string is a valid query; nothing in it is an operator but the quotes of a phrase.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from aftercall.memory.words import STOP_WORDS, split_words, to_term

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
_NAMED = re.compile(
    rf"(?:\b(?P<first>[0-3]?\d)(?:st|nd|rd|th)?(?: of)? )?\b(?P<month>{'|'.join(_MONTHS)})\b"
    r"(?: (?P<second>[0-3]?\d)(?:st|nd|rd|th)?\b(?!\d))?(?:,? (?P<year>20\d\d)\b)?"
)
_ISO = re.compile(r"\b(?P<year>20\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b")
_YEAR = re.compile(r"\b(20\d\d)\b")
_HINT = re.compile(rf"20\d\d|{'|'.join(_MONTHS)}")
_AMBIGUOUS = ("may", "march")
_LEAD_IN = re.compile(r"\b(?:in|of|during|by|until|till|since|last|this|early|mid|late) $")

SAME_DAY, DAYS_AFTER, SAME_MONTH, SAME_MONTH_OF_A_DAY, MONTH_AFTER, SAME_YEAR = (
    1.0,
    0.7,
    0.6,
    0.3,
    0.3,
    0.2,
)
_MENTION_WINDOW_DAYS = 10
_MONTH_MENTION_WINDOW_DAYS = 15


@dataclass(frozen=True, slots=True)
class Day:
    """A day as far as it was named: a year, a month of this or any year, or a single day."""

    year: int | None
    month: int | None
    day: int | None

    def closeness(self, other: date) -> float:
        """1 on the day itself; less in the days after it, when people tell of it; 0 far away."""
        if self.month is None:
            return SAME_YEAR if other.year == self.year else 0.0
        year = self.year or other.year
        is_month = (other.year, other.month) == (year, self.month)
        if self.day is None:
            after = other - (date(year, self.month, 28))
            near = (
                MONTH_AFTER
                if timedelta(0) < after <= timedelta(days=_MONTH_MENTION_WINDOW_DAYS)
                else 0.0
            )
            return SAME_MONTH if is_month else near
        after = other - _clipped(year, self.month, self.day)
        if after == timedelta(0):
            return SAME_DAY
        if timedelta(0) < after <= timedelta(days=_MENTION_WINDOW_DAYS):
            return DAYS_AFTER
        return SAME_MONTH_OF_A_DAY if is_month else 0.0


def find_days(text: str) -> tuple[list[Day], str]:
    """The days named in a lower-case text, and the text without them: they are looked up, not
    searched for.
    """
    if not _HINT.search(text):
        return [], text
    days: list[Day] = []

    def take(match: re.Match[str]) -> str:
        day = _day_of(match)
        if day is None:
            return match.group()
        days.append(day)
        return " "

    rest = _NAMED.sub(take, _ISO.sub(take, text))
    return (days, rest) if days else _find_years(rest)


def _find_years(text: str) -> tuple[list[Day], str]:
    return [Day(int(year), None, None) for year in _YEAR.findall(text)], _YEAR.sub(" ", text)


def _day_of(match: re.Match[str]) -> Day | None:
    found = match.groupdict()
    year = int(found["year"]) if found["year"] else None
    if "day" in found:
        month, day = int(found["month"]), int(found["day"])
        return Day(year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None
    number = found["first"] or found["second"]
    if (
        found["month"] in _AMBIGUOUS
        and not number
        and year is None
        and not _LEAD_IN.search(match.string[: match.start("month")])
    ):
        return None
    is_day = number is not None and 1 <= int(number) <= 31
    return Day(year, _MONTHS.index(found["month"]) + 1, int(number) if is_day else None)


def _clipped(year: int, month: int, day: int) -> date:
    """The 31st of a shorter month is its last day."""
    for last in (day, 30, 29, 28):
        try:
            return date(year, month, min(day, last))
        except ValueError:
            continue
    raise AssertionError("every month has 28 days")


MAX_QUERY_CHARS = 10_000
MAX_QUERY_TERMS = 32
MAX_PHRASES = 4

_PHRASE = re.compile(r'"([^"]{1,500})"|“([^“”]{1,500})”')
_WHEN = re.compile(r"\s*(?:when|how long|(?:what|which) (?:day|date|month|year|time|week))\b")


@dataclass(frozen=True, slots=True)
class SearchQuery:
    terms: tuple[str, ...]
    """Each once; what a passage must or may hold."""
    phrases: tuple[str, ...] = ()
    """Terms that must stand side by side in what is found."""
    days: tuple[Day, ...] = ()
    speakers: frozenset[str] = frozenset()
    """Whose words are asked for, where the query names somebody."""
    asks_when: bool = False


def parse_query(text: str, speaker_names: Mapping[str, str] | None = None) -> SearchQuery:
    """`voices` says which speaker a name belongs to ({"Bill": "caller"}); a named speaker is
    preferred, not searched for.
    """
    lowered = text[:MAX_QUERY_CHARS].lower()
    days, rest = find_days(lowered)
    words = split_words(rest)
    named = {
        word: speaker
        for name, speaker in (speaker_names or {}).items()
        for word in split_words(name)
    }
    terms = _pick(word for word in words if word not in STOP_WORDS and word not in named)
    if not terms:  # only stop words, names or days: better those than nothing
        terms = _pick(words) or _pick(split_words(lowered))
    return SearchQuery(
        terms=terms,
        phrases=tuple(_phrases(lowered))[:MAX_PHRASES],
        days=tuple(days),
        speakers=frozenset(named[word] for word in words if word in named),
        asks_when=_WHEN.match(lowered) is not None,
    )


def _pick(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(to_term, words)))[:MAX_QUERY_TERMS]


def _phrases(text: str) -> Iterator[str]:
    for match in _PHRASE.finditer(text):
        if terms := [to_term(word) for word in split_words(match[1] or match[2])]:
            yield " ".join(terms)
