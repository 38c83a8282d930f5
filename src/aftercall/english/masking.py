"""Masks: the values of secrets blotted out of texts, however they are said again.

One pass over a text finds all values at once: time grows with the text and with the values, not
with their product. Strings in, strings out.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from aftercall.english.text import MASK, TEENS, TENS, UNITS
from aftercall.english.words import remember, stems

_SAID = ("zero", "oh", "nought", "hundred", "thousand", "double", "triple")
_NUMBER_WORD = f"(?:{'|'.join((*_SAID, *UNITS, *TEENS, *TENS))})"
_WORD = re.compile(r"\w+")
_SPOKEN_FIGURES = {"oh": "0", "o": "0", "zero": "0", "nought": "0"} | {
    word: str(number) for number, word in enumerate(UNITS, 1)
}
_FIGURE = re.compile(
    "|".join((r"\d", *sorted(_SPOKEN_FIGURES, key=len, reverse=True))), re.I
)
# `\d++`: where a long number matches in part, no other way to cut it is tried.
_ALL_NUMBERS = re.compile(
    rf"(?:(?:{_NUMBER_WORD}|\d++|uh|um|er|then|and)[\s,\-]*)+", re.I
)
_BETWEEN_FIGURES = re.compile(r"[\s,\-]*")
# Letters that a pattern without case takes for plain ones, and folding does not.
_SAME = str.maketrans({"ı": "i", "İ": "i"})
_MIN_FIGURES = 3  # worth hunting for elsewhere in the call
_LONG_FIGURES = 6  # are read out in groups
_MIN_TELLING_CHARS = 6

Tokens = Sequence[str]
Span = tuple[int, int]


class ValueMask:
    """Blots values out of texts, letter for letter.

    A value of figures is found however it is grouped or said; any other by its words, and by runs
    of three of them that tell enough.
    """

    def __init__(self, values: Iterable[str]) -> None:
        phrases: list[Tokens] = []
        figures: list[Tokens] = []
        for value in dict.fromkeys(values):
            said, counted = _keys_of(value)
            phrases += said
            figures += counted
        self._phrases = _Matcher(phrases)
        self._figures = _Matcher(figures)

    def apply(self, text: str) -> str:
        """The text with every value blotted out, where several overlap, too."""
        pieces: list[str] = []
        done = 0
        for start, end in sorted(
            (*self._find_phrases(text), *self._find_figures(text))
        ):
            if end > done:
                start = max(start, done)
                pieces += [text[done:start], MASK * (end - start)]
                done = end
        return "".join((*pieces, text[done:]))

    def _find_phrases(self, text: str) -> Iterator[Span]:
        if not self._phrases.sequences:
            return
        words = [(_fold(match.group()), match.span()) for match in _WORD.finditer(text)]
        for first, last in self._phrases.find([word for word, _ in words]):
            yield words[first][1][0], words[last][1][1]

    def _find_figures(self, text: str) -> Iterator[Span]:
        """Figures in a row, said or written, with no other figure beside them."""
        if not self._figures.sequences:
            return
        tokens: list[str] = []
        spans: list[Span] = []
        end = 0
        for match in _FIGURE.finditer(text):
            if not _BETWEEN_FIGURES.fullmatch(text, end, match.start()):
                tokens.append("")  # nothing matches over this
                spans.append((end, end))
            tokens.append(_to_figure(match.group()))
            spans.append(match.span())
            end = match.end()
        for first, last in self._figures.find(tokens):
            start = spans[first][0]
            end = spans[last][1]
            if not (
                text[start - 1 : start].isdecimal() or text[end : end + 1].isdecimal()
            ):
                yield start, end


class _Matcher:
    """Finds many sequences of tokens in one pass, whichever of them overlap."""

    def __init__(self, sequences: Iterable[Tokens]) -> None:
        self.sequences = set(map(tuple, sequences))
        self._lengths: dict[str, set[int]] = {}
        """Of the sequences that begin with a token."""
        for sequence in self.sequences:
            self._lengths.setdefault(sequence[0], set()).add(len(sequence))

    def find(self, tokens: Tokens) -> Iterator[tuple[int, int]]:
        """The first and the last token of each sequence found."""
        for at, token in enumerate(tokens):
            for length in self._lengths.get(token, ()):
                sequence = tuple(tokens[at : at + length])
                if sequence in self.sequences:
                    yield at, at + len(sequence) - 1


@remember
def _keys_of(value: str) -> tuple[list[Tokens], list[Tokens]]:
    """The phrases and the rows of figures by which a value is known again.

    The whole value; the groups of a long number and the telling runs of a sentence, which agents
    repeat.
    """
    words = [_fold(word) for word in _WORD.findall(value)]
    if not words:
        return [], []
    figures = figures_of(value) if _ALL_NUMBERS.fullmatch(value) else ""
    if len(figures) >= _MIN_FIGURES:
        figures = "".join(map(_to_figure, figures))
        groups = (*re.findall(r"\d{3,}", value), figures[:4], figures[-4:])
        rows = [figures, *(groups if len(figures) >= _LONG_FIGURES else ())]
        pairs = _say_in_pairs(figures)
        return [words, *([pairs] if pairs else [])], [
            [_to_figure(figure) for figure in row] for row in rows
        ]
    runs = (words[at : at + 3] for at in range(len(words) - 2))
    telling = filter(_is_telling, runs) if len(words) > 3 else ()
    return [words, *telling], []


def _is_telling(run: Tokens) -> bool:
    """Whether words are enough to know a value again: "the" alone hides nothing."""
    found = stems(" ".join(run))
    return len(found) > 1 or any(len(stem) >= _MIN_TELLING_CHARS for stem in found)


def _say_in_pairs(figures: str) -> list[str]:
    """The figures said two by two, "nineteen eighty-four"; nothing where nobody says them so."""
    pairs = [_say(int(figures[at : at + 2])) for at in range(0, len(figures) - 1, 2)]
    is_said = len(figures) % 2 == 0 and all(pairs)
    return [word for pair in pairs for word in pair] if is_said else []


def _say(number: int) -> list[str]:
    """A number below a hundred as it is spoken."""
    if number < 10:
        return ["oh", UNITS[number - 1]] if number else []
    if number < 20:
        return [TEENS[number - 10]]
    unit = [UNITS[number % 10 - 1]] if number % 10 else []
    return [TENS[number // 10 - 2], *unit]


def _fold(word: str) -> str:
    """The word without regard to capitals; "zero" and "oh" are the same figure."""
    folded = word.translate(_SAME).casefold()
    return "oh" if folded == "zero" else folded


def _to_figure(said: str) -> str:
    """The digit that is written or said."""
    return str(int(said)) if said.isdecimal() else _SPOKEN_FIGURES[_fold(said)]


def figures_of(words: str) -> str:
    """The figures of a run however it is grouped: "nineteen eighty four" and "one nine eight
    four" are 1984; empty past a hundred.
    """
    figures = ""
    repeat = 1
    tens = False
    for word in re.findall(r"[a-z]+|\d+", words.lower()):
        if word in ("double", "triple"):
            repeat = 2 if word == "double" else 3
        elif word in TENS:
            figures += str(20 + 10 * TENS.index(word))
        elif word in TEENS:
            figures += str(10 + TEENS.index(word))
        elif (
            figure := word if word.isdecimal() else _SPOKEN_FIGURES.get(word)
        ) is None:
            if word in ("hundred", "thousand"):
                return ""
            continue
        else:
            figures = (
                figures[:-1] + figure
                if tens and figure != "0" and len(figure) == 1
                else figures + figure * repeat
            )
            repeat = 1
        tens = word in TENS
    return figures
