"""Names that callers give for themselves in a call, in the order they gave them."""

from collections.abc import Iterable, Sequence

from aftercall.english.introductions import GivenName, NameListener
from aftercall.model.calls import Call
from aftercall.model.turns import Turn


def list_introductions(turns: Iterable[Turn]) -> list[GivenName]:
    """Every name given in a call, in the order it was given."""
    listener = NameListener()
    return [
        given
        for turn in turns
        if (given := listener.process_turn(turn.speaker, turn.text))
    ]


def find_stated_name(call: Call) -> str | None:
    """The first name that was not corrected. At a new number it is the owner's."""
    return next(iter(resolve_names(list_introductions(call.turns))), None)


def resolve_names(given: Sequence[GivenName]) -> list[str]:
    """The names given. A correction replaces the name before it."""
    names: list[str] = []
    for introduction in given:
        if introduction.corrects and names:
            names.pop()
        names.append(introduction.name)
    return names
