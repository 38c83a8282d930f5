"""What stands in the query of a request: callers, and marks that continue a list."""

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
    if caller is None:
        return None
    try:
        return normalise_caller(_with_plus(caller))
    except ValueError as error:
        raise RefusedInput("caller", str(error)) from None


def parse_party(party: str | None) -> str | None:
    """A number, or a person at one: `+15550100#anna`."""
    if party is None:
        return None
    try:
        return normalise_party(_with_plus(party))
    except ValueError as error:
        raise RefusedInput("caller", str(error)) from None


def _with_plus(number: str) -> str:
    """As it was before a query's `+` was read as a space."""
    return number.replace(" ", "+", 1) if number.startswith(" ") else number
