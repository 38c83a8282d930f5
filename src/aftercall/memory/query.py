"""What a query asks for. Any string is a valid query; nothing in it is an operator but the quotes of a phrase."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from aftercall.memory.days import Day, find_days
from aftercall.memory.words import STOP_WORDS, split_words, to_term

LONGEST_QUERY = 10_000
MOST_TERMS = 32
MOST_PHRASES = 4

_PHRASE = re.compile(r'"([^"]{1,500})"|“([^“”]{1,500})”')
_WHEN = re.compile(r"\s*(?:when|how long|(?:what|which) (?:day|date|month|year|time|week))\b")


@dataclass(frozen=True, slots=True)
class Query:
    terms: tuple[str, ...]
    """Each once; what a passage must or may hold."""
    phrases: tuple[str, ...] = ()
    """Terms that must stand side by side in what is found."""
    days: tuple[Day, ...] = ()
    speakers: frozenset[str] = frozenset()
    """Whose words are asked for, where the query names somebody."""
    asks_when: bool = False


def parse_query(text: str, voices: Mapping[str, str] | None = None) -> Query:
    """`voices` says which speaker a name belongs to ({"Bill": "caller"}); a named speaker is preferred, not searched for."""
    lowered = text[:LONGEST_QUERY].lower()
    days, rest = find_days(lowered)
    words = split_words(rest)
    named = {word: speaker for name, speaker in (voices or {}).items() for word in split_words(name)}
    terms = _pick(word for word in words if word not in STOP_WORDS and word not in named)
    if not terms:  # only stop words, names or days: better those than nothing
        terms = _pick(words) or _pick(split_words(lowered))
    return Query(
        terms=terms,
        phrases=tuple(_phrases(lowered))[:MOST_PHRASES],
        days=tuple(days),
        speakers=frozenset(named[word] for word in words if word in named),
        asks_when=_WHEN.match(lowered) is not None,
    )


def _pick(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(to_term, words)))[:MOST_TERMS]


def _phrases(text: str) -> Iterator[str]:
    for match in _PHRASE.finditer(text):
        if terms := [to_term(word) for word in split_words(match[1] or match[2])]:
            yield " ".join(terms)
