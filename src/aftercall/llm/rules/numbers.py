"""Numbers as they are spoken: "twenty second", "3rd", "a couple of", "four four oh one"."""

import re

from aftercall.llm.rules.cue import words_of

UNITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = (
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
ORDINAL_WORDS = (
    *(
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "tenth",
    ),
    *(
        "eleventh",
        "twelfth",
        "thirteenth",
        "fourteenth",
        "fifteenth",
        "sixteenth",
        "seventeenth",
        "eighteenth",
        "nineteenth",
        "twentieth",
    ),
    *(
        f"twenty-{word}"
        for word in (
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
        )
    ),
    *("thirtieth", "thirty-first"),
)
_DAY_OF = {word: day for day, word in enumerate(ORDINAL_WORDS, 1)}
_COUNT_OF = {
    "a": 1,
    "an": 1,
    "couple": 2,
    "couple of": 2,
    "a couple": 2,
    "a couple of": 2,
    "few": 3,
    "a few": 3,
} | {word: number for number, word in enumerate((*UNITS, *TEENS), 1)}

# Longest first: "twenty-second" before "second".
_SPOKEN = "|".join(
    sorted((word.replace("-", "[- ]") for word in ORDINAL_WORDS), key=len, reverse=True)
)
ORDINAL_WORD = f"(?:{_SPOKEN})"
ORDINAL = rf"(?:{_SPOKEN}|\d{{1,2}}(?:st|nd|rd|th))"
COUNT = (
    r"(?:\d{1,3}|a couple of|a couple|couple of|a few|"
    + "|".join((*UNITS, *TEENS, "an", "a"))
    + ")"
)

NUMBER_WORD = (
    "(?:zero|oh|"
    + "|".join((*UNITS, *TEENS, *TENS))
    + "|hundred|thousand|double|triple)"
)


_NUMBERS = frozenset(
    (*UNITS, *TEENS, *TENS, "zero", "oh", "hundred", "thousand", "double", "triple")
)
_QUANTITY = re.compile(
    rf"\b(?P<number>{NUMBER_WORD}(?:[ -]{NUMBER_WORD})?|\d+) (?P<noun>[a-z]{{3,}})\b",
    re.I,
)


def quantities(text: str) -> dict[str, str]:
    """How many of what: "twelve people" is `people: twelve`."""
    if not any(word in _NUMBERS or word.isdecimal() for word in words_of(text)):
        return {}
    return {
        match["noun"].lower(): match["number"].lower()
        for match in _QUANTITY.finditer(text)
    }


def day_number(ordinal: str) -> int | None:
    """ "twenty second" and "22nd" are 22."""
    word = ordinal.lower().replace(" ", "-")
    digits = re.match(r"\d+", word)
    day = int(digits.group()) if digits else _DAY_OF.get(word)
    return day if day and 1 <= day <= 31 else None


def count(words: str) -> int | None:
    words = words.lower().strip()
    return int(words) if words.isdecimal() else _COUNT_OF.get(words)
