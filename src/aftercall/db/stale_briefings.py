"""Marks prepared briefings stale, in the transaction that changes what they rest on."""

from secrets import randbits
from typing import Any

from sqlalchemy import Connection, bindparam, or_, select, tuple_, update

from aftercall.db.connect import before_commit
from aftercall.db.statements import PreparedStatement, upsert
from aftercall.db.tables import briefings

STALE_VALUES: dict[str, Any] = {"version": briefings.c.version + 1, "body": None}


def make_unprepared_row(*, rests_on_all: bool) -> dict[str, Any]:
    """A row that waits to be prepared.

    Its version is random: a briefing composed for a deleted row must not fill the next one.
    """
    return {"version": randbits(48), "rests_on_all": rests_on_all}


def invalidate_briefing(
    connection: Connection, agent_id: str, caller: str | None
) -> None:
    """Marks the caller's briefing stale, and those that rest on all callers."""
    key = (agent_id,) if caller is None else (agent_id, caller, "outdated")
    values = {"agent": agent_id, "whose": caller}
    before_commit(connection, key, lambda last: _MARK_STALE.execute(last, values))


def request_briefing(connection: Connection, agent_id: str, caller: str) -> None:
    """Asks for a new briefing of this caller, who may call again."""

    def put(last: Connection) -> None:
        key = {"agent_id": agent_id, "caller": caller}
        row = make_unprepared_row(rests_on_all=False)
        upsert(last, briefings, key, row, changes=STALE_VALUES)

    before_commit(connection, (agent_id, caller, "expected"), put)
    invalidate_briefing(connection, agent_id, None)


# An update alone locks its rows in no fixed order. Shared rows are locked first, then callers by
# name, here and in `before_commit`: two transactions never wait for each other.
_KEY = (briefings.c.agent_id, briefings.c.caller)
_LOCKED = (
    select(*_KEY)
    .where(
        briefings.c.agent_id == bindparam("agent"),
        or_(briefings.c.rests_on_all, briefings.c.caller == bindparam("whose")),
    )
    .order_by(briefings.c.rests_on_all.desc(), briefings.c.caller)
    .with_for_update()
)
_MARK_STALE = PreparedStatement(
    update(briefings).where(tuple_(*_KEY).in_(_LOCKED)).values(STALE_VALUES)
)
