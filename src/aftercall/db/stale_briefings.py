"""Marks prepared briefings stale, in the transaction that changes what they rest on."""

from collections.abc import Mapping
from secrets import randbits
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, select, update

from aftercall.db.connect import before_commit
from aftercall.db.statements import InValues, PreparedStatement, upsert
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
    if caller is not None:
        before_commit(
            connection,
            (agent_id, caller, "outdated"),
            lambda last: _OF_ONE.invalidate(last, {"agent": agent_id, "whose": caller}),
        )
    _invalidate_shared(connection, agent_id)


def request_briefing(connection: Connection, agent_id: str, caller: str) -> None:
    """Asks for a new briefing of this caller, who may call again."""

    def put(last: Connection) -> None:
        key = {"agent_id": agent_id, "caller": caller}
        row = make_unprepared_row(rests_on_all=False)
        upsert(last, briefings, key, row, changes=STALE_VALUES)

    before_commit(connection, (agent_id, caller, "expected"), put)
    _invalidate_shared(connection, agent_id)


def _invalidate_shared(connection: Connection, agent_id: str) -> None:
    values = {"agent": agent_id}
    before_commit(
        connection, (agent_id,), lambda last: _SHARED.invalidate(last, values)
    )


class _BriefingRows(NamedTuple):
    lock: PreparedStatement
    update: PreparedStatement

    @classmethod
    def where(cls, *conditions: ColumnElement[bool]) -> "_BriefingRows":
        lock = (
            select(briefings.c.caller)
            .where(*conditions)
            .order_by(briefings.c.caller)
            .with_for_update()
        )
        return cls(
            PreparedStatement(lock),
            PreparedStatement(
                update(briefings).where(*conditions).values(STALE_VALUES)
            ),
        )

    def invalidate(self, connection: Connection, values: Mapping[str, Any]) -> None:
        if connection.dialect.name == "postgresql":
            # an update locks its rows in no fixed order
            self.lock.fetch(connection, values)
        self.update.execute(connection, values)


_OF_AGENT = briefings.c.agent_id == bindparam("agent")
_OF_ONE = _BriefingRows.where(_OF_AGENT, briefings.c.caller == bindparam("whose"))
_OF_SEVERAL = _BriefingRows.where(_OF_AGENT, InValues(briefings.c.caller, "callers"))
_SHARED = _BriefingRows.where(_OF_AGENT, briefings.c.rests_on_all)
