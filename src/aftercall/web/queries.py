"""What stands in the query of a request: callers, and marks that continue a list."""

from collections.abc import Callable
from datetime import datetime

from aftercall.errors import RefusedInput
from aftercall.journal.store import CallRow
from aftercall.model.instants import format_instant, parse_instant
from aftercall.model.people import normalise_caller, normalise_party


def cursor_of(row: CallRow) -> str:
    return f"{format_instant(row.live.started_at)}~{row.live.id}"


def parse_cursor(cursor: str | None) -> tuple[datetime, str] | None:
    if cursor is None:
        return None
    instant, mark, call_id = cursor.partition("~")
    try:
        return parse_instant(instant), call_id if mark else ""
    except ValueError:
        raise RefusedInput("before", "is not a mark from an earlier answer's `next`") from None


def parse_caller(caller: str | None) -> str | None:
    return _parse(caller, normalise_caller)


def parse_party(party: str | None) -> str | None:
    """A number, or a person at one: `+15550100#anna`."""
    return _parse(party, normalise_party)


def _parse(given: str | None, normalise: Callable[[str], str | None]) -> str | None:
    if given is None:
        return None
    try:
        return normalise(given.replace(" ", "+", 1) if given.startswith(" ") else given)  # a query's `+` was read as a space
    except ValueError as error:
        raise RefusedInput("caller", str(error)) from None
