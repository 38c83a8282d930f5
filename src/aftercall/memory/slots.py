"""Subject and attribute of a plain sentence, where they can be told: of these a person has one value at a time.

What is not in the tables has no slot: two such sentences may both hold, and neither takes the other's place.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from aftercall.memory.frames import DOMAINS, WAY, WISH, fitting

CALLER = "caller"
_AGE = re.compile(
    r"\b(?:i am|my (?P<who>[\w ]+?) (?:is|turned|just turned|has turned)|(?P<pron>he|she) is)(?: now| only| "
    r"nearly)? (?P<value>\d{1,3})(?: years old| years| year old| today)?$"
)
_FIGURE = re.compile(r"\d")
_SHORT_WISH = re.compile(rf"\b{WISH}\b|\bi pay\b|\bsit\b|\bfor i\b|\bfavou?rite\b|\bonly\b")
_DOMAIN = tuple((name, re.compile(rf"\b(?P<value>{values})\b")) for name, values in DOMAINS)
_TIDY = re.compile(r"\b(?:now|instead|from now on|these days|any more|anymore|i am in|i live|a|an|the|my|since \w+|again)\b")
_DENIES = re.compile(r"\b(?:not|never|no longer|stopped|hate)\b")
_BEGINNING = 2
_OWNER = re.compile(r"\b(?:my|his|her|their) (?P<who>\w+(?: \w+)?)'s (?!name\b)")
# "My doctor is lovely" says nothing of the doctor's name, nor "my car is a bit noisy" of the kind of car.
_NAMES_ONLY = re.compile(r"'s name$|^kind of |^call name$")
_BESIDES = re.compile(r"\s+(?:and|but|because|since|so|not|which|with|if|unless|rather than|instead of|when|where)\b.*$")


@dataclass(frozen=True, slots=True)
class Slot:
    subject: str
    attribute: str
    value: str
    is_named: bool | None = None
    """Whether the value is a name and not a description; None where the writing does not tell."""

    @property
    def key(self) -> str:
        return f"{self.subject}|{self.attribute}"


def find_slots(text: str, names: frozenset[str] | None = None) -> Iterator[Slot]:
    """`text` in its plain form. What is denied has no value to fill a slot with. `names` are its words that were written as such."""
    if _DENIES.search(text) and _DENIES.search(_BESIDES.sub("", text)):
        return
    if found := fitting(text):
        slot = replace(_slot(*found, names), subject=_whose(text[: _start(found[1])]))
        if slot.is_named or not _NAMES_ONLY.search(slot.attribute) or _is_surely_name(found[1]):
            yield slot
        return
    if _FIGURE.search(text) and (age := _AGE.search(text)):
        yield Slot(_named(age["who"] or age["pron"]), "age", age["value"])
        return
    if _SHORT_WISH.search(text):
        wish = _BESIDES.sub("", text)
        for name, pattern in _DOMAIN:
            if match := pattern.search(wish):
                yield Slot(CALLER, name, match["value"])
                return


def _start(match: re.Match[str]) -> int:
    """Where the value begins."""
    return next(start for name in ("value", "value2") if (start := match.start(name) if name in match.re.groupindex else -1) >= 0)


def _whose(before: str) -> str:
    """ "My mother's address is …" says nothing of the caller's."""
    owner = _OWNER.search(before)
    return _named(owner["who"] if owner else None)


def _is_surely_name(match: re.Match[str]) -> bool:
    """ "My wife is called Ana", "my doctor is Dr Patel"."""
    return any(match.groupdict().get(sign) for sign in ("name", "called", "title"))


def _slot(attribute: str, match: re.Match[str], names: frozenset[str] | None) -> Slot:
    groups = match.groupdict()
    value = groups.get("value") or groups.get("value2") or ""
    kind = (groups.get("kind") or "").replace("cell", "mobile").replace("office", "work").replace("business", "work")
    what = (groups.get("what") or "").strip()
    name = re.sub(r"\s+", " ", attribute.format(kind=kind, what=what)).strip()
    if name == "contact":
        return Slot(CALLER, name, WAY[value])
    told = tidy_value(value)
    return Slot(CALLER, name, told, None if names is None else _is_named(told, names))


def _is_named(value: str, names: frozenset[str]) -> bool:
    """A name stands at its beginning: "red Volvo", not "one that Ana gave me"."""
    return any(word in names or (len(word) > 1 and word[:1].isdecimal()) for word in value.split()[:_BEGINNING])


def tidy_value(value: str) -> str:
    value = re.sub(r"\b(?:dr|doctor|mr|mrs|ms|miss)\b", " ", value)
    return re.sub(r"\s+", " ", _TIDY.sub(" ", _BESIDES.sub("", value))).strip()


def _named(who: str | None) -> str:
    return f"{CALLER}'s {who}" if who else CALLER
