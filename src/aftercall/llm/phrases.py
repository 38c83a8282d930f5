"""A caller's words as the agent repeats them: "remind me to" becomes "remind you to"."""

import re
from datetime import date

from aftercall.english.words import alternatives

_TURNED = {
    "i": "you",
    "i'm": "you're",
    "i'd": "you'd",
    "i'll": "you'll",
    "i've": "you've",
    "me": "you",
    "my": "your",
    "mine": "yours",
    "myself": "yourself",
    "we": "you",
    "we're": "you're",
    "we've": "you've",
    "we'd": "you'd",
    "us": "you",
    "our": "your",
    "ours": "yours",
}
_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?")
_IMPERATIVE = re.compile(rf"{alternatives('deed')}\b", re.IGNORECASE)
_AM = re.compile(r"\b(you) am\b")


def to_second_person(text: str) -> str:
    spoken = _WORD.sub(
        lambda word: _TURNED.get(word[0].lower().replace("’", "'"), word[0]), text
    )
    return _AM.sub(r"\1 are", spoken)


def phrase_request(title: str) -> str:
    """The request after "you asked me": `to open a bug`, or `about a leak in the kitchen`."""
    errand = rephrase_title(title)
    return f"to {errand}" if _IMPERATIVE.match(errand) else f"about {errand}"


def rephrase_title(title: str) -> str:
    """`Remind me to call my mother.` → `remind you to call your mother`"""
    first, _, rest = to_second_person(title.strip().rstrip(".!?")).partition(" ")
    is_plain = first[:1].isupper() and first[1:] == first[1:].lower()
    return f"{first.lower() if is_plain else first} {rest}".strip()


def speak_date(day: date) -> str:
    return f"{day:%A}, {day.day} {day:%B}"


def join(items: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`; with semicolons if an item holds a comma."""
    comma = "; " if any("," in item for item in items) else ", "
    return (
        f"{comma.join(items[:-1])} and {items[-1]}"
        if len(items) > 1
        else "".join(items)
    )
