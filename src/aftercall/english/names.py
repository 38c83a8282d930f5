"""What a name looks like: its words, how it is written, how it is spelled out.

Where a text has capitals, a name is written with them and common words are not. Where it has none,
as in many transcripts, a word counts as part of a name if no list here knows it as a common word.
Titles are left out of a name. Short forms of given names are in `given_names.txt`.
"""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files

from aftercall.english.text import Plain, Word, normalise
from aftercall.english.words import (
    is_descriptive,
    listed_words,
    remember,
    vocabulary,
    word_class,
)

_NATIONAL = re.compile(
    r"(?:[a-z]{3,}(?:ish|ese)|[a-z]{4,}ian|german|french|dutch|greek|american)$"
)
_PARTICLES = vocabulary("de der den da di du la le van von bin al el del dos ter")
NEVER_NAMES = vocabulary(
    """
    monday tuesday wednesday thursday friday saturday sunday january february october november
    december english mister mrs christmas easter god jesus i me ok hello hi yes no thanks please
    street road lane avenue sorry speaker g'day
    """
)
_PLACES = vocabulary(
    """
    street road lane avenue way drive court close row square park house hall hill new city
    county station chapel church school clinic hospital centre center
    """
)
# Days, figures, what somebody owns, addresses.
NO_NAME = re.compile(
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?$|[\W\d_]|(?:\w-)+\w$|.*(?:'s?$|@)"
)
TITLES = word_class("title") | vocabulary("commander lieutenant admiral councillor")
# Who jokes on the phone gives no name: children egg each other on, an agent doubts the order.
PRANKS = {
    "caller": re.compile(r"\b(?:shut up|shh+)\b", re.I),
    "agent": re.compile(
        r"\b(?:real|serious|genuine) (?:order|issue|booking|emergency|request|name)\b"
        r"|\bis there a real\b|\bgrown-?up\b|\bprank",
        re.I,
    ),
}
_OF_OTHERS = vocabulary(
    "for with to from about her his their my tell ask mr mrs ms miss dr"
)
_MAX_PARTS = 4
MIN_SPELLED = 3
MIN_LIKENESS = 0.5


@cache
def short_forms() -> dict[str, frozenset[str]]:
    """Each given name with its short forms, in small letters.

    "Alexandra: alex sandra sandy": by these, a short name and the full one are the same person's.
    """
    lines = files("aftercall.english").joinpath("given_names.txt").read_text("utf-8")
    pairs = (line.partition(":") for line in lines.splitlines() if line)
    return {full: frozenset(shorts.split()) for full, _, shorts in pairs}


@cache
def given_names() -> frozenset[str]:
    """All given names that are known, in full and in short."""
    return frozenset(short_forms()).union(*short_forms().values())


def take_name(plain: Plain, at: int) -> str:
    """The name that begins at a word, or nothing.

    Titles before it are skipped. It ends at a stop, at a common word, and before it is said again
    ("Quayle, Leonard Quayle"). Without capitals it has at most three parts, since nothing shows
    where it ends.
    """
    words = plain.words
    while at < len(words) and words[at].norm in TITLES:
        at += 1
    is_cased = has_capitals(plain)
    parts: list[str] = []
    for index in range(at, min(at + _MAX_PARTS, len(words))):
        word = words[index]
        if not _is_name_word(plain, word, is_cased=is_cased, is_first=not parts):
            break
        parts.append(plain.source[word.start : word.end])
        is_said_twice = (
            parts[1:] and "," in plain.source[words[index - 1].end : word.start]
        )
        if word.stop or is_said_twice:
            break
    kept = _tidy_parts(parts)
    return " ".join(_capitalise(part) for part in (kept if is_cased else kept[:3]))


def _tidy_parts(parts: list[str]) -> list[str]:
    """A name does not end with "van" or "de", and is not said twice."""
    while parts and parts[-1] in _PARTICLES:
        parts = parts[:-1]
    is_twice = len(parts) > 2 and parts[0].lower() == parts[-1].lower()
    return parts[1:] if is_twice else parts  # "Abernathy, Wendell Abernathy"


def has_capitals(plain: Plain) -> bool:
    """Whether the text marks names by capitals; a lone "I" says nothing."""
    return any(
        plain.source[word.start].isupper()
        and word.norm not in ("i", "am", "will", "have", "would")
        for word in plain.words
    )


_DOING = re.compile(r"\w{3,}ing$")


def _is_name_word(plain: Plain, word: Word, *, is_cased: bool, is_first: bool) -> bool:
    """Whether a word can be part of a name.

    Never a common word or a code; where names are written with capitals, only with one.
    """
    norm = word.norm
    said = plain.source[word.start : word.end]
    is_code = said.isupper() and len(said) < MIN_SPELLED and not plain.source.isupper()
    if norm in NEVER_NAMES or NO_NAME.match(norm) or is_code:
        return False
    if is_cased and norm in _PARTICLES:
        return not is_first
    if is_first and norm in given_names():
        return not is_cased or said[0].isupper()
    return len(norm) > 1 and _may_be_name(norm, said, is_cased=is_cased)


def _may_be_name(norm: str, said: str, *, is_cased: bool) -> bool:
    """By its capital; where nothing is written large, by not being a word we know."""
    if is_cased:
        is_plain = norm in word_class("stop") and norm not in given_names()
        return said[0].isupper() and not is_plain
    return norm not in listed_words() or norm in word_class("names")


def _capitalise(word: str) -> str:
    """A part of a name as names are written; one with a capital in it stays as it is."""
    if word in _PARTICLES or any(char.isupper() for char in word):
        return word
    return "-".join(part[:1].upper() + part[1:] for part in word.split("-"))


def describes(name: str) -> bool:
    """Whether words that look like a name describe somebody, or name a company."""
    parts = name.lower().split()
    if parts[0] in word_class("kin") or parts[-1] in word_class("company"):
        return True
    return parts[0] not in given_names() and _is_description(parts)


def _is_description(parts: list[str]) -> bool:
    """ "Very happy", "needing oil", "Scottish": what follows "I'm" is no name then."""
    if len(parts) > 1:
        return parts[0] in word_class("descriptive") or bool(_DOING.match(parts[0]))
    return is_descriptive(parts[0]) or bool(_NATIONAL.match(parts[0]))


def is_full_name(parts: list[str]) -> bool:
    """Whether words are a first and a last name, and neither a place nor a description."""
    plain = word_class("stop") | _PLACES
    return len(parts) > 1 and not any(
        part in plain or is_descriptive(part) for part in parts
    )


def find_spelled(sentence: Plain) -> str:
    """The longest word that is spelled out: "P E double L".

    A comma ends it, "A N N, L E E", unless one stands behind each letter.
    """
    best = ""
    letters = ""
    repeat = 1
    is_open = False
    for word in (*sentence.words, None):
        norm = word.norm if word else ""
        if norm in ("double", "triple"):
            repeat = 2 if norm == "double" else 3
            continue
        is_letter = len(norm) == 1 and norm.isalpha()
        letters += norm * repeat if is_letter else ""
        is_last = bool(word and word.stop) and is_open and len(letters) >= MIN_SPELLED
        if is_last or not is_letter:
            best, letters = max(best, letters, key=len), ""
        repeat = 1
        is_open = not (word and word.stop)
    return best if len(best) >= MIN_SPELLED else ""


def respell(name: str, spelled: str) -> str:
    """The name with the part that sounds like the spelled word written as it was spelled."""
    parts = name.split()
    alike = [measure_likeness(part.lower(), spelled) for part in parts]
    best = max(range(len(parts)), key=lambda index: alike[index])
    part = parts[best].lower()
    is_there = spelled in part and not part.endswith(("'s", "’s"))
    if alike[best] >= MIN_LIKENESS and not is_there:
        parts[best] = spelled.capitalize()
    return " ".join(parts)


@remember
def measure_likeness(first: str, second: str) -> float:
    """How alike two words are written: 1 for the same, 0 for no letter in common."""
    return SequenceMatcher(None, first, second).ratio()


# "Thanks, Owain.", "Certainly, Mr Mallory!": whom an agent speaks to.
_ADDRESSES = re.compile(
    r"(?:,|^Hi|^Hello|^Thanks|^Thank you|^Sorry|^Okay|^Righto) "
    r"(?P<title>(?:Mr|Mrs|Ms|Miss|Dr)\.? )?(?P<name>[A-Z][\w'’-]+)[.,!?]"
)


def find_addressed_name(said: str, answer: str) -> str:
    """The full name in a caller's words by part of which the agent speaks to them at once.

    "Ernest Blakey, about my order." "Certainly, Mr Blakey." After a title the agent says the last
    name, else the first. A name that the caller gives as somebody else's is none.
    """
    other = r"[A-Z][\w'’-]+"
    for address in _ADDRESSES.finditer(answer):
        part = re.escape(address["name"])
        full = f"{other} {part}" if address["title"] else f"{part} {other}"
        for match in re.finditer(rf"(?<![\w'’-]){full}(?![\w-]|['’]s (?!the))", said):
            name = match.group()
            before = said[: match.start()].lower().split()
            is_own = _OF_OTHERS.isdisjoint(before[-2:])
            is_full = is_full_name(name.lower().split())
            if is_own and is_full and take_name(normalise(name), 0) == name:
                return name
    return ""


_FOREIGN = re.compile(
    r"(?i:mein name ist|ich heiße|ich heisse|hier spricht|je m['’]appelle|mon nom est|me llamo"
    r"|mi nombre es|mi chiamo|il mio nome è|meu nome é|mijn naam is|ik heet|nazywam się)"
    r" (?P<name>[^\W\d_a-z][\w'’-]*(?: [^\W\d_a-z][\w'’-]*){0,3})"
)


def find_foreign_name(texts: Iterable[str]) -> str | None:
    """The name that a caller gives in another language, by its plainest phrases only."""
    return next(
        (match["name"] for text in texts if (match := _FOREIGN.search(text))), None
    )
