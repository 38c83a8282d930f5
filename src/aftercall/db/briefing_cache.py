"""The cache of briefings: what the database knows of each caller, composed before they ring.

A row without a body is stale and waits to be filled, also after a crash. A change of its sources
counts its version up and empties it in the same transaction (`invalidate_briefing`).
"""

from dataclasses import dataclass
from datetime import datetime
from secrets import randbits

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    func,
    or_,
    select,
    tuple_,
    update,
)

from aftercall.db.connect import Database, before_commit
from aftercall.db.statements import InValues, PreparedStatement, upsert
from aftercall.db.tables import briefings, facts
from aftercall.model.briefing import CallerMemory
from aftercall.model.json_fields import Json

STALE_VALUES: Json = {"version": briefings.c.version + 1, "body": None}


def make_unprepared_row(*, rests_on_all: bool) -> Json:
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


_ADAPTER = TypeAdapter(CallerMemory)
_READ = PreparedStatement(
    select(briefings.c.body).where(
        briefings.c.agent_id == bindparam("agent"),
        briefings.c.caller == bindparam("whose"),
        briefings.c.form == bindparam("settings"),
    )
)
_COUNT_ACTIVE = PreparedStatement(
    select(func.count())
    .select_from(facts)
    .where(
        InValues(facts.c.id, "facts"), facts.c.is_active, facts.c.visibility != "secret"
    )
)


@dataclass(frozen=True)
class StaleBriefing:
    """A row to fill. What is composed for one version is not saved for a later one."""

    agent_id: str
    caller: str
    version: int
    rests_on_all: bool


class BriefingCache:
    """Briefings made ahead of calls; a change of what they rest on makes them stale."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, agent_id: str, caller: str, form: str) -> CallerMemory | None:
        """What was composed under these settings and is still true; None on a miss.

        Every fact is checked again: a fact that was retired or made secret is never told.
        """
        values = {"agent": agent_id, "whose": caller, "settings": form}
        with self._database.read() as connection:
            rows = _READ.fetch(connection, values)
            if not rows or rows[0][0] is None:
                return None
            try:
                remembered = _ADAPTER.validate_json(rows[0][0])
            except ValidationError:  # written by another version of the program
                return None
            fact_ids = [fact.id for fact in remembered.facts]
            return remembered if _are_active(connection, fact_ids) else None

    def start(self, agent_id: str, caller: str, *, rests_on_all: bool) -> StaleBriefing:
        """Call this before reading the sources: any later change counts the version up."""
        key = {"agent_id": agent_id, "caller": caller}
        row = make_unprepared_row(rests_on_all=rests_on_all)
        version = select(briefings.c.version).where(*_is_of(agent_id, caller))
        with self._database.write() as connection:
            upsert(
                connection, briefings, key, row, changes={"rests_on_all": rests_on_all}
            )
            return StaleBriefing(
                agent_id, caller, connection.execute(version).scalar_one(), rests_on_all
            )

    def save(
        self, stale: StaleBriefing, form: str, remembered: CallerMemory, now: datetime
    ) -> bool:
        """False if a source changed since the version was read."""
        body = {
            "form": form,
            "body": _ADAPTER.dump_json(remembered).decode(),
            "prepared_at": now,
        }
        is_same = and_(
            *_is_of(stale.agent_id, stale.caller), briefings.c.version == stale.version
        )
        return (
            self._database.execute(update(briefings).where(is_same).values(body)) == 1
        )

    def list_stale(self, limit: int) -> list[StaleBriefing]:
        columns = [briefings.c[name] for name in StaleBriefing.__dataclass_fields__]
        query = select(*columns).where(briefings.c.body.is_(None)).limit(limit)
        return [StaleBriefing(*row) for row in self._database.fetch(query)]

    def invalidate_other_forms(self, form: str) -> None:
        """At start: empty what was composed under other settings."""
        is_other = briefings.c.form != form
        self._database.execute(
            update(briefings).where(is_other).values(STALE_VALUES | {"form": None})
        )


def _are_active(connection: Connection, fact_ids: list[str]) -> bool:
    if not fact_ids:
        return True
    ((count,),) = _COUNT_ACTIVE.fetch(connection, {"facts": fact_ids})
    return bool(count == len(fact_ids))


def _is_of(agent_id: str, caller: str) -> tuple[ColumnElement[bool], ...]:
    return briefings.c.agent_id == agent_id, briefings.c.caller == caller
