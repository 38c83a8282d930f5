"""How somebody is spoken to whose full name is known: by the given name, or by title and surname."""

import re

_TITLES = frozenset(
    {
        *("mr", "mrs", "ms", "miss", "mx", "madam", "dr", "doctor", "prof", "professor", "rev", "reverend", "father", "pastor", "rabbi"),
        *("judge", "officer", "captain", "capt", "sergeant", "sgt", "major", "colonel", "lord", "lady", "aunt", "auntie", "uncle"),
        *("herr", "frau", "fräulein", "monsieur", "madame", "mme", "mlle", "señor", "señora", "senor", "senora", "signor", "signora"),
    }
)
_TITLES_OF_GIVEN_NAMES = frozenset({"sir", "dame", "sister", "brother"})
_PARTICLES = frozenset(
    {"van", "von", "der", "den", "de", "del", "della", "di", "da", "dos", "du", "la", "le", "el", "al", "bin", "ibn", "abu", "ter", "zu"}
)
_ENDINGS = frozenset({"jr", "sr", "ii", "iii", "iv", "phd", "md", "esq"})
_TOGETHER = frozenset({"and", "&", "the", "und", "et", "y"})

_HELLO = re.compile(
    r"(?:hey|hi|hello|hiya|howdy|good (?:morning|afternoon|evening)|welcome back),? "
    r"(?P<name>[^\s,!?;:]+(?: [^\s,!?;:]+){0,3}?)(?=[,!;:])",
    re.IGNORECASE,
)


def addressed_name(greeting: str) -> str | None:
    """By what name a greeting speaks to somebody; None if it uses none."""
    found = _HELLO.match(greeting)
    words = found["name"].split() if found else []
    return " ".join(words) if words and all(_is_name(word) for word in (words[0], words[-1])) else None


def use_present_name(text: str, old: str | None, name: str | None, call_name: str | None) -> str:
    """The text with the present name where it has an old one that was corrected since.

    An old name that shares a word with the present one is another form of it, and stays.
    """
    present = spoken_name(name, call_name)
    known = {_plain(word) for word in f"{name or ''} {call_name or ''}".split()}
    if old is None or present is None or not known.isdisjoint(map(_plain, old.split())):
        return text
    return re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: present, text)


def _is_name(word: str) -> bool:
    return word[0].isalpha() and not word[0].islower()


def spoken_name(name: str | None, call_name: str | None) -> str | None:
    """What to call them aloud: as they asked to be called, else by what of their name is said to somebody."""
    return call_name or (address(name) if name else None)


def address(name: str) -> str:
    """`Bill` for Bill Harker, `Dr Brown` for Dr Jane Brown. Which word is the given name where surnames come first nobody can tell."""
    last, comma, given = name.partition(",")
    if comma and given.strip() and _plain(given) not in _ENDINGS:  # as lists have it: `Harker, Bill`
        name = f"{given} {last}"
    words = name.replace(",", " ").split()
    while len(words) > 1 and _plain(words[-1]) in _ENDINGS:
        words.pop()
    if len(words) < 2 or any(word.lower() in _TOGETHER for word in words):
        return " ".join(words)
    if _plain(words[0]) in _TITLES:
        return " ".join((words[0], *_surname(words[1:])))
    count = 2 if _plain(words[0]) in _TITLES_OF_GIVEN_NAMES else 1
    first = _plain(words[count - 1])
    return " ".join(words if len(first) < 2 or first in _PARTICLES else words[:count])  # an initial alone is no name


def _surname(words: list[str]) -> list[str]:
    """With what belongs to it: `van der Berg`; further titles and given names go."""
    start = next((place for place, word in enumerate(words) if _plain(word) in _PARTICLES and place + 1 < len(words)), len(words) - 1)
    return words[start:]


def _plain(word: str) -> str:
    return word.strip(" .").lower()
