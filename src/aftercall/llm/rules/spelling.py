"""Names spelled letter by letter: "D R A K E", "M O double S", "S as in Sam"."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

_AS_IN = re.compile(r"\b([A-Za-z]) (?:as in|like|for) [A-Za-z]+", re.I)
_ONE = r"(?<!['’])(?:double |capital )?(?!I['’]|[Ii] [a-z]{2,})[A-Za-z]\b"
_LETTERS = re.compile(rf"\b(?:{_ONE}[\s,.\-]+(?={_ONE})){{2,}}{_ONE}")
_SPELLED = re.compile(rf"(?:,\s*)?{_LETTERS.pattern}(?:\s*,)?")
_LETTER = re.compile(r"(double )?(?:capital )?\b([A-Za-z])\b", re.I)
_MAY_SPELL = re.compile(
    r"\b[A-Za-z](?:[\s,.\-]+(?:[A-Za-z]\b|double |capital )| (?:as in|like|for) )"
)
_ALIKE = 0.55


def spelled_words(text: str) -> list[str]:
    """Every word that was spelled out, with a capital first letter."""
    if not _MAY_SPELL.search(text):
        return []
    plain = _AS_IN.sub(r"\1", text)
    return [
        "".join(
            letter * (2 if double else 1)
            for double, letter in _LETTER.findall(match.group())
        ).capitalize()
        for match in _LETTERS.finditer(plain)
    ]


def without_spelling(text: str) -> str:
    """The text with nothing left of what was only spelled."""
    plain = _SPELLED.sub(" ", _AS_IN.sub("", text)) if _MAY_SPELL.search(text) else text
    return (
        text
        if plain == text
        else re.sub(r"\s*([.,!?])(?:\s*[.,!?])*", r"\1", " ".join(plain.split()))
    )


def respell(name: str, texts: Iterable[str]) -> str:
    """The name with each part replaced by the way the caller spelled it."""
    parts = name.split()
    for spelled in (word for text in texts for word in spelled_words(text)):
        parts = [_respelled(part, spelled) for part in parts]
    return " ".join(parts)


def _respelled(part: str, spelled: str) -> str:
    """Of a name with a hyphen one half may be spelled alone, and of any name only its beginning."""
    if part.lower().replace("-", "").startswith(spelled.lower()) and "-" not in part:
        return part
    if part.lower().replace("-", "") == spelled.lower():
        return part
    halves = [half for half in part.split("-") if half]
    fits = [
        half[0].lower() == spelled[0].lower() and _alike(half, spelled)
        for half in halves
    ]
    if len(halves) > 1 and any(fits):
        return "-".join(
            spelled if fit else half for half, fit in zip(halves, fits, strict=True)
        )
    return (
        spelled
        if part[0].lower() == spelled[0].lower() and _alike(part, spelled)
        else part
    )


def _alike(first: str, second: str) -> bool:
    return SequenceMatcher(None, first.lower(), second.lower()).ratio() >= _ALIKE
