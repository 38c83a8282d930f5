"""Reads a caller from a command, a form or a URL. A refusal names the field."""

from collections.abc import Callable

from aftercall.errors import RefusedInput
from aftercall.model.people import normalise_caller, normalise_party


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
