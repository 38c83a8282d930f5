"""Subject and attribute of a plain sentence, where they can be told: of these a person has one
value at a time.

What is not in the tables has no slot: two such sentences may both hold, and neither takes the
other's place.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aftercall.english.words import is_descriptive, word_class
from aftercall.memory.frames import Fit, fitting
from aftercall.memory.lexicon import DOMAINS, WAY, WISHES
from aftercall.memory.phrases import Phrases
from aftercall.memory.subject import CALLER, Subject
from aftercall.memory.telling import Telling, Told, read_for

_WISH = Phrases(*WISHES)
_DOMAIN = tuple(
    (name, re.compile(rf"\b(?P<value>{values})\b")) for name, values in DOMAINS
)
_ANY_DOMAIN = re.compile(rf"\b(?:{'|'.join(values for _, values in DOMAINS)})\b")
_TIDY = re.compile(
    r"\b(?:now|instead|from now on|these days|any more|anymore|i am in|i live|a|an|the|my"
    r"|since \w+|again)\b"
)
_DENIES = Phrases("not", "never", "no longer", "stopped", "hate", "used to")
_USED = re.compile(r"\b(?:am|is|are|get|got) used to\b")
_BEGINNING = 2
# "My doctor is lovely" says nothing of the doctor's name, nor "my car is a bit noisy" of the
# kind of car.
_NAMES_ONLY = re.compile(r"'s name$|^kind of |^call name$")
_BESIDES = re.compile(
    r"\s+(?:and|but|because|since|so|not|which|with|if|unless|rather than|instead of|when"
    r"|where)\b.*$"
)
_DESCRIBES = re.compile(r"(?:a|an|the|my|his|her|their|this|that|another|some|one)\b")
# Who is somewhere for a while still lives where they live.
_FOR_A_WHILE = re.compile(
    r"\b(?:until|till|tonight|today|tomorrow|temporarily|for now|for the moment|on holiday"
    "|visiting|during|on weekdays|at weekends|"
    r"in term time|over (?:christmas|easter|new year|the)|"
    r"(?:this|next|for the|for a|for an|a few|for \d+|for some|for several) (?:\w+ )?(?:days?"
    "|nights?|weeks?|weekend|months?|while|"
    r"summer|winter|spring|autumn|holidays?|time|term|fortnight))\b"
)
_DWELLING = frozenset({"residence", "address"})
_NO_PLACE = re.compile(
    r"(?:\d{1,2}:\d\d|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mornings?|afternoons?"
    r"|evenings?|nights?|days?|(?:next|this|last) \w+)\b"
)
# One is called by several names, and of sisters there are several: neither takes another's place.
_OF_CALLER_ONLY = frozenset({"name", "call name"})
_OF_PERSONS_ONLY = frozenset({"diet"})  # a soup may be vegan and halal
_PLACING = frozenset({"for", "of", "to", "on", "at", "the", "my"})
_SUITING = frozenset({"contact", "best time"})
_NAMED = frozenset({"residence", "address", "employer", "birthplace"})
_OWN = re.compile(r"\b(?:i|my)\b")
_GOOD_FOR = re.compile(
    r" for (?!i\b|both\b|all\b|everyone\b|everything\b|that\b|now\b|the moment\b).*"
)


@dataclass(frozen=True, slots=True)
class Slot:
    subject: Subject
    attribute: str
    value: str
    is_named: bool | None = None
    """Whether the value is a name and not a description; None where the writing does not tell."""

    @property
    def key(self) -> str:
        return f"{self.subject}|{self.attribute}"


def find_slots(
    told: Told, written: Callable[[], frozenset[str] | None] = lambda: None
) -> Iterator[Slot]:
    """What is denied has no value to fill a slot with.

    `written` gives the words that were written as names, None if that does not tell.
    """
    text = told.text
    if _DENIES.occur(text, told.words) and _DENIES.pattern.search(
        _USED.sub("", _BESIDES.sub("", text))
    ):
        return
    if found := _fit(told):
        names = written()
        slot = _slot(*found, names)
        if _counts(slot, text, names):
            yield slot
        return
    yield from _find_wish(told)


def _fit(told: Told) -> tuple[Subject, Fit] | None:
    """Whose attribute is given a value: of several, whoever is spoken of first."""
    text = told.text
    own = fitting(text)
    begin = text.count(" ", 0, own.match.start()) if own else len(text)
    for telling in told.tellings:
        if telling.start > begin:
            break
        fit = fitting(telling.told)
        if fit and not fit.match.start() and _suits(telling, fit.attribute):
            return telling.subject, fit
    if own is None or (
        told.of_other and begin > told.first and not _OWN.search(own.match.group())
    ):
        return None
    if own.attribute not in _SUITING or not (
        good_for := _GOOD_FOR.match(text, own.match.end())
    ):
        return CALLER, own
    whom = read_for(good_for.group())
    return (whom, own) if whom else None


def _suits(telling: Telling, attribute: str) -> bool:
    if telling.is_object:
        return attribute in _SUITING
    return attribute not in _OF_CALLER_ONLY and (
        telling.subject.is_person or attribute not in _OF_PERSONS_ONLY
    )


def _counts(slot: Slot, text: str, names: frozenset[str] | None) -> bool:
    if slot.attribute in _DWELLING and (
        _FOR_A_WHILE.search(text) or _NO_PLACE.match(slot.value)
    ):
        return False
    if slot.is_named or not _NAMES_ONLY.search(slot.attribute):
        return True
    return (
        names is None and slot.is_named is None and slot.attribute.endswith("'s name")
    )


def _find_wish(told: Told) -> Iterator[Slot]:
    """What somebody likes to have, of a kind of which one takes one."""
    head = told.head
    if (told.of_other and head is None) or not _WISH.occur(
        wish := head.told if head else told.text, wish.split() if head else told.words
    ):
        return
    wanted = _BESIDES.sub("", wish)
    for name, pattern in _DOMAIN if _ANY_DOMAIN.search(wanted) else ():
        if match := pattern.search(wanted):
            good_for = _GOOD_FOR.search(wish)
            subject = (
                read_for(good_for.group())
                if good_for
                else head.subject
                if head
                else CALLER
            )
            if subject:
                yield Slot(subject, name, match["value"])
            return


def _is_surely_name(match: re.Match[str]) -> bool:
    """ "My wife is called Ana", "my doctor is Dr Patel"."""
    return any(match.groupdict().get(sign) for sign in ("name", "called", "title"))


def _slot(subject: Subject, fit: Fit, names: frozenset[str] | None) -> Slot:
    groups = fit.match.groupdict()
    value = groups.get("value") or groups.get("value2") or ""
    kind = (
        (groups.get("kind") or groups.get("device") or "")
        .replace("cell", "mobile")
        .replace("office", "work")
        .replace("business", "work")
    )
    what = _in_order(fit.attribute, (groups.get("what") or "").strip())
    name = re.sub(r"\s+", " ", fit.attribute.format(kind=kind, what=what)).strip()
    if name == "contact":
        return Slot(subject, name, WAY[value])
    told = tidy_value(value)
    return Slot(
        subject,
        name,
        told,
        _is_surely_name(fit.match) or _is_named(name, value, told, names),
    )


def _in_order(attribute: str, what: str) -> str:
    """ "The wifi password at the guest house" is the guest house wifi password."""
    return (
        " ".join(sorted(set(what.split()) - _PLACING))
        if attribute == "{what}"
        else what
    )


def _is_named(
    attribute: str, value: str, told: str, names: frozenset[str] | None
) -> bool | None:
    """A name stands at its beginning: "red Volvo", not "one that Ana gave me"."""
    start = told.split()[:_BEGINNING]
    if not _NAMES_ONLY.search(attribute) and attribute not in _NAMED:
        return None
    if names is not None:
        return any(
            word in names or (len(word) > 1 and word[:1].isdecimal()) for word in start
        )
    if attribute.startswith("kind of "):
        return True if not word_class("makes").isdisjoint(start) else None
    # "the bbc"
    describes = _DESCRIBES.match(value) and not (
        attribute == "employer" and value.startswith("the ")
    )
    return False if describes or any(map(is_descriptive, start)) else None


def tidy_value(value: str) -> str:
    value = re.sub(r"\b(?:dr|doctor|mr|mrs|ms|miss)\b", " ", value)
    return re.sub(r"\s+", " ", _TIDY.sub(" ", _BESIDES.sub("", value))).strip()
