"""Names that callers give for themselves, and how two names compare: short forms, spellings."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from aftercall.english.names import short_forms
from aftercall.english.words import word_class
from aftercall.model.calls import Call
from aftercall.model.people import MAX_PERSON_CHARS
from aftercall.model.turns import Turn

if TYPE_CHECKING:  # commands that read do without
    from aftercall.english.introductions import GivenName

_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")


@cache
def _read_forms() -> dict[str, frozenset[str]]:
    """Maps the sound key of each name to the full names it may stand for."""
    forms: defaultdict[str, set[str]] = defaultdict(set)
    for full, shorts in short_forms().items():
        for name in (full, *shorts):
            forms[_sound_key(name)].add(_sound_key(full))
    return {name: frozenset(fulls) for name, fulls in forms.items()}


def _sound_key(name: str) -> str:
    """One key for spellings that sound alike: Ana and Anna, Jon and John, Stephen and Steven."""
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    folded = "".join(char for char in decomposed if char.isalnum())
    for spelling, sound in (
        ("ph", "f"),
        ("ck", "k"),
        ("v", "f"),
        ("y", "i"),
        ("ie", "i"),
    ):
        folded = folded.replace(spelling, sound)
    folded = re.sub(r"c(?![eih])", "k", folded)
    folded = folded[:1] + folded[1:].replace("h", "")
    return re.sub(r"(.)\1+", r"\1", folded)


def split_name(name: str) -> list[str]:
    """The words of a name, without titles."""
    return [
        word
        for word in _WORD.findall(name)
        if word.casefold().rstrip(".") not in word_class("title")
    ]


def is_same_person(stated: str, known: Iterable[str]) -> bool:
    """True if a person with the known names may have given this one.

    Compares given names: families share the other one.
    """
    given = split_name(stated)[:1]
    others = [part for name in known for part in split_name(name)]
    return not given or any(_is_same_name(given[0], other) for other in others)


def find_person(stated: str, owner: Iterable[str], others: Iterable[str] = ()) -> str:
    """The person at a number: empty for its owner, one of `others`, or a new person."""
    if is_same_person(stated, owner):
        return ""
    known = next((person for person in others if is_same_person(stated, [person])), "")
    return known or make_person_id(stated)


def make_person_id(stated: str) -> str:
    """The given name as part of a party."""
    given = (split_name(stated) or [""])[0].casefold()
    decomposed = unicodedata.normalize("NFKD", given)
    plain = "".join(char for char in decomposed if char.isascii() and char.isalnum())
    return (plain or given.encode().hex())[:MAX_PERSON_CHARS]


def _is_same_name(one: str, other: str) -> bool:
    a, b = _sound_key(one), _sound_key(other)
    forms = _read_forms()
    return a == b or bool(forms.get(a, frozenset({a})) & forms.get(b, frozenset({b})))


def list_introductions(turns: Iterable[Turn]) -> "list[GivenName]":
    """Every name given in a call, in the order it was given."""
    from aftercall.english.introductions import NameListener

    listener = NameListener()
    return [
        given
        for turn in turns
        if (given := listener.process_turn(turn.speaker, turn.text))
    ]


def find_stated_name(call: Call) -> str | None:
    """The first name that was not corrected. At a new number it is the owner's."""
    return next(iter(resolve_names(list_introductions(call.turns))), None)


def resolve_names(given: "Sequence[GivenName]") -> list[str]:
    """The names given. A correction replaces the name before it."""
    names: list[str] = []
    for introduction in given:
        if introduction.corrects and names:
            names.pop()
        names.append(introduction.name)
    return names
