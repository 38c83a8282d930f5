"""Numbers as they are spoken: "twenty second", "3rd", "a couple of", "four four oh one"."""

import re

_UNITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = ("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINAL_WORDS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    *("eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth"),
    *(f"twenty-{word}" for word in ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")),
    *("thirtieth", "thirty-first"),
)
_DAY_OF = {word: day for day, word in enumerate(_ORDINAL_WORDS, 1)}
_COUNT_OF = {"a": 1, "an": 1, "couple": 2, "couple of": 2, "a couple": 2, "a couple of": 2, "few": 3, "a few": 3} | {
    word: number for number, word in enumerate((*_UNITS, *_TEENS), 1)
}

# Longest first: "twenty-second" before "second".
ORDINAL = (
    "(?:" + "|".join(sorted((word.replace("-", "[- ]") for word in _ORDINAL_WORDS), key=len, reverse=True)) + r"|\d{1,2}(?:st|nd|rd|th))"
)
COUNT = r"(?:\d{1,3}|a couple of|a couple|couple of|a few|" + "|".join((*_UNITS, *_TEENS, "an", "a")) + ")"

_DIGIT_WORDS = {"oh": "0", "o": "0", "zero": "0"} | {word: str(number) for number, word in enumerate(_UNITS, 1)}
NUMBER_WORD = "(?:zero|oh|" + "|".join((*_UNITS, *_TEENS, *_TENS)) + "|hundred|thousand|double|triple)"
# At least three figures, or three number words in a row: shorter runs are hours, ages and quantities.
FIGURES = re.compile(rf"\b(?:\d(?:[\s,\-]*\d){{2,}}|{NUMBER_WORD}(?:[\s,\-]+(?:{NUMBER_WORD}|\d+)){{2,}})\b", re.I)


def day_number(ordinal: str) -> int | None:
    """ "twenty second" and "22nd" are 22."""
    word = ordinal.lower().replace(" ", "-")
    digits = re.match(r"\d+", word)
    day = int(digits.group()) if digits else _DAY_OF.get(word)
    return day if day and 1 <= day <= 31 else None


def count(words: str) -> int | None:
    words = words.lower().strip()
    return int(words) if words.isdecimal() else _COUNT_OF.get(words)


def digits(words: str) -> str:
    """The figures of a run that was spoken digit by digit; empty when it was not."""
    spoken = re.findall(r"[a-z]+|\d", words.lower())
    figures: list[str] = []
    repeat = 1
    for word in spoken:
        if word in ("double", "triple"):
            repeat = 2 if word == "double" else 3
            continue
        figure = word if word.isdecimal() else _DIGIT_WORDS.get(word)
        if figure is None:
            return ""
        figures.append(figure * repeat)
        repeat = 1
    return "".join(figures)


def digit_pattern(figures: str) -> str:
    """A pattern that finds the same figures however they are said or written."""
    spoken = {figure: [word for word, value in _DIGIT_WORDS.items() if value == figure] for figure in "0123456789"}
    return r"[\s,\-]*".join(f"(?:{'|'.join([figure, *spoken[figure]])})" for figure in figures)
