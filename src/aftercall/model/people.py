"""Who is on the line: a caller's number in the one form that is compared everywhere, and whoever else speaks from it."""

import re

import phonenumbers

# What carriers send in place of a number that the caller withheld, the keypad spellings included.
WITHHELD = frozenset(
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
_ADDRESS = re.compile(r"(sips?|client|web):([^\s@<>]{1,128})(?:@([A-Za-z0-9._\-\[\]:]{1,128}))?")
_DIALLED = re.compile(r"\+[\d\s().\-/]{2,40}", re.ASCII)
_PERSON = re.compile(r"[a-z0-9]+(?:[-+][a-z0-9]+)*")
LONGEST_PERSON = 60
AT = "#"


def normalise_caller(caller: str | None) -> str | None:
    """E.164, a lower-cased `sip:`, `client:` or `web:` address, or None for a withheld number.

    Raises ValueError for anything else: a caller that cannot be compared cannot be remembered.
    """
    text = (caller or "").strip()
    if text.lower() in WITHHELD or text.lower().startswith("sip:anonymous@"):
        return None
    if _E164.fullmatch(text):
        return text
    if address := _ADDRESS.fullmatch(text):
        kind, user, host = address.groups()
        user = user.replace(AT, "%23")  # as it should have been written; nobody rings as somebody's guest
        return f"{kind.lower()}:{user}" + (f"@{host.lower()}" if host else "")
    if _DIALLED.fullmatch(text):
        return _from_dialled(text)
    raise ValueError("is not a phone number in international form (+15551234567), nor a sip: or client: address")


def join_party(number: str, person: str) -> str:
    """Whose memory: the number alone is its owner's, `+15550100#anna` that of Anna, who speaks from the same phone."""
    return f"{number}{AT}{person}" if person else number


def split_party(party: str) -> tuple[str, str]:
    """Number and person."""
    number, mark, person = party.rpartition(AT)
    return (number, person) if mark and is_person(person) else (party, "")


def normalise_party(party: str | None) -> str | None:
    """As `normalise_caller`, of a party."""
    number, person = split_party((party or "").strip())
    known = normalise_caller(number)
    return None if known is None else join_party(known, person)


def is_person(text: str) -> bool:
    return len(text) <= LONGEST_PERSON and _PERSON.fullmatch(text) is not None


def _from_dialled(text: str) -> str:
    """A number with spaces, brackets and the `(0)` that people write; the library knows which digits count."""
    try:
        return phonenumbers.format_number(phonenumbers.parse(text), phonenumbers.PhoneNumberFormat.E164)
    except phonenumbers.NumberParseException:
        raise ValueError("is not a phone number") from None
