"""The normal form of spoken English.

Lower-case words without hesitations and false starts, contractions expanded, numbers as figures.
Every word keeps its place in the text it came from, so that any piece can be cited verbatim.
"""

import itertools
import re
from calendar import day_name, month_name
from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import eq
from typing import NamedTuple

from aftercall.english.words import (
    by_form,
    remember,
    stems,
    vocabulary,
    word_class,
    word_list,
    word_table,
)

# Stands for each character of a secret; private use, so no transcript means anything by it.
MASK = "\ue000"
SENTENCE_ENDS = ".?!\n;—"
_ENDS = frozenset(SENTENCE_ENDS)
_TOKEN = re.compile(rf"[^\W_]+(?:['’.:/@+\-][^\W_]+)*|{MASK}+|[.,?!;:…—–\n]")
# Marks as they are kept with the word before them.
_STOPS = {mark: mark for mark in ".,?!;—\n"} | {"…": ",", "–": "—", ":": ","}
_DASH = re.compile(r"\s[-–—]+\s|\.\.\.+")
_ABBREVIATIONS = vocabulary("dr mr mrs ms st prof vs jr sr approx")
MAX_PIECE_CHARS = 1_200  # more than a minute of speech
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)]*\s|\n")

_HESITATIONS = word_class("hesitation")
_MAYBE_DROPPED = _HESITATIONS | {"like"}
_WHOLE = by_form(word_table("contractions"))
_UNMARKED = {word.replace("'", ""): word for word in word_class("contracted")}
# Without an apostrophe these are words of their own, except before a verb.
_BARE = {"ill": "will", "id": "would"}
_CONTRACTED = frozenset((*_WHOLE, *_UNMARKED, *_BARE))
_AFTER_BARE = vocabulary(
    """
    be bring call come do get give go have just leave let like love make need pick prefer put
    rather ring see send speak take tell text think try want
    """
)
_ENDINGS = {"m": "am", "re": "are", "ve": "have", "ll": "will", "d": "would"}
# Before "'s" these have a verb; other words own something.
_SUBJECTS = vocabulary(
    """
    it that he she there what who where here how when everything nobody everybody someone
    somebody this which name one everyone pin password passcode code number combination
    """
)
_PREDICATES = vocabulary(
    """
    a an the not been got gone no in on at off out fine good ok okay great perfect better best
    broken dead down blocked stuck full free closed open new gone
    """
)
_TWICE_MEANT = vocabulary("very really so had that many bye")


_GENERAL = {f"{day.lower()}{end}": "<day>" for day in day_name for end in ("", "s")} | {
    month.lower(): "<month>" for month in month_name if month != "May"
}


def generalise(word: str) -> str:
    """All days are one word to a model, and so are all months and numbers."""
    if word[0].isdigit():
        return "<ord>" if word.endswith(("st", "nd", "rd", "th")) else "<num>"
    return _GENERAL.get(word, word)


class Word(NamedTuple):
    """A word in normal form, its place in the text, and the punctuation after it."""

    norm: str
    start: int
    end: int
    stop: str = ""


