"""Prepared briefings go out of date in the very transaction that changes what they rest on."""

from collections.abc import Mapping, Sequence
from secrets import randbits
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, select, update

from aftercall.db.connect import before_commit
from aftercall.db.prepared import InValues, PreparedStatement
from aftercall.db.statements import upsert
from aftercall.db.tables import briefings

STALE_VALUES: dict[str, Any] = {"version": briefings.c.version + 1, "body": None}


def make_unprepared_row(*, rests_on_all: bool) -> dict[str, Any]:
    """A row that waits to be prepared.

    Versions begin anywhere: who composed for a row that is gone must not fill the next one.
    """
    return {"version": randbits(48), "rests_on_all": rests_on_all}


def invalidate_briefing(connection: Connection, agent_id: str, caller: str | None) -> None:
    """Something that this caller's next call is told of has changed.

    A caller without a row has nothing to go out of date.
    """
    if caller is not None:
        before_commit(
            connection,
            (agent_id, caller, "outdated"),
            lambda last: _OF_ONE.invalidate(last, {"agent": agent_id, "whose": caller}),
        )
    _invalidate_shared(connection, agent_id)


def invalidate_all_briefings(connection: Connection, agent_id: str, callers: Sequence[str]) -> None:
    """The same for several callers of one agent.

    Nothing else may be outdated in that transaction: rows are locked in one order.
    """
    named = {"agent": agent_id, "callers": sorted(set(callers))}
    before_commit(
        connection, (agent_id, "", "outdated"), lambda last: _OF_SEVERAL.invalidate(last, named)
    )
    _invalidate_shared(connection, agent_id)


def request_briefing(connection: Connection, agent_id: str, caller: str) -> None:
    """This caller may ring again: their briefing is to be prepared."""

    def put(last: Connection) -> None:
        upsert(
            last,
            briefings,
            {"agent_id": agent_id, "caller": caller},
            make_unprepared_row(rests_on_all=False),
            changes=STALE_VALUES,
        )

    before_commit(connection, (agent_id, caller, "expected"), put)
    _invalidate_shared(connection, agent_id)


def _invalidate_shared(connection: Connection, agent_id: str) -> None:
    """Rows that rest on every caller's calls."""
    before_commit(
        connection, (agent_id,), lambda last: _SHARED.invalidate(last, {"agent": agent_id})
    )


class _BriefingRows(NamedTuple):
    """Some rows of briefings, and how they are emptied."""

    lock: PreparedStatement
    outdate: PreparedStatement

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
            PreparedStatement(update(briefings).where(*conditions).values(STALE_VALUES)),
        )

    def invalidate(self, connection: Connection, named: Mapping[str, Any]) -> None:
        if (
            connection.dialect.name == "postgresql"
        ):  # an update of several locks them in no order at all
            self.lock.fetch(connection, named)
        self.outdate.execute(connection, named)


_OF_AGENT = briefings.c.agent_id == bindparam("agent")
_OF_ONE = _BriefingRows.where(_OF_AGENT, briefings.c.caller == bindparam("whose"))
_OF_SEVERAL = _BriefingRows.where(_OF_AGENT, InValues(briefings.c.caller, "callers"))
_SHARED = _BriefingRows.where(_OF_AGENT, briefings.c.rests_on_all)
