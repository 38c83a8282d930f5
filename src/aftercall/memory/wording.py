"""Spoken words in one plain form, so that two wordings of one thing can be compared."""

import re
import unicodedata

from aftercall.english.numbers import ORDINAL_WORDS, TEENS, TENS, UNITS
from aftercall.english.words import vocabulary


def _written(*forms: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), written) for pattern, written in forms)


_CONTRACTIONS = _written(
    (r"\bwon't\b", "will not"),
    (r"\bcan't\b", "can not"),
    (r"\bain't\b", "is not"),
    (r"n't\b", " not"),
    (r"\blet's\b", "let us"),
    (r"'re\b", " are"),
    (r"'ve\b", " have"),
    (r"'ll\b", " will"),
    (r"'m\b", " am"),
    (r"'d\b", " would"),
    (r"\b(it|that|he|she|there|here|what|who|where|everything|which)'s\b", r"\1 is"),
    (r"(\w)'s(?= (?:on|at|in|off|no|not|now|a|an|the|my|our)\b)", r"\1 is"),
)
_WITHOUT_MARK = re.compile(
    r"\b(d(?:o|oes|id)|is|are|was|ca|wo|would|could|should|have|has)nt\b"
)
_CANNOT = re.compile(r"\bcann(?:ot|ae)\b")
# "The client", or "client" first thing; "my client" is somebody else.
_SPEAKER = re.compile(
    r"\b(?:(?:the |(?<![^\W_] ))(?:caller|user|customer|client)(?P<own>'s)?"
    r"|(?P<ours>ours?|mine)|we|us|me|myself)\b"
)
SPEAKERS = vocabulary("caller user customer client our ours mine we us me myself")
_HAS_SIDES = (
    "ear|eye|side|hand|arm|leg|knee|foot|shoulder|hip|ankle|wrist|lung|breast|thumb|elbow|wing|door"
    "|tyre|tire|wheel|bank|lane"
)
_FILLER = re.compile(
    r"\b(?:um+|uh+|er+m?|ah+|hmm|eh|oh(?! \d)|well(?! done)|you know|i mean|i guess|i think"
    r"|i believe|basically|honestly|really|actually|just|so|anyway|please|okay|ok|yes|yeah|yep"
    rf"|right(?! (?:{_HAS_SIDES}))|listen|look|by the way|as i said|like i said|to be honest"
    r"|of course|definitely|absolutely|quite|very|currently|these days|nowadays|at the moment"
    r"|still(?! water)|also|too|already|simply|always|usually|normally|generally|typically|mostly)\b"
)
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:. ](\d\d))? ?(a ?\.?m|p ?\.?m)\b\.?")
_HALF = re.compile(r"\b(half|quarter) (past|to) (\d{1,2})\b")
_IN_THE = re.compile(
    r"\b(\d{1,2})(?: o'?clock)? (?:in the (morning|afternoon|evening)|at night)\b"
)
_EMAIL_SPOKEN = re.compile(r"\b([\w.+-]+) at ([\w-]+) dot (\w+)\b")
_DIGITS_APART = re.compile(r"\b\d(?:[ -]\d)+\b")
_GROUPS = re.compile(r"(?<![\d:])\+?\d{2,}(?:[ -]\d{2,})+\b")
_PIECE = re.compile(r"[^\W_]+")
_FIGURE = re.compile(r"\d")
_ODD = re.compile(r"[^\w\s@+:'.-]|(?<!\w)['.-]|['.-](?!\w)")
_TOKEN = re.compile(r"[^\W_]+(?:[.@+:'-][^\W_]+)*")
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
_NUMBER_PIECES = re.compile(r"(\W+)")
COUNTED = frozenset((*_SMALL, *_TENS, *_SCALES, *_PLACES, *_FIRST, "oh"))
"""A text without any of these has no number to be written otherwise."""


def plain(text: str) -> str:
    """Lower case, contractions written out, the caller as `i`, number words as figures, no
    filler.
    """
    words = fold(text)
    if "'" in words:
        for pattern, written in _CONTRACTIONS:
            words = pattern.sub(written, words)
    if "cann" in words:
        words = _CANNOT.sub("can not", words)
    if "nt" in words:
        words = _WITHOUT_MARK.sub(r"\1 not", words)
    said = set(_PIECE.findall(words))
    if not SPEAKERS.isdisjoint(said):
        words = _SPEAKER.sub(
            lambda who: "my" if who["own"] or who["ours"] else "i", words
        )
    if not COUNTED.isdisjoint(said):
        words = write_figures(words)
    if " dot " in words:
        words = _EMAIL_SPOKEN.sub(r"\1@\2.\3", words)
    if _FIGURE.search(words):
        words = _hours(words)
        words = _DIGITS_APART.sub(lambda run: re.sub(r"[ -]", "", run.group()), words)
        words = _GROUPS.sub(lambda run: _joined(run.group()), words)
    words = _FILLER.sub(" ", words)
    return " ".join(_ODD.sub(" ", words).split())


def fold(text: str) -> str:
    return (
        unicodedata.normalize("NFKC", text)
        .casefold()
        .replace("’", "'")
        .replace("‘", "'")
    )


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _hours(words: str) -> str:
    words = _HALF.sub(lambda half: _half(half[1], half[2], int(half[3])), words)
    words = _CLOCK.sub(
        lambda clock: _clock(int(clock[1]), clock[2], "p" in clock[3]), words
    )
    return _IN_THE.sub(
        lambda hour: _clock(int(hour[1]), None, hour[2] != "morning"), words
    )


def _half(part: str, side: str, hour: int) -> str:
    if side == "to":
        return f"{hour - 1 or 12}:45"
    return f"{hour}:{'30' if part == 'half' else '15'}"


def _clock(hour: int, minutes: str | None, is_late: bool) -> str:
    hour = hour % 12 + 12 if is_late and hour <= 12 else hour
    return f"{hour}:{minutes or '00'}"


def _joined(run: str) -> str:
    """Groups of one long number belong together; two quantities side by side do not."""
    figures = re.sub(r"[ -]", "", run)
    return figures if len(figures) >= 6 else run


def write_figures(words: str) -> str:
    """Spoken numbers in figures: "twenty two" is 22, "nineteen seventy-one" 1971, "the third" 3rd."""
    pieces = _NUMBER_PIECES.split(words)
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