class Plain:
    """A text in normal form; none of it changes."""

    def __init__(self, source: str, words: tuple[Word, ...]) -> None:
        self.source = source
        self.words = words
        self.text = " ".join([word.norm for word in words])

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        return frozenset([word.norm for word in self.words])

    def index(self, offset: int) -> int:
        """The word at or after an offset of `text`; the number of words past its end."""
        is_past = offset >= len(self.text)
        return len(self.words) if is_past else self.text.count(" ", 0, offset + 1)

    def offset(self, index: int) -> int:
        """Where a word begins in `text`."""
        return sum(len(word.norm) + 1 for word in self.words[:index])

    def slice(self, first: int, last: int | None = None) -> "Plain":
        return Plain(self.source, self.words[first:last])

    def after(self, offset: int) -> "Plain":
        """The words from an offset of `text` on."""
        return self.slice(self.index(offset))

    def between(self, start: int, end: int) -> "Plain":
        """The words between two offsets of `text`."""
        inside = self.text[start:end]
        if not inside.strip():
            return self.slice(0, 0)
        last = start + len(inside.rstrip()) - 1
        return self.slice(self.index(start), self.index(last) + 1)

    @cached_property
    def general(self) -> list[str]:
        """The words as a model knows them."""
        return [generalise(word.norm) for word in self.words]

    @cached_property
    def cited(self) -> str:
        """The verbatim piece of the text that these words span."""
        if not self.words:
            return ""
        return self.source[self.words[0].start : self.words[-1].end]

    @cached_property
    def said(self) -> str:
        """The words as they were said, without hesitations and false starts."""
        pieces: list[str] = []
        at = -1
        for word in self.words:
            if word.start == at:
                continue
            at = word.start
            pieces.append(self.source[word.start : word.end] + word.stop.strip("\n"))
        return " ".join(pieces).rstrip(".,;?!—")

    @property
    def ends_with(self) -> str:
        return self.words[-1].stop if self.words else ""


def cut_text(text: str, max_chars: int = MAX_PIECE_CHARS) -> list[str]:
    """The text in verbatim pieces, cut after a sentence, else after a space, else anywhere."""
    pieces = []
    start = 0
    while len(text) - start > max_chars:
        end = start + _find_cut(text[start : start + max_chars])
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]]


def _find_cut(piece: str) -> int:
    """In the second half, so that pieces do not get short."""
    half = len(piece) // 2
    ends = [match.end() for match in _SENTENCE_END.finditer(piece, half)]
    space = piece.rfind(" ", half) + 1
    return ends[-1] if ends else space or len(piece)


@remember
def normalise(text: str) -> Plain:
    tokens = _tokenise(text)
    words: list[Word] = []
    for at, word in enumerate(tokens, 1):
        if word.norm.isalpha() and word.norm not in _CONTRACTED:
            words.append(word)
        else:
            following = tokens[at].norm if at < len(tokens) else ""
            words += _expand(word, following)
    if not _MAYBE_DROPPED.isdisjoint([word.norm for word in words]):
        words = _drop_hesitations(words)
    if not COUNTED.isdisjoint([word.norm for word in words]):
        words = list(_join_numbers(words))
    return Plain(text, tuple(_drop_false_starts(words)))


def _tokenise(text: str) -> list[Word]:
    words: list[Word] = []
    spaced = _DASH.sub(lambda match: "—".ljust(len(match.group())), text)
    for match in _TOKEN.finditer(spaced.replace("’", "'")):
        said = match.group()
        stop = _STOPS.get(said)
        if stop is None:
            words.append(Word(said.lower(), match.start(), match.end()))
        elif words and not (said == "." and words[-1].norm in _ABBREVIATIONS):
            last = words[-1]
            if last.stop not in _ENDS:
                words[-1] = Word(last.norm, last.start, last.end, stop)
    return words


def _expand(word: Word, following: str) -> Iterator[Word]:
    """A contraction as its two words, both at the place of the one; hyphened numbers apart."""
    parts = _split_word(word.norm, following)
    for part in parts[:-1]:
        yield Word(part, word.start, word.end)
    yield Word(parts[-1], word.start, word.end, word.stop)


def _split_word(norm: str, following: str) -> list[str]:
    if "-" in norm and COUNTED.issuperset(norm.split("-")):
        return norm.split("-")
    if norm in _BARE and following in _AFTER_BARE:
        return ["i", _BARE[norm]]
    norm = _UNMARKED.get(norm, norm)
    if norm in _WHOLE:
        return _WHOLE[norm].split()
    if norm in word_class("illness") or "'" not in norm:
        return [norm]
    return _split_contraction(norm, following)


def _split_contraction(norm: str, following: str) -> list[str]:
    if norm.endswith("n't"):
        return [norm[:-3], "not"]
    stem, _, ending = norm.rpartition("'")
    if ending in _ENDINGS:
        return [stem, _ENDINGS[ending]]
    is_verb = ending == "s" and (stem in _SUBJECTS or _is_predicate(following))
    return [*_split_word(stem, ""), "is"] if is_verb else [norm]


