"""Spoken words in one plain form, so that two wordings of one thing can be compared."""

import re
import unicodedata

from aftercall.english.words import vocabulary
from aftercall.memory.figures import COUNTED, write_figures


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
