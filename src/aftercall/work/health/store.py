"""The SQL of health: calls with everything that came after them, and what the sweep looks for."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, and_, exists, func, or_, select, update

from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import calls, deliveries, followup_runs, followups, steps, upkeep

MAX_KEYS_PER_QUERY = 500
_CALL_COLUMNS = ("id", "state", "conversation", "started_at", "ended_at", "end_reason", "resumes")


@dataclass(frozen=True)
class CallOutcome:
    """A call, and what came after it."""

    id: str
    state: str
    conversation: str
    started_at: datetime
    ended_at: datetime | None
    end_reason: str | None
    is_resumed: bool
    run_state: str | None
    run_reason: str
    caller_turns: int | None
    steps: tuple[tuple[str, str, int], ...] = ()
    followups: tuple[tuple[str, str], ...] = ()
    most_attempts: int = field(default=0)


@dataclass(frozen=True)
class HealthCounts:
    """What is wrong or waits, however old."""

    broken: int
    held: int
    dead: int
    queued: int
    oldest_held: datetime | None
    swept_at: datetime | None


class HealthStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def calls_since(self, since: datetime) -> list[CallOutcome]:
        """Newest first."""
        query = (
            select(
                *(calls.c[name] for name in _CALL_COLUMNS),
                followup_runs.c.state.label("run_state"),
                followup_runs.c.reason.label("run_reason"),
                followup_runs.c.legs,
            )
            .outerjoin(followup_runs, followup_runs.c.conversation == calls.c.conversation)
            .where(calls.c.started_at >= since)
            .order_by(calls.c.started_at.desc(), calls.c.id.desc())
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
            conversations = {row.conversation for row in rows}
            taken = _by_key(
                connection, steps.c.call_id, ("name", "state", "attempts"), [row.id for row in rows]
            )
            asked = _by_key(
                connection, followups.c.conversation, ("call_id", "kind", "state"), conversations
            )
            sent = _by_key(connection, deliveries.c.conversation, ("attempts",), conversations)
        resumed = {row.resumes for row in rows}
        return [
            _to_outcome(
                row,
                row.id in resumed,
                taken[row.id],
                asked[row.conversation],
                sent[row.conversation],
            )
            for row in rows
        ]

    def counts(self) -> HealthCounts:
        with self._database.read() as connection:

            def count(*wanted: ColumnElement[bool]) -> int:
                return int(connection.execute(select(func.count()).where(*wanted)).scalar_one())

            oldest = connection.execute(
                select(func.min(followups.c.changed_at)).where(followups.c.state == "held")
            ).scalar()
            queued = count(followup_runs.c.state != "done", followup_runs.c.state != "failed")
            return HealthCounts(
                broken=count(followups.c.state == "broken"),
                held=count(followups.c.state == "held", followups.c.kind == "request"),
                dead=count(deliveries.c.state == "dead", deliveries.c.purpose != "request"),
                queued=queued
                + count(calls.c.postcall == "due")
                + count(followups.c.queued == "due"),
                oldest_held=oldest,
                swept_at=connection.execute(
                    select(upkeep.c.at).where(upkeep.c.name == "sweep")
                ).scalar(),
            )

    # The sweep

    def claim_sweep(self, now: datetime, not_since: datetime) -> bool:
        """One process sweeps, once in a while."""
        with self._database.write() as connection:
            last = connection.execute(select(upkeep.c.at).where(upkeep.c.name == "sweep")).scalar()
            if last is not None and last > not_since:
                return False
            upsert(connection, upkeep, {"name": "sweep"}, {"at": now})
        return True

    def note_sweep(self, found: dict[str, int]) -> None:
        with self._database.write() as connection:
            connection.execute(update(upkeep).where(upkeep.c.name == "sweep").values(found=found))

    def requeue_unstarted_calls(self, since: datetime) -> int:
        """Sealed calls that no workflow was ever started for are due again."""
        has_steps = exists().where(steps.c.call_id == calls.c.id)
        lost = and_(
            calls.c.state == "sealed",
            calls.c.started_at >= since,
            or_(calls.c.postcall.is_(None), calls.c.postcall == "started"),
        )
        with self._database.write() as connection:
            return connection.execute(
                update(calls).where(lost, ~has_steps).values(postcall="due")
            ).rowcount

    def add_missing_runs(self, since: datetime, now: datetime) -> int:
        """Conversations that no timer was set for get one."""
        has_run = exists().where(followup_runs.c.conversation == calls.c.conversation)
        query = (
            select(calls)
            .where(calls.c.state == "sealed", calls.c.started_at >= since, ~has_run)
            .order_by(calls.c.ended_at)
        )
        with self._database.write() as connection:
            lost = connection.execute(query).all()
            for call in lost:
                timer = {
                    "agent_id": call.agent_id,
                    "caller": call.caller,
                    "state": "due",
                    "reason": "",
                    "changed_at": now,
                }
                upsert(
                    connection,
                    followup_runs,
                    {"conversation": call.conversation},
                    timer | {"ended_at": call.ended_at},
                )
        return len({call.conversation for call in lost})

    def stuck_calls(self, since: datetime, before: datetime) -> list[str]:
        """Calls with a step that has been on its way for a while."""
        is_open = exists().where(
            steps.c.call_id == calls.c.id,
            steps.c.state.in_(("waiting", "running")),
            steps.c.changed_at < before,
        )
        with self._database.read() as connection:
            return [
                str(row.id)
                for row in connection.execute(
                    select(calls.c.id).where(calls.c.started_at >= since, is_open)
                )
            ]

    def restart(self, call_id: str) -> None:
        with self._database.write() as connection:
            connection.execute(update(calls).where(calls.c.id == call_id).values(postcall="due"))

    def stuck_runs(self, since: datetime, before: datetime) -> list[tuple[str, int, str]]:
        """Runs that failed, or have been on their way for a while: conversation, number, state."""
        wanted = and_(followup_runs.c.ended_at >= since, followup_runs.c.changed_at < before)
        query = select(followup_runs).where(
            wanted, followup_runs.c.state != "done", followup_runs.c.state != "due"
        )
        with self._database.read() as connection:
            return [(row.conversation, row.run, row.state) for row in connection.execute(query)]

    def requeue_stranded_requests(self, before: datetime) -> int:
        """Requests still open although their conversation's run is over and nobody has them."""
        over = exists().where(
            followup_runs.c.conversation == followups.c.conversation,
            followup_runs.c.state == "done",
        )
        is_open = and_(
            followups.c.state.in_(("open", "doing")),
            followups.c.kind == "request",
            followups.c.changed_at < before,
        )
        nobody = or_(followups.c.queued.is_(None), followups.c.queued == "started")
        with self._database.write() as connection:
            again = {"queued": "due", "round": followups.c.round + 1}
            return connection.execute(
                update(followups).where(is_open, nobody, over).values(again)
            ).rowcount