def _is_predicate(word: str) -> bool:
    """What stands after a verb, not after an owner: "the sink's leaking", "Friday's fine"."""
    return (
        word in _PREDICATES
        or word in COUNTED
        or word[:1].isdigit()
        or (word.endswith("ing") and len(word) > 5)
    )


def _drop_hesitations(words: list[Word]) -> list[Word]:
    kept: list[Word] = []
    for at, word in enumerate(words):
        is_filler = word.norm == "like" and word.stop == ","
        is_limit = word.norm == "just" and bool(kept) and kept[-1].norm == "not"
        if word.norm == "oh" and _is_zero(words, at):
            kept.append(word._replace(norm="zero"))
        elif is_limit or (word.norm not in _HESITATIONS and not is_filler):
            kept.append(word)
        elif kept and word.stop and word.stop != "," and not kept[-1].stop.strip(","):
            kept[-1] = kept[-1]._replace(stop=word.stop)
    return kept


def _is_zero(words: list[Word], at: int) -> bool:
    """ "Four oh one": between figures it is one."""
    before = [word for word in words[max(0, at - 1) : at] if not word.stop]
    after = words[at + 1 : at + 2] if not words[at].stop else []
    return any(word.norm in DIGITS or word.norm == "point" for word in before + after)


def _join_numbers(words: list[Word]) -> Iterator[Word]:
    """Numbers in figures; none reaches over a stop."""
    ends = [at for at, word in enumerate(words, 1) if word.stop]
    for first, end in itertools.pairwise((0, *ends, len(words))):
        yield from _join_in_phrase(words[first:end])


def _join_in_phrase(words: list[Word]) -> Iterator[Word]:
    norms = [*(word.norm for word in words), *_NO_WORDS]
    at = 0
    while at < len(words):
        figures, taken = _read_number(norms, at)
        is_vague = taken == 1 and norms[at] in _AMBIGUOUS
        if not taken or (is_vague and not _is_counted(norms, at)):
            figures = norms[at]
            taken = 1
        last = words[at + taken - 1]
        *others, digit = figures.split()  # "double four" is two figures at one place
        for other in others:
            yield Word(other, words[at].start, last.end)
        yield Word(digit, words[at].start, last.end, last.stop)
        at += taken


def _drop_false_starts(words: list[Word]) -> list[Word]:
    """ "In the, in the art room" is "in the art room"; figures and letters are meant twice.

    Most texts hold no word twice at such a distance, and are not looked at word by word.
    """
    for length in (4, 3, 2, 1):
        norms = [word.norm for word in words]
        if any(map(eq, norms, norms[length:])):
            words = _drop_repeated(words, length)
    return words


def _drop_repeated(words: list[Word], length: int) -> list[Word]:
    """Without the first of two equal runs of so many words."""
    kept: list[Word] = []
    for word in words:
        kept.append(word)
        if _is_repeated(kept[-2 * length : -length], kept[-length:]):
            del kept[-2 * length : -length]
    return kept


def _is_repeated(first: list[Word], second: list[Word]) -> bool:
    norms = [word.norm for word in first]
    if norms != [word.norm for word in second] or first[-1].stop in _ENDS:
        return False
    return not any(
        (len(norm) == 1 and norm not in "ia")
        or norm[0].isdigit()
        or norm in _TWICE_MEANT
        for norm in norms
    )


