"""Numbers as they are spoken, in figures: "twenty two" is 22, "two thousand" 2000, "nineteen
seventy-one" 1971, "the third" the 3rd.
"""

import re

from aftercall.english.numbers import ORDINAL_WORDS, TEENS, TENS, UNITS

_SMALL = {word: number for number, word in enumerate(("zero", *UNITS, *TEENS))}
_TENS = {word: 10 * number for number, word in enumerate(TENS, 2)}
_SCALES = {"hundred": 100, "thousand": 1_000, "grand": 1_000, "million": 1_000_000}
_PLACES = {
    word: number
    for number, word in enumerate(ORDINAL_WORDS, 1)
    if number > 2 and "-" not in word
}
_FIRST = {"first": 1, "second": 2}
_CENTURIES = frozenset({19, 20})
_PIECES = re.compile(r"(\W+)")
COUNTED = frozenset((*_SMALL, *_TENS, *_SCALES, *_PLACES, *_FIRST, "oh"))
"""A text without any of these has no number to be written otherwise."""


def write_figures(words: str) -> str:
    pieces = _PIECES.split(words)
    out: list[str] = []
    at = 0
    while at < len(pieces):
        written, end = _read(pieces, at)
        out.append(written)
        at = end
    return "".join(out)


def _read(pieces: list[str], at: int) -> tuple[str, int]:
    """The piece at `at` as it is written, or all that belongs to its number; and where the next
    one is.
    """
    word = pieces[at]
    if word == "oh":
        return ("0" if _beside_number(pieces, at) else word), at + 1
    if (place := _place(pieces, at)) is not None:
        return place
    value, end = _small(pieces, at)
    if value is None or (word.isdecimal() and not _scale(pieces, end)):
        return word, at + 1
    below, after = _small(pieces, end + 1) if _joins(pieces, end) else (None, end)
    if (
        value in _CENTURIES
        and not word.isdecimal()
        and below is not None
        and below >= 10
        and not pieces[end + 1].isdecimal()
    ):
        return str(100 * value + below), after
    return _scaled(pieces, value, end)


def _scaled(pieces: list[str], value: int, end: int) -> tuple[str, int]:
    """ "two hundred thousand five hundred and one": hundreds belong to the larger scale behind
    them, if one follows.
    """
    total, group, last = 0, value, 10**9
    while 0 < (scale := _scale(pieces, end)) < last and not (
        scale == 100 and group >= 100
    ):
        end += 2
        if scale == 100:
            group *= 100
        else:
            total, group, last = total + group * scale, 0, scale
        further = end + 2 if _joins(pieces, end) and pieces[end + 1] == "and" else end
        below, after = (
            _small(pieces, further + 1) if _joins(pieces, further) else (None, end)
        )
        if (
            below is not None
            and below < scale
            and not (scale == 100 and _scale(pieces, after) == 100)
        ):
            group, end = group + below, after
    return str(total + group), end


def _scale(pieces: list[str], at: int) -> int:
    return _SCALES.get(pieces[at + 1], 0) if _joins(pieces, at) else 0


def _small(pieces: list[str], at: int) -> tuple[int | None, int]:
    """A number below a hundred, or one in figures."""
    word = pieces[at]
    if word in _TENS:
        unit = _SMALL.get(pieces[at + 2], 0) if _joins(pieces, at + 1) else 0
        return (_TENS[word] + unit, at + 3) if 0 < unit < 10 else (_TENS[word], at + 1)
    if word in _SMALL:
        return _SMALL[word], at + 1
    return (
        (int(word), at + 1)
        if word.isdecimal() and len(word) < 10 and word[:1] != "0"
        else (None, at)
    )


def _place(pieces: list[str], at: int) -> tuple[str, int] | None:
    """ "third", "twenty-fourth", and "the second of May": else a second one is another one."""
    word = pieces[at]
    if word in _PLACES:
        return _ordinal(_PLACES[word]), at + 1
    if (
        word in _FIRST
        and pieces[at + 1 : at + 3] == [" ", "of"]
        and at + 4 < len(pieces)
    ):
        return _ordinal(_FIRST[word]), at + 1
    if word in ("twenty", "thirty") and _joins(pieces, at + 1):
        unit = (
            _PLACES.get(pieces[at + 2], 10)
            if pieces[at + 2] not in _FIRST
            else _FIRST[pieces[at + 2]]
        )
        if unit < 10:
            return _ordinal(_TENS[word] + unit), at + 3
    return None


def _ordinal(number: int) -> str:
    ending = (
        "th"
        if 10 < number % 100 < 20
        else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{ending}"


def _joins(pieces: list[str], at: int) -> bool:
    """Whether only a space or a dash stands between this place and a further word."""
    return at + 1 < len(pieces) and pieces[at] in (" ", "-")


def _beside_number(pieces: list[str], at: int) -> bool:
    beside = [pieces[near] for near in (at - 2, at + 2) if 0 <= near < len(pieces)]
    return any(word in _SMALL or word in _TENS or word.isdecimal() for word in beside)
