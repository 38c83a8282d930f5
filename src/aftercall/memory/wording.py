"""Spoken words in one plain form, so that two wordings of one thing can be compared."""

import re
import unicodedata

from aftercall.memory.phrases import Phrases

_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_NUMBERS = {word: number for number, word in enumerate(_UNITS.split())} | {"oh": 0}
_TENS = {word: 10 * number for number, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2)}


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
)
_WITHOUT_MARK = re.compile(r"\b(d(?:o|oes|id)|is|are|was|ca|wo|would|could|should|have|has)nt\b")
_CANNOT = re.compile(r"\bcann(?:ot|ae)\b")
_CALLER = Phrases("caller", "user", "customer", "client")
_OURS = Phrases("our", "ours", "mine")
_WE = Phrases("we", "us", "me", "myself")
# "The client", or "client" first thing; "my client" is somebody else.
_SPEAKER = re.compile(
    rf"\b(?:(?:the |(?<![^\W_] ))(?:{_CALLER.alternatives})(?P<own>'s)?|(?P<ours>{_OURS.alternatives})|{_WE.alternatives})\b"
)
_SPEAKERS = _CALLER.words | _OURS.words | _WE.words
_HUMS = {"um": "um+", "uh": "uh+", "er": "er+m?", "ah": "ah+", "hm": "hmm"}
"""By the letters they begin with."""
_FILLERS = Phrases(
    *("eh", "oh", "well", "you know", "i mean", "i guess", "i think", "i believe", "basically", "honestly", "really", "actually"),
    *("just", "so", "anyway", "please", "okay", "ok", "yes", "yeah", "yep", "right", "listen", "look", "by the way", "as i said"),
    *("like i said", "to be honest", "of course", "definitely", "absolutely", "quite", "very", "currently", "these days"),
    *("nowadays", "at the moment", "still", "also", "too", "already", "simply", "always", "usually", "normally", "generally"),
    *("typically", "mostly"),
    unless={"oh": r" \d", "still": " water", "well": " done"},
)
_FILLER = re.compile(rf"\b(?:{'|'.join(_HUMS.values())}|{_FILLERS.alternatives})\b")
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:. ](\d\d))? ?(a ?\.?m|p ?\.?m)\b\.?")
_HALF = re.compile(r"\b(half|quarter) (past|to) (\d{1,2})\b")
_IN_THE = re.compile(r"\b(\d{1,2})(?: o'?clock)? (?:in the (morning|afternoon|evening)|at night)\b")
_EMAIL_SPOKEN = re.compile(r"\b([\w.+-]+) at ([\w-]+) dot (\w+)\b")
_DIGITS_APART = re.compile(r"\b\d(?:[ -]\d)+\b")
_GROUPS = re.compile(r"(?<![\d:])\+?\d{2,}(?:[ -]\d{2,})+\b")
_COUNTED = frozenset((*_NUMBERS, *_TENS))
_PIECE = re.compile(r"[^\W_]+")
_FIGURE = re.compile(r"\d")
_ODD = re.compile(r"[^\w\s@+:'.-]|(?<!\w)['.-]|['.-](?!\w)")
_TOKEN = re.compile(r"[^\W_]+(?:[.@+:'-][^\W_]+)*")


def plain(text: str) -> str:
    """Lower case, contractions written out, the caller as `i`, number words as figures, no filler."""
    words = fold(text)
    if "'" in words:
        for pattern, written in _CONTRACTIONS:
            words = pattern.sub(written, words)
    if "cann" in words:
        words = _CANNOT.sub("can not", words)
    if "nt" in words:
        words = _WITHOUT_MARK.sub(r"\1 not", words)
    said = set(_PIECE.findall(words))
    if not _SPEAKERS.isdisjoint(said):
        words = _SPEAKER.sub(lambda who: "my" if who["own"] or who["ours"] else "i", words)
    if not _COUNTED.isdisjoint(said):
        words = _figures(words)
    if " dot " in words:
        words = _EMAIL_SPOKEN.sub(r"\1@\2.\3", words)
    if _FIGURE.search(words):
        words = _hours(words)
        words = _DIGITS_APART.sub(lambda run: re.sub(r"[ -]", "", run.group()), words)
        words = _GROUPS.sub(lambda run: _joined(run.group()), words)
    if not _FILLERS.words.isdisjoint(said) or any(piece[:2] in _HUMS for piece in said):
        words = _FILLER.sub(" ", words)
    return " ".join(_ODD.sub(" ", words).split())


def fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("‘", "'")


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _figures(words: str) -> str:
    """ "twenty two" → 22, "four four one nine" → 4 4 1 9."""
    found = re.split(r"(\W+)", words)
    out: list[str] = []
    skip = 0
    for at, word in enumerate(found):
        if skip:
            skip -= 1
            continue
        if word in _TENS:
            unit = _NUMBERS.get(found[at + 2], 0) if at + 2 < len(found) and found[at + 1] in (" ", "-") else 0
            tail = 0 < unit < 10
            out.append(str(_TENS[word] + (unit if tail else 0)))
            skip = 2 if tail else 0
        elif word == "oh" and not _beside_number(found, at):
            out.append(word)
        else:
            out.append(str(_NUMBERS[word]) if word in _NUMBERS else word)
    return "".join(out)


def _beside_number(found: list[str], at: int) -> bool:
    beside = [found[near] for near in (at - 2, at + 2) if 0 <= near < len(found)]
    return any(word in _NUMBERS or word in _TENS or word.isdecimal() for word in beside)


def _hours(words: str) -> str:
    words = _HALF.sub(lambda half: _half(half[1], half[2], int(half[3])), words)
    words = _CLOCK.sub(lambda clock: _clock(int(clock[1]), clock[2], "p" in clock[3]), words)
    return _IN_THE.sub(lambda hour: _clock(int(hour[1]), None, hour[2] != "morning"), words)


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
