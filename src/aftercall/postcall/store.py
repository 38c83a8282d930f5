"""The SQL of post-call work: which calls are due, and how far each step is."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Row, and_, select, update

from aftercall.db.connect import Database
from aftercall.db.tables import calls, steps
from aftercall.db.upsert import upsert
from aftercall.model.briefing import RecentCall
from aftercall.model.reading import Trace
from aftercall.model.steps import Outcome, Step


class StepStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, limit: int = 100) -> list[str]:
        """Sealed calls whose work has not been started, oldest first."""
        query = select(calls.c.id).where(calls.c.postcall == "due").order_by(calls.c.id).limit(limit)
        with self._database.read() as connection:
            return [str(row.id) for row in connection.execute(query)]

    def mark_started(self, call_id: str, names: list[str], now: datetime) -> None:
        with self._database.write() as connection:
            connection.execute(update(calls).where(calls.c.id == call_id).values(postcall="started"))
            for name in names:
                upsert(
                    connection, steps, {"call_id": call_id, "name": name}, {"state": "waiting", "reason": "", "changed_at": now}, changes={}
                )

    def begin(self, call_id: str, names: Sequence[str], now: datetime, *, again: bool = False) -> None:
        """In one transaction, since the steps of a call begin together. `again` also begins what had come to its end."""
        running = {"state": "running", "reason": "", "changed_at": now}
        unfinished = None if again else steps.c.state.in_(("waiting", "running"))
        with self._database.write() as connection:
            for name in names:
                key = {"call_id": call_id, "name": name}
                counted = running | {"attempts": steps.c.attempts + 1}
                upsert(connection, steps, key, running | {"attempts": 1}, changes=counted, only_where=unfinished)

    def finish(self, call_id: str, name: str, outcome: Outcome, now: datetime) -> None:
        trace = asdict(outcome.trace) if outcome.trace else None
        ended = {"state": outcome.state, "reason": outcome.reason, "result": outcome.result, "trace": trace, "changed_at": now}
        self._end(call_id, name, ended)

    def put_off(self, call_id: str, name: str, reason: str, now: datetime) -> None:
        self._end(call_id, name, {"state": "waiting", "reason": reason, "changed_at": now})

    def fail(self, call_id: str, name: str, reason: str, now: datetime) -> None:
        self._end(call_id, name, {"state": "failed", "reason": reason, "changed_at": now})

    def _end(self, call_id: str, name: str, values: dict[str, Any]) -> None:
        with self._database.write() as connection:
            upsert(connection, steps, {"call_id": call_id, "name": name}, values)

    def hush(self, call_id: str, clean: Callable[[str], str]) -> None:
        """Take a secret out of what the steps made."""
        told = select(steps.c.name, steps.c.result).where(steps.c.call_id == call_id, steps.c.result.is_not(None))
        with self._database.write() as connection:
            for row in connection.execute(told).all():
                if (hushed := clean(row.result)) != row.result:
                    connection.execute(update(steps).where(steps.c.call_id == call_id, steps.c.name == row.name).values(result=hushed))

    def of_call(self, call_id: str) -> list[Step]:
        query = select(steps).where(steps.c.call_id == call_id).order_by(steps.c.name)
        with self._database.read() as connection:
            return [to_step(row) for row in connection.execute(query)]

    def recent_summaries(self, agent_id: str, caller: str, limit: int) -> list[RecentCall]:
        """The last calls of this caller that have a summary, oldest first."""
        query = (
            select(calls.c.ended_at, steps.c.result)
            .join(steps, and_(steps.c.call_id == calls.c.id, steps.c.name == "summary", steps.c.state == "done"))
            .where(calls.c.caller == caller, calls.c.agent_id == agent_id, steps.c.result.is_not(None))
            .order_by(calls.c.started_at.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            return [RecentCall(row.ended_at, row.result) for row in connection.execute(query)][::-1]


def to_step(row: Row[Any]) -> Step:
    trace = Trace(**row.trace) if row.trace else None
    return Step(row.name, row.state, row.reason, row.attempts, row.result, row.changed_at, trace)
