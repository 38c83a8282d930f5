"""Callers: their number in one form, the people who share it, and the names they go by."""

import re
from collections.abc import Callable

from aftercall.errors import RefusedInput

# What carriers send for a withheld number, keypad spellings included.
WITHHELD_NUMBERS = frozenset(
    {
        "",
        "anonymous",
        "blocked",
        "n/a",
        "none",
        "null",
        "private",
        "restricted",
        "unavailable",
        "unknown",
        "withheld",
        "+266696687",
        "+86282452253",
        "+7378742833",
        "+2562533",
        "+8566",
    }
)
_E164 = re.compile(r"\+[1-9]\d{1,14}", re.ASCII)
_ADDRESS = re.compile(
    r"(sips?|client|web):([^\s@<>]{1,128})(?:@([A-Za-z0-9._\-\[\]:]{1,128}))?"
)
_DIALLED = re.compile(r"\+[\d\s().\-/]{2,40}", re.ASCII)
_PERSON = re.compile(r"[a-z0-9]+(?:[-+][a-z0-9]+)*")
MAX_PERSON_CHARS = 60
PERSON_SEPARATOR = "#"


def normalise_caller(caller: str | None) -> str | None:
    """E.164, a lower-cased `sip:`, `client:` or `web:` address, or None for a withheld number.

    Raises ValueError for anything else: a caller that cannot be compared cannot be remembered.
    """
    text = (caller or "").strip()
    if text.lower() in WITHHELD_NUMBERS or text.lower().startswith("sip:anonymous@"):
        return None
    if _E164.fullmatch(text):
        return text
    if address := _ADDRESS.fullmatch(text):
        kind, user, host = address.groups()
        # so that no caller poses as another person
        user = user.replace(PERSON_SEPARATOR, "%23")
        return f"{kind.lower()}:{user}" + (f"@{host.lower()}" if host else "")
    if _DIALLED.fullmatch(text):
        return _from_dialled(text)
    raise ValueError(
        "is not a phone number in international form (+15551234567), nor a sip: or client: address"
    )


def join_party(number: str, person: str) -> str:
    """`+15550100` is the owner of the number, `+15550100#anna` is Anna on the same phone."""
    return f"{number}{PERSON_SEPARATOR}{person}" if person else number


def split_party(party: str) -> tuple[str, str]:
    """Number and person; the person is empty for the owner."""
    number, mark, person = party.rpartition(PERSON_SEPARATOR)
    return (number, person) if mark and is_person(person) else (party, "")


def normalise_party(party: str | None) -> str | None:
    number, person = split_party((party or "").strip())
    known = normalise_caller(number)
    return None if known is None else join_party(known, person)


def is_person(text: str) -> bool:
    return len(text) <= MAX_PERSON_CHARS and _PERSON.fullmatch(text) is not None


def _from_dialled(text: str) -> str:
    """A number with spaces, brackets and the `(0)` that people write."""
    import phonenumbers

    try:
        number = phonenumbers.parse(text)
        return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    except phonenumbers.NumberParseException:
        raise ValueError("is not a phone number") from None


GENERIC_NAMES = frozenset(
    {
        *(
            "agent",
            "ai",
            "ai agent",
            "ai assistant",
            "assistant",
            "bot",
            "helper",
            "voice agent",
        ),
        *(
            "chatbot",
            "phone agent",
            "phone assistant",
            "virtual assistant",
            "voice assistant",
        ),
    }
)
_ARTICLES = frozenset({"a", "an", "the", "my", "our", "your"})


def is_generic_name(name: str) -> bool:
    """Whether `name` only says what the agent is: `The Assistant`, `A.I.`, `agent.`"""
    words = re.sub(r"[\W_]+", " ", re.sub(r"[.'’]", "", name.casefold())).split()
    while words and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join(words) in GENERIC_NAMES


