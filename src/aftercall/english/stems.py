"""Words that carry meaning, cut to stems: two ways of naming one thing become alike."""

import re
from functools import cache

import snowballstemmer

from aftercall.english.words import listed_words, remember, word_class

_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")
_STEMMER = snowballstemmer.stemmer("english")


@cache
def _stem_listed(word: str) -> str:
    return str(_STEMMER.stemWord(word))


@remember
def stem(word: str) -> str:
    """Stems of our own word lists are kept for good; those of what callers say are not."""
    if word in listed_words():
        return _stem_listed(word)
    return str(_STEMMER.stemWord(word))


@remember
def stems(text: str) -> frozenset[str]:
    """The stems of all words but those that carry no meaning of their own."""
    words = (word.replace("’", "'") for word in _WORD.findall(text.lower()))
    told = {word for word in words if len(word) > 1 and word not in word_class("stop")}
    return frozenset(map(stem, told))


def overlap_coefficient(first: frozenset[str], second: frozenset[str]) -> float:
    """How much of the smaller set is in the other."""
    smaller = min(len(first), len(second))
    return len(first & second) / smaller if smaller else 0.0


def jaccard_similarity(first: frozenset[str], second: frozenset[str]) -> float:
    """How much of both together is common to both."""
    return len(first & second) / len(first | second) if first | second else 0.0
