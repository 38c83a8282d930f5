"""The SQL of prepared briefings: read at ring time, prepared again when they are out of date."""

from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, select, update

from aftercall.db.connect import Database
from aftercall.db.stale_briefings import STALE_VALUES, make_unprepared_row
from aftercall.db.statements import InValues, PreparedStatement, upsert
from aftercall.db.tables import briefings, facts
from aftercall.model.briefing import CallerMemory

_ADAPTER = TypeAdapter(CallerMemory)
_READ = PreparedStatement(
    select(briefings.c.body).where(
        briefings.c.agent_id == bindparam("agent"),
        briefings.c.caller == bindparam("whose"),
        briefings.c.form == bindparam("settings"),
    )
)
_BELIEVED = PreparedStatement(
    select(func.count())
    .select_from(facts)
    .where(InValues(facts.c.id, "facts"), facts.c.is_active, facts.c.visibility != "secret")
)


@dataclass(frozen=True)
class DueBriefing:
    """A row that waits to be prepared.

    What is composed for this version is of no use to a later one.
    """

    agent_id: str
    caller: str
    version: int
    rests_on_all: bool


class BriefingStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, agent_id: str, caller: str, form: str) -> CallerMemory | None:
        """What was prepared under these settings and is still true; None where it has to be
        composed.

        Every fact is looked at once more: one that was retired or hidden is not told, however
        it came about.
        """
        values = {"agent": agent_id, "whose": caller, "settings": form}
        with self._database.read() as connection:
            rows = _READ.fetch(connection, values)
            if not rows or rows[0][0] is None:
                return None
            try:
                remembered = _ADAPTER.validate_json(rows[0][0])
            except ValidationError:  # of another version of ours
                return None
            fact_ids = [fact.id for fact in remembered.facts]
            return remembered if _are_believed(connection, fact_ids) else None

    def start(self, agent_id: str, caller: str, *, rests_on_all: bool) -> DueBriefing:
        """Before anything is read for it: what changes from here on counts the version up."""
        key, row = (
            {"agent_id": agent_id, "caller": caller},
            make_unprepared_row(rests_on_all=rests_on_all),
        )
        with self._database.write() as connection:
            upsert(connection, briefings, key, row, changes={"rests_on_all": rests_on_all})
            version = connection.execute(
                select(briefings.c.version).where(*_key(agent_id, caller))
            ).scalar_one()
        return DueBriefing(agent_id, caller, version, rests_on_all)

    def save(self, due: DueBriefing, form: str, remembered: CallerMemory, now: datetime) -> bool:
        """Store it, unless something it rests on has changed since it was begun."""
        body = {"form": form, "body": _ADAPTER.dump_json(remembered).decode(), "prepared_at": now}
        mine = and_(*_key(due.agent_id, due.caller), briefings.c.version == due.version)
        with self._database.write() as connection:
            return connection.execute(update(briefings).where(mine).values(body)).rowcount == 1

    def list_due(self, limit: int) -> list[DueBriefing]:
        query = select(
            briefings.c.agent_id, briefings.c.caller, briefings.c.version, briefings.c.rests_on_all
        )
        with self._database.read() as connection:
            return [
                DueBriefing(*row)
                for row in connection.execute(query.where(briefings.c.body.is_(None)).limit(limit))
            ]

    def invalidate_other_forms(self, form: str) -> None:
        """At start: what was composed under other settings is to be prepared anew."""
        with self._database.write() as connection:
            connection.execute(
                update(briefings)
                .where(briefings.c.form != form)
                .values(STALE_VALUES | {"form": None})
            )


def _are_believed(connection: Connection, fact_ids: list[str]) -> bool:
    if not fact_ids:
        return True
    ((believed,),) = _BELIEVED.fetch(connection, {"facts": fact_ids})
    return bool(believed == len(fact_ids))


def _key(agent_id: str, caller: str) -> tuple[ColumnElement[bool], ...]:
    return briefings.c.agent_id == agent_id, briefings.c.caller == caller
