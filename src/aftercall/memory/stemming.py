"""English words cut to their stems, after M. F. Porter's algorithm of 1980.

Ours and not the databases': SQLite's and Postgres' stemmers differ, and both databases shall
find the same.
"""

import re
from itertools import groupby

_VOWELS = frozenset("aeiou")
_SECOND = (
    *(
        ("ational", "ate"),
        ("ization", "ize"),
        ("iveness", "ive"),
        ("fulness", "ful"),
        ("ousness", "ous"),
        ("tional", "tion"),
    ),
    *(
        ("biliti", "ble"),
        ("entli", "ent"),
        ("ousli", "ous"),
        ("ation", "ate"),
        ("alism", "al"),
        ("aliti", "al"),
        ("iviti", "ive"),
    ),
    *(
        ("enci", "ence"),
        ("anci", "ance"),
        ("izer", "ize"),
        ("alli", "al"),
        ("ator", "ate"),
        ("logi", "log"),
        ("bli", "ble"),
        ("eli", "e"),
    ),
)
_THIRD = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
)
_FOURTH = (
    *("ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ion", "ism"),
    *("ate", "iti", "ous", "ive", "ize", "al", "er", "ic", "ou"),
)
_DOUBLED = re.compile(r"([^aeiou])\1$")


def stem(word: str) -> str:
    """The stem of a lower-case English word; words of one or two letters, and other alphabets,
    stay as they are.
    """
    if len(word) < 3 or not word.isascii():
        return word
    word = _without_tense(_without_plural(word))
    if word[-1] == "y" and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _exchange(_exchange(word, _SECOND), _THIRD)
    return _without_last_e(_without_suffix(word))


def _shape(word: str) -> str:
    """A letter `v` or `c` for each letter: a vowel or a consonant; y is a vowel after a
    consonant.
    """
    shape = ""
    for letter in word:
        is_vowel = letter in _VOWELS or (letter == "y" and shape[-1:] == "c")
        shape += "v" if is_vowel else "c"
    return shape


def _measure(word: str) -> int:
    """How often a run of vowels is followed by consonants."""
    runs = "".join(kind for kind, _ in groupby(_shape(word)))
    return runs.count("vc")


def _ends_short(word: str) -> bool:
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_tense(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    ending = next((ending for ending in ("ed", "ing") if word.endswith(ending)), "")
    rest = word.removesuffix(ending)
    if not ending or "v" not in _shape(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if _DOUBLED.search(rest) and rest[-1] not in "lsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _exchange(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    for ending, other in endings:
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            return rest + other if _measure(rest) else word
    return word


def _without_suffix(word: str) -> str:
    for suffix in _FOURTH:
        if word.endswith(suffix):
            rest = word.removesuffix(suffix)
            is_cut = _measure(rest) > 1 and (
                suffix != "ion" or rest.endswith(("s", "t"))
            )
            return rest if is_cut else word
    return word


def _without_last_e(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word
