"""Parses a query into terms, phrases, days and speakers.

Any text is a valid query; quotes around a phrase are the only operator, except in a question.
"""

import calendar
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from aftercall.memory.words import STOP_WORDS, split_words, to_term

MAX_QUERY_CHARS = 10_000
MAX_QUERY_TERMS = 32
MAX_PHRASES = 4

_PHRASE = re.compile(r'"([^"]{1,500})"|“([^“”]{1,500})”')
_WHEN = re.compile(
    r"\s*(?:when|how long|(?:what|which) (?:day|date|month|year|time|week))\b"
)
_MONTH_NAMES = (
    "january february march april may june "
    "july august september october november december"
)
_MONTHS = _MONTH_NAMES.split()
_NAMED = re.compile(
    rf"(?:\b(?P<first>[0-3]?\d)(?:st|nd|rd|th)?(?: of)? )?\b(?P<month>{'|'.join(_MONTHS)})\b"
    r"(?: (?P<second>[0-3]?\d)(?:st|nd|rd|th)?\b(?!\d))?(?:,? (?P<year>20\d\d)\b)?"
)
_ISO = re.compile(r"\b(?P<year>20\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b")
_YEAR = re.compile(r"\b(20\d\d)\b")
_HINT = re.compile(rf"20\d\d|{'|'.join(_MONTHS)}")
_FIRST_PERSON = frozenset({"i", "me", "my", "mine", "myself", "we", "our", "ours"})
_AMBIGUOUS = ("may", "march")
_LEAD_IN = re.compile(
    r"\b(?:in|of|during|by|until|till|since|last|this|early|mid|late) $"
)

SAME_DAY = 1.0
DAYS_AFTER = 0.7
SAME_MONTH = 0.6
SAME_MONTH_OF_A_DAY = 0.3
MONTH_AFTER = 0.3
SAME_YEAR = 0.2
_DAY_WINDOW = timedelta(days=10)  # people speak of a day for some days after it
_MONTH_WINDOW = timedelta(days=15)


@dataclass(frozen=True, slots=True)
class Day:
    """A year, a month (of any year if `year` is None), or a single day."""

    year: int | None
    month: int | None
    day: int | None

    def closeness(self, other: date) -> float:
        """1 on the day itself; less in the days after it, when people speak of it; 0 far away."""
        if self.month is None:
            return SAME_YEAR if other.year == self.year else 0.0
        year = self.year or other.year
        is_same_month = (other.year, other.month) == (year, self.month)
        if self.day is None:
            if is_same_month:
                return SAME_MONTH
            after = other - date(year, self.month, 28)
            return MONTH_AFTER if timedelta(0) < after <= _MONTH_WINDOW else 0.0
        last_day = calendar.monthrange(year, self.month)[1]
        after = other - date(year, self.month, min(self.day, last_day))
        if after == timedelta(0):
            return SAME_DAY
        if timedelta(0) < after <= _DAY_WINDOW:
            return DAYS_AFTER
        return SAME_MONTH_OF_A_DAY if is_same_month else 0.0


def find_days(text: str) -> tuple[list[Day], str]:
    """The days named in a lower-case text, and the text without them."""
    if not _HINT.search(text):
        return [], text
    days: list[Day] = []

    def collect(match: re.Match[str]) -> str:
        day = _parse_day(match)
        if day is None:
            return match.group()
        days.append(day)
        return " "

    rest = _NAMED.sub(collect, _ISO.sub(collect, text))
    if days:
        return days, rest
    years = [Day(int(year), None, None) for year in _YEAR.findall(rest)]
    return years, _YEAR.sub(" ", rest)


def _parse_day(match: re.Match[str]) -> Day | None:
    found = match.groupdict()
    year = int(found["year"]) if found["year"] else None
    if "day" in found:
        month, day = int(found["month"]), int(found["day"])
        return Day(year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None
    number = found["first"] or found["second"]
    if found["month"] in _AMBIGUOUS and not number and year is None:
        before = match.string[: match.start("month")]
        if not _LEAD_IN.search(before):
            return None
    month = _MONTHS.index(found["month"]) + 1
    is_day = number is not None and 1 <= int(number) <= 31
    return Day(year, month, int(number) if is_day else None)


@dataclass(frozen=True, slots=True)
class SearchQuery:
    terms: tuple[str, ...]
    """Each once."""
    phrases: tuple[str, ...] = ()
    """Terms that must be adjacent in every passage found."""
    days: tuple[Day, ...] = ()
    speakers: frozenset[str] = frozenset()
    """The speakers that the query names; the caller, if it says "I" or "my" and names nobody."""
    asks_when: bool = False
    is_lookup: bool = False
    """A single word: who looks a word up wants the passages that hold it."""


def parse_query(
    text: str, speaker_names: Mapping[str, str] | None = None
) -> SearchQuery:
    """`speaker_names` maps names to speakers ({"Bill": "caller"}).

    Turns of a named speaker rank higher; the name itself is not searched for.
    """
    lowered = text[:MAX_QUERY_CHARS].lower()
    days, rest = find_days(lowered)
    words = split_words(rest)
    speakers: dict[str, str] = {}
    for name, speaker in (speaker_names or {}).items():
        speakers |= dict.fromkeys(split_words(name), speaker)
    terms = _pick_terms(
        word for word in words if word not in STOP_WORDS and word not in speakers
    )
    if not terms:  # only stop words, names or days: search for those
        terms = _pick_terms(words) or _pick_terms(split_words(lowered))
    named = {speakers[word] for word in words if word in speakers}
    if not named and not _FIRST_PERSON.isdisjoint(words):
        named = {"caller"}
    return SearchQuery(
        terms=terms,
        phrases=tuple(_find_phrases(lowered))[:MAX_PHRASES],
        days=tuple(days),
        speakers=frozenset(named),
        asks_when=_WHEN.match(lowered) is not None,
        is_lookup=len(words) == 1 and not days,
    )


def _pick_terms(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(to_term, words)))[:MAX_QUERY_TERMS]


def _find_phrases(text: str) -> Iterator[str]:
    if text.rstrip().endswith(
        "?"
    ):  # there quotes name a title; an answer may not repeat it
        return
    for match in _PHRASE.finditer(text):
        if terms := [to_term(word) for word in split_words(match[1] or match[2])]:
            yield " ".join(terms)
