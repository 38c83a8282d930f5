"""Numbers as they are spoken, in figures: "twenty second" is `22nd`, "a hundred and four" `104`."""

from collections.abc import Iterator, Sequence


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


UNITS = _words("one two three four five six seven eight nine")
TEENS = _words(
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
TENS = _words("twenty thirty forty fifty sixty seventy eighty ninety")
_UNIT_PLACES = _words(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
)
ORDINAL_WORDS = (
    *_UNIT_PLACES,
    "twentieth",
    *(f"twenty-{word}" for word in _UNIT_PLACES[:9]),
    "thirtieth",
    "thirty-first",
)
_SMALL = {word: number for number, word in enumerate(("zero", *UNITS, *TEENS))}
_TENS = {word: 10 * number for number, word in enumerate(TENS, 2)}
_PLACES = {word: number for number, word in enumerate(_UNIT_PLACES, 1)} | {
    "twentieth": 20,
    "thirtieth": 30,
}
_SCALES = {"hundred": 100, "thousand": 1_000}
_REPEATS = {"double": 2, "triple": 3}
# Alone these are more often a pronoun, an order or a moment than a number.
_AMBIGUOUS = frozenset(("one", "first", "second", "third"))
COUNTED = frozenset((*_SMALL, *_TENS, *_PLACES, *_SCALES, *_REPEATS))
DIGITS = frozenset((*_SMALL, *_TENS, *_REPEATS, *map(str, range(100))))
_UNITS_OF_TIME = frozenset(("oclock", "am", "pm", "thirty", "fifteen", "o'clock"))

Group = tuple[str, int]
"""A word or a number in figures, and how many words it takes."""


def group_numbers(words: Sequence[str], breaks: Sequence[bool]) -> Iterator[Group]:
    """The words with numbers in figures; no number reaches over a break."""
    at = 0
    while at < len(words):
        end = at
        while end < len(words) - 1 and not breaks[end]:
            end += 1
        yield from _group(words[at : end + 1])
        at = end + 1


def _group(words: Sequence[str]) -> Iterator[Group]:
    at = 0
    while at < len(words):
        word = words[at]
        figures, taken = _read(words, at) if word in COUNTED or word == "a" else ("", 0)
        if not taken or (
            word in _AMBIGUOUS and taken == 1 and not _is_counted(words, at)
        ):
            figures, taken = word, 1
        yield figures, taken
        at += taken


def _is_counted(words: Sequence[str], at: int) -> bool:
    """Whether a lone "one" stands among figures or before a time of day."""
    if words[at] != "one":
        return False
    beside = (*words[max(0, at - 1) : at], *words[at + 1 : at + 2])
    return any(
        (other in COUNTED and other not in _PLACES)
        or other in _UNITS_OF_TIME
        or other.isdecimal()
        for other in beside
    )


def _word(words: Sequence[str], at: int) -> str:
    return words[at] if at < len(words) else ""


def _read(words: Sequence[str], at: int) -> Group:
    """The number that begins here, or no words at all."""
    word, following = words[at], _word(words, at + 1)
    if word in _REPEATS and _SMALL.get(following, 10) < 10:
        return " ".join([str(_SMALL[following])] * _REPEATS[word]), 2
    if word == "a" and following in _SCALES:
        return _scale(words, at + 2, _SCALES[following], 2)
    if word in _PLACES:
        return _ordinal(_PLACES[word]), 1
    if word in _TENS and _PLACES.get(following, 10) < 10:
        return _ordinal(_TENS[word] + _PLACES[following]), 2
    value, taken = _below_hundred(words, at)
    after = _word(words, at + taken)
    if value and after in _SCALES:
        return _scale(words, at + taken + 1, value * _SCALES[after], taken + 1)
    if taken and after == "point":
        decimals, more = _below_hundred(words, at + taken + 1)
        return (
            (f"{value}.{decimals}", taken + 1 + more) if more else (str(value), taken)
        )
    return (str(value), taken) if taken else ("", 0)


def _scale(words: Sequence[str], at: int, value: int, taken: int) -> Group:
    """What follows a hundred or a thousand: "and thirty five"."""
    skip = int(_word(words, at) == "and")
    rest, more = _below_hundred(words, at + skip)
    if more and _word(words, at + skip + more) == "hundred":
        rest, more = rest * 100, more + 1
    return (str(value + rest), taken + skip + more) if more else (str(value), taken)


def _below_hundred(words: Sequence[str], at: int) -> tuple[int, int]:
    word, following = _word(words, at), _word(words, at + 1)
    if word in _TENS:
        unit = _SMALL.get(following, 0)
        return (_TENS[word] + unit, 2) if 0 < unit < 10 else (_TENS[word], 1)
    return (_SMALL[word], 1) if word in _SMALL else (0, 0)


def _ordinal(number: int) -> str:
    teens = 10 < number % 100 < 20
    ending = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
