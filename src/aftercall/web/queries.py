"""Query parameters of requests: callers, list cursors, unknown names."""

from datetime import datetime

from starlette.requests import Request

from aftercall.clock import format_instant, parse_instant
from aftercall.errors import RefusedInput
from aftercall.journal.store import CallRow
from aftercall.who.caller import read_caller, read_party


def to_cursor(row: CallRow) -> str:
    return f"{format_instant(row.live.started_at)}~{row.live.id}"


def parse_cursor(cursor: str | None) -> tuple[datetime, str] | None:
    if cursor is None:
        return None
    instant, separator, call_id = cursor.partition("~")
    try:
        return parse_instant(instant), call_id if separator else ""
    except ValueError:
        raise RefusedInput("before", "is not the `next` of an earlier answer") from None


def refuse_unknown_query(request: Request) -> None:
    """An ignored parameter would look as if it had been applied."""
    known = sorted(
        field.alias for field in request.scope["route"].dependant.query_params
    )
    for name in request.query_params:
        if name not in known:
            raise RefusedInput(
                name[:40], f"is not known here; known: {', '.join(known) or 'none'}"
            )


def parse_caller(caller: str | None) -> str | None:
    """The number to look for; None if none is given."""
    if caller is None:
        return None
    known = read_caller(_restore_plus(caller), "caller")
    if known is None:
        raise RefusedInput("caller", "is empty or withheld; nothing is kept under it")
    return known


def parse_party(party: str | None) -> str | None:
    return None if party is None else read_party(_restore_plus(party), "caller")


def require_party(party: str) -> str:
    """A number, or a person at one."""
    known = parse_party(party)
    if known is None:
        raise RefusedInput("caller", "is withheld; no memory is kept for it")
    return known


def _restore_plus(given: str) -> str:
    """The query decoder turned a leading `+` into a space."""
    return given.replace(" ", "+", 1) if given.startswith(" ") else given