def _by_key(
    connection: Connection, key: Column[Any], names: Sequence[str], wanted: Iterable[str]
) -> dict[str, list[Any]]:
    """Rows of the key's table, only the named columns: dates and JSON cost more to read than
    all the rest.
    """
    found: dict[str, list[Any]] = defaultdict(list)
    keys = sorted(wanted)
    for begin in range(0, len(keys), MAX_KEYS_PER_QUERY):
        query = select(key.label("key"), *(key.table.c[name] for name in names)).where(
            key.in_(keys[begin : begin + MAX_KEYS_PER_QUERY])
        )
        for row in connection.execute(query):
            found[row.key].append(row)
    return found


def _to_outcome(
    row: Any, is_resumed: bool, taken: list[Any], asked: list[Any], sent: list[Any]
) -> CallOutcome:
    return CallOutcome(
        id=row.id,
        state=row.state,
        conversation=row.conversation,
        started_at=row.started_at,
        ended_at=row.ended_at,
        end_reason=row.end_reason,
        is_resumed=is_resumed,
        run_state=row.run_state,
        run_reason=row.run_reason or "",
        caller_turns=(row.legs or {}).get(row.id),
        steps=tuple((step.name, step.state, step.attempts) for step in taken),
        followups=tuple((item.kind, item.state) for item in asked if item.call_id == row.id),
        most_attempts=max((item.attempts for item in (*taken, *sent)), default=0),
    )