_TITLE_WORDS = (
    "mr mrs ms miss mx madam dr doctor prof professor rev reverend father pastor rabbi judge "
    "officer captain capt sergeant sgt major colonel lord lady aunt auntie uncle herr frau "
    "fräulein monsieur madame mme mlle señor señora senor senora signor signora"
)
_TITLES = frozenset(_TITLE_WORDS.split())
_TITLES_OF_GIVEN_NAMES = frozenset({"sir", "dame", "sister", "brother"})
_PARTICLE_WORDS = (
    "van von der den de del della di da dos du la le el al bin ibn abu ter zu"
)
_PARTICLES = frozenset(_PARTICLE_WORDS.split())
_ENDINGS = frozenset({"jr", "sr", "ii", "iii", "iv", "phd", "md", "esq"})
_JOINING_WORDS = frozenset({"and", "&", "the", "und", "et", "y"})

_GREETING = re.compile(
    r"(?:hey|hi|hello|hiya|howdy|good (?:morning|afternoon|evening)|welcome back),? "
    r"(?P<name>[^\s,!?;:]+(?: [^\s,!?;:]+){0,3}?)(?=[,!;:])",
    re.IGNORECASE,
)


NAMELESS = "Welcome back, "  # begins a greeting that was made before the name was known


def find_greeted_name(greeting: str) -> str | None:
    """The name that a greeting uses, if any."""
    found = _GREETING.match(greeting)
    words = found["name"].split() if found else []
    return (
        " ".join(words)
        if words and _is_name(words[0]) and _is_name(words[-1])
        else None
    )


def replace_old_name(
    text: str, old: str | None, name: str | None, call_name: str | None
) -> str:
    """Replaces a name that was corrected since.

    An old name that shares a word with the present one is another form of it and stays.
    """
    present = spoken_name(name, call_name)
    known = {
        _normalise_word(word) for word in f"{name or ''} {call_name or ''}".split()
    }
    if (
        old is None
        or present is None
        or not known.isdisjoint(map(_normalise_word, old.split()))
    ):
        return text
    return re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: present, text)


def _is_name(word: str) -> bool:
    return word[0].isalpha() and not word[0].islower()


def spoken_name(name: str | None, call_name: str | None) -> str | None:
    """What to call a person: the name they asked for, else a form of address."""
    return call_name or (form_of_address(name) if name else None)


def form_of_address(name: str) -> str:
    """`Bill` for Bill Harker, `Dr Brown` for Dr Jane Brown. Assumes that given names come first."""
    last, _, given = name.partition(",")
    if given.strip() and _normalise_word(given) not in _ENDINGS:
        name = f"{given} {last}"  # `Harker, Bill`
    words = name.replace(",", " ").split()
    while len(words) > 1 and _normalise_word(words[-1]) in _ENDINGS:
        words.pop()
    if len(words) < 2 or any(word.lower() in _JOINING_WORDS for word in words):
        return " ".join(words)
    if _normalise_word(words[0]) in _TITLES:
        return " ".join((words[0], *_surname(words[1:])))
    count = 2 if _normalise_word(words[0]) in _TITLES_OF_GIVEN_NAMES else 1
    first = _normalise_word(words[count - 1])
    is_name = len(first) > 1 and first not in _PARTICLES  # an initial alone is no name
    return " ".join(words[:count] if is_name else words)


def _surname(words: list[str]) -> list[str]:
    """The surname with its particles, `van der Berg`, without further titles and given names."""
    for at, word in enumerate(words[:-1]):
        if _normalise_word(word) in _PARTICLES:
            return words[at:]
    return words[-1:]


def _normalise_word(word: str) -> str:
    return word.strip(" .").lower()


def read_caller(text: str, field: str) -> str | None:
    """A number, a `sip:` or `client:` address, or None for a withheld one."""
    return _read(text, field, normalise_caller)


def read_party(text: str, field: str) -> str | None:
    """The same, or a person at a number: `+15550100#anna`."""
    return _read(text, field, normalise_party)


def _read(text: str, field: str, normalise: Callable[[str], str | None]) -> str | None:
    try:
        return normalise(text)
    except ValueError as error:
        raise RefusedInput(field, str(error)) from None