UNITS = word_list("one two three four five six seven eight nine")
TEENS = word_list(
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
TENS = word_list("twenty thirty forty fifty sixty seventy eighty ninety")
_UNIT_PLACES = word_list(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
)
SMALL_NUMBERS = {word: number for number, word in enumerate(("zero", *UNITS, *TEENS))}
ROUND_NUMBERS = {word: 10 * number for number, word in enumerate(TENS, 2)}
ORDINALS = {word: number for number, word in enumerate(_UNIT_PLACES, 1)} | {
    "twentieth": 20,
    "thirtieth": 30,
}
_SCALES = {"hundred": 100, "thousand": 1_000}
_REPEATS = {"double": 2, "triple": 3}
# Alone these are more often a pronoun, an order or a moment than a number.
_AMBIGUOUS = frozenset(("one", "first", "second", "third"))
COUNTED = frozenset((*SMALL_NUMBERS, *ROUND_NUMBERS, *ORDINALS, *_SCALES, *_REPEATS))
DIGITS = frozenset((*SMALL_NUMBERS, *ROUND_NUMBERS, *_REPEATS, *map(str, range(100))))
_UNITS_OF_TIME = frozenset(("oclock", "am", "pm", "thirty", "fifteen", "o'clock"))

_NO_WORDS = [""] * 8  # behind the last word, as far as a number reaches
Group = tuple[str, int]
"""A number in figures, and how many words it takes."""


def _is_counted(words: Sequence[str], at: int) -> bool:
    """Whether a lone "one" stands among figures or before a time of day."""
    if words[at] != "one":
        return False
    beside = (*words[max(0, at - 1) : at], *words[at + 1 : at + 2])
    return any(
        (other in COUNTED and other not in ORDINALS)
        or other in _UNITS_OF_TIME
        or other.isdecimal()
        for other in beside
    )


def _read_number(words: Sequence[str], at: int) -> Group:
    """The number that begins here, or no words at all."""
    word = words[at]
    following = words[at + 1]
    if word != "a" and word not in COUNTED:
        return "", 0
    if word in _REPEATS and SMALL_NUMBERS.get(following, 10) < 10:
        return " ".join([str(SMALL_NUMBERS[following])] * _REPEATS[word]), 2
    if word == "a" and following in _SCALES:
        return _scale(words, at + 2, _SCALES[following], 2)
    if word in ORDINALS:
        return _ordinal(ORDINALS[word]), 1
    if word in ROUND_NUMBERS and ORDINALS.get(following, 10) < 10:
        return _ordinal(ROUND_NUMBERS[word] + ORDINALS[following]), 2
    value, taken = _below_hundred(words, at)
    after = words[at + taken]
    if value and after in _SCALES:
        return _scale(words, at + taken + 1, value * _SCALES[after], taken + 1)
    return (str(value), taken) if taken else ("", 0)


def _scale(words: Sequence[str], at: int, value: int, taken: int) -> Group:
    """What follows a hundred or a thousand: "and thirty five"."""
    skip = int(words[at] == "and")
    rest, more = _below_hundred(words, at + skip)
    if more and words[at + skip + more] == "hundred":
        rest, more = rest * 100, more + 1
    return (str(value + rest), taken + skip + more) if more else (str(value), taken)


def _below_hundred(words: Sequence[str], at: int) -> tuple[int, int]:
    word = words[at]
    if word in ROUND_NUMBERS:
        unit = SMALL_NUMBERS.get(words[at + 1], 0)
        return (
            (ROUND_NUMBERS[word] + unit, 2)
            if 0 < unit < 10
            else (ROUND_NUMBERS[word], 1)
        )
    return (SMALL_NUMBERS[word], 1) if word in SMALL_NUMBERS else (0, 0)


def _ordinal(number: int) -> str:
    last = 0 if 10 < number < 20 else number % 10
    return f"{number}{('th', 'st', 'nd', 'rd', *['th'] * 6)[last]}"


_COUNTED = re.compile(r"\b(\d+) (\w+)")


def is_other_amount(title: str, other: str) -> bool:
    """Whether both count the same thing, and not the same number of it."""
    counted = _count_things(other)
    return any(
        number != counted.get(thing, number)
        for thing, number in _count_things(title).items()
    )


def _count_things(title: str) -> dict[frozenset[str], str]:
    found = _COUNTED.findall(normalise(title).text)
    return {stems(thing): number for number, thing in found if stems(thing)}
