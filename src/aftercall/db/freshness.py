"""Prepared briefings go out of date in the very transaction that changes what they rest on."""

from secrets import randbits
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, update

from aftercall.db.tables import briefings
from aftercall.db.upsert import upsert

STALE: dict[str, Any] = {"version": briefings.c.version + 1, "body": None}


def fresh_row(*, rests_on_all: bool) -> dict[str, Any]:
    """A row that waits to be prepared. Versions begin anywhere: who composed for a row that is gone must not fill the next one."""
    return {"version": randbits(48), "rests_on_all": rests_on_all}


def outdate(connection: Connection, agent_id: str, caller: str | None) -> None:
    """Something that this caller's next call is told of has changed. A caller without a row has nothing to go out of date."""
    if caller is not None:
        _empty(connection, and_(briefings.c.agent_id == agent_id, briefings.c.caller == caller))
    _empty(connection, and_(briefings.c.agent_id == agent_id, briefings.c.rests_on_all))


def expect(connection: Connection, agent_id: str, caller: str) -> None:
    """This caller may ring again: their briefing is to be prepared."""
    upsert(connection, briefings, {"agent_id": agent_id, "caller": caller}, fresh_row(rests_on_all=False), changes=STALE)
    _empty(connection, and_(briefings.c.agent_id == agent_id, briefings.c.rests_on_all, briefings.c.caller != caller))


def _empty(connection: Connection, rows: ColumnElement[bool]) -> None:
    connection.execute(update(briefings).where(rows).values(STALE))
