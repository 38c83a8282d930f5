"""The SQL of post-call work: which calls are due, and how far each step is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Row,
    Update,
    and_,
    func,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.sql.dml import ReturningInsert

from aftercall.db.briefing_cache import invalidate_briefing
from aftercall.db.connect import Database
from aftercall.db.conversations import NEWEST_FIRST, belongs_to
from aftercall.db.event_log import write_call_event
from aftercall.db.statements import insert_into, upsert
from aftercall.db.tables import calls, documents, steps
from aftercall.model.briefing import RecentCall
from aftercall.model.calls import Call
from aftercall.model.json_fields import Json, pick_fields
from aftercall.model.passages import parse_next_call_context
from aftercall.model.people import find_greeted_name
from aftercall.model.reading import (
    OPEN_STATES,
    ReadingTrace,
    Step,
    StepOutcome,
    StepState,
)

KEY = ["call_id", "name"]
START_LOCK_TIMEOUT_S = 30
START_BATCH_SIZE = 25  # so many calls a busy machine starts before the lock times out
SUMMARY = "summary"  # the next call is briefed with its result


class StepStore:
    """Which steps of a call wait, run, are done or have failed, and what they made."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list_due(self, limit: int = START_BATCH_SIZE) -> dict[str, int]:
        """Sealed calls whose words have not been read, oldest first: the addenda of each."""
        query = (
            select(calls.c.id, calls.c.addenda)
            .where(calls.c.postcall == "due")
            .order_by(calls.c.id)
            .limit(limit)
        )
        return {row.id: row.addenda for row in self._database.fetch(query)}

    def count_due(self) -> int:
        query = select(func.count()).where(calls.c.postcall == "due")
        return self._database.fetch_value(query) or 0

    @contextmanager
    def start_lock(self) -> Iterator[bool]:
        """True if this process may start calls now. Two starters would do the same work twice.

        A process that hangs loses the lock. SQLite has few processes and needs none.
        """
        if self._database.dialect != "postgresql":
            yield True
            return
        timeout = (
            f"SET LOCAL idle_in_transaction_session_timeout = '{START_LOCK_TIMEOUT_S}s'"
        )
        lock = (
            "SELECT pg_try_advisory_xact_lock(hashtextextended('aftercall.start', 0))"
        )
        with self._database.write() as connection:
            connection.execute(text(timeout))
            yield bool(connection.execute(text(lock)).scalar())

    def add_waiting(
        self, call_ids: Sequence[str], names: Sequence[str], now: datetime
    ) -> None:
        """Add the rows before a workflow starts: adding them later could deadlock with a claim."""
        waiting = {"state": "waiting", "reason": "", "changed_at": now}
        rows = [
            {"call_id": call_id, "name": name, **waiting}
            for call_id in sorted(call_ids)
            for name in sorted(names)
        ]
        if rows:
            with self._database.write() as connection:
                fresh = insert_into(steps, connection.dialect.name)
                added = fresh.on_conflict_do_nothing(index_elements=KEY)
                connection.execute(added, rows)

    def mark_started(self, started: Mapping[str, int]) -> None:
        """Calls and their addenda; one that got another addendum meanwhile stays due."""
        with self._database.write() as connection:
            # A key-share lock does not block transactions that only refer to these calls.
            locked = (
                select(calls.c.id, calls.c.addenda)
                .where(calls.c.id.in_(started))
                .order_by(calls.c.id)
                .with_for_update(key_share=True)
            )
            rows = connection.execute(locked).all()
            found = [row.id for row in rows if row.addenda == started[row.id]]
            connection.execute(
                update(calls).where(calls.c.id.in_(found)).values(postcall="started")
            )

    def claim(
        self, call_id: str, names: Sequence[str], now: datetime, *, again: bool = False
    ) -> list[str]:
        """Mark steps as running. Returns them without those that have ended, unless `again`."""
        with self._database.write() as connection:
            return _claim(connection, call_id, names, now, again=again)

    def claim_by_hand(
        self, call_id: str, names: Sequence[str], now: datetime, unfinished: str
    ) -> set[str]:
        """Claim steps outside the workflow. Returns those that the workflow will still run.

        The others show as failed with this reason until they end: no workflow repeats them after
        a crash.
        """
        with self._database.write() as connection:
            known = _read_states(connection, call_id)
            due = select(calls.c.postcall).where(calls.c.id == call_id)
            is_due = connection.execute(due).scalar() == "due"
            unknown: StepState = "waiting" if is_due else "failed"
            scheduled = {
                name for name in names if known.get(name, unknown) in OPEN_STATES
            }
            with_workflow = [name for name in names if name in scheduled]
            alone = [name for name in names if name not in scheduled]
            _claim(connection, call_id, with_workflow, now, again=True)
            _claim(
                connection,
                call_id,
                alone,
                now,
                again=True,
                shown=("failed", unfinished),
            )
        return scheduled

    def finish(
        self, call_id: str, outcomes: Mapping[str, StepOutcome], now: datetime
    ) -> None:
        """Record how steps ended, in one transaction with what they write."""
        if not outcomes:
            return
        rows = [
            {
                "call_id": call_id,
                "name": name,
                "state": outcome.state,
                "reason": outcome.reason,
                "result": outcome.result,
                "trace": asdict(outcome.trace) if outcome.trace else None,
                "reader": outcome.trace.reader if outcome.trace else None,
                "cost": outcome.trace.cost if outcome.trace else None,
                "changed_at": now,
            }
            for name, outcome in outcomes.items()
        ]
        with self._database.write() as connection:
            for outcome in outcomes.values():
                if outcome.write:
                    outcome.write(connection)
            connection.execute(_finish_statement(connection.dialect.name), rows)
            if summary := outcomes.get(SUMMARY):
                _invalidate_briefing(connection, call_id)
                if summary.state == "done":
                    write_call_event(connection, "call.summarised", call_id, now)

    def put_off(
        self,
        call_id: str,
        name: str,
        reason: str,
        now: datetime,
        waiting: Sequence[str] = (),
    ) -> None:
        """Record that a step will be tried again. `waiting` are steps that wait for it.

        Their time is moved on too, so that they do not look stuck.
        """
        with self._database.write() as connection:
            _end(
                connection,
                call_id,
                name,
                {"state": "waiting", "reason": reason, "changed_at": now},
            )
            for other in waiting:
                connection.execute(
                    _update_waiting(call_id, other).values(changed_at=now)
                )

    def fail(
        self,
        call_id: str,
        name: str,
        reason: str,
        now: datetime,
        waiting: Mapping[str, str] | None = None,
    ) -> None:
        """Record that a step failed. `waiting` maps steps that wait for it to their reason."""
        with self._database.write() as connection:
            _end(
                connection,
                call_id,
                name,
                {"state": "failed", "reason": reason, "changed_at": now},
            )
            for other, other_reason in (waiting or {}).items():
                failed = {"state": "failed", "reason": other_reason, "changed_at": now}
                connection.execute(_update_waiting(call_id, other).values(failed))

    def state_of(self, call_id: str, name: str) -> StepState | None:
        return self.states_of(call_id).get(name)

    def states_of(self, call_id: str) -> dict[str, StepState]:
        with self._database.read() as connection:
            return _read_states(connection, call_id)

    def result_of(self, call_id: str, name: str) -> str:
        """What the step last made; empty if it made nothing."""
        query = select(steps.c.result).where(
            steps.c.call_id == call_id, steps.c.name == name
        )
        return self._database.fetch_value(query) or ""

    def redact_results(self, call_id: str, clean: Callable[[str], str]) -> None:
        """What steps kept of a call, without its secrets; its briefing is made again."""
        own = steps.c.call_id == call_id
        results = select(steps.c.name, steps.c.result)
        query = results.where(own, steps.c.result.is_not(None))
        with self._database.write() as connection:
            for row in connection.execute(query).all():
                cleaned = clean(row.result)
                if cleaned != row.result:
                    step = update(steps).where(own, steps.c.name == row.name)
                    connection.execute(step.values(result=cleaned))
                    _invalidate_briefing(connection, call_id)

    def of_call(self, call_id: str) -> list[Step]:
        query = select(steps).where(steps.c.call_id == call_id).order_by(steps.c.name)
        return [to_step(row) for row in self._database.fetch(query)]

    def last_greeting(self, call: Call) -> tuple[str, datetime] | None:
        """The greeting left after this party's last call with words, and the call's end."""
        greeting = and_(steps.c.call_id == calls.c.id, steps.c.name == "greeting")
        query = (
            select(steps.c.result, calls.c.ended_at)
            .select_from(calls.outerjoin(steps, greeting))
            .where(_is_talk_with_party(call), calls.c.started_at < call.started_at)
            .order_by(*NEWEST_FIRST)
        )
        row = self._database.fetch_first(query.limit(1))
        return (row.result, row.ended_at) if row and row.result else None

    def has_later_call(self, call: Call) -> bool:
        """True if this party has called since, with words. Calls may be handed in late."""
        talks = select(calls.c.id).where(_is_talk_with_party(call))
        last = self._database.fetch_value(talks.order_by(*NEWEST_FIRST).limit(1))
        return last not in (None, call.id)

    def recent_summaries(
        self, agent_id: str, party: str, limit: int, *, of_all: bool = False
    ) -> list[RecentCall]:
        """The party's last calls with a summary, oldest first.

        `of_all` takes the calls of every known number.
        """
        whose = calls.c.whose != "" if of_all else belongs_to(party)
        summary = and_(
            steps.c.call_id == calls.c.id,
            steps.c.name == SUMMARY,
            steps.c.state == "done",
        )
        greetings = steps.alias()
        greeting = and_(
            greetings.c.call_id == calls.c.id, greetings.c.name == "greeting"
        )
        query = (
            select(
                calls.c.ended_at,
                steps.c.result,
                documents.c.content,
                greetings.c.result.label("greeting"),
                calls.c.whose,
            )
            .join(steps, summary)
            .outerjoin(documents, documents.c.call_id == calls.c.id)
            .outerjoin(greetings, greeting)
            .where(whose, calls.c.agent_id == agent_id, steps.c.result.is_not(None))
            .order_by(*NEWEST_FIRST)
            .limit(limit)
        )
        return [_to_recent(row, party) for row in self._database.fetch(query)][::-1]


def _to_recent(row: Any, party: str) -> RecentCall:
    whose = "" if row.whose == party else row.whose or ""
    return RecentCall(
        row.ended_at,
        row.result,
        parse_next_call_context(row.content or ""),
        find_greeted_name(row.greeting or ""),
        whose,
    )


def _claim(
    connection: Connection,
    call_id: str,
    names: Sequence[str],
    now: datetime,
    *,
    again: bool = False,
    shown: tuple[StepState, str] = ("running", ""),
) -> list[str]:
    if not names:
        return []
    state, reason = shown
    row = {
        "call_id": call_id,
        "state": state,
        "reason": reason,
        "attempts": 1,
        "changed_at": now,
    }
    claimed = _claim_statement(connection.dialect.name, again)
    rows = [{"name": name, **row} for name in names]
    found = set(connection.execute(claimed, rows).scalars())
    return [name for name in names if name in found]


@cache
def _claim_statement(dialect: str, again: bool) -> ReturningInsert[Any]:
    fresh = insert_into(steps, dialect)
    # IN takes one row only
    is_open = or_(*(steps.c.state == state for state in OPEN_STATES))
    changes = {
        "state": fresh.excluded.state,
        "reason": fresh.excluded.reason,
        "changed_at": fresh.excluded.changed_at,
        "attempts": steps.c.attempts + fresh.excluded.attempts,
    }
    claimed = fresh.on_conflict_do_update(
        index_elements=KEY, set_=changes, where=None if again else is_open
    )
    return claimed.returning(steps.c.name)


@cache
def _finish_statement(dialect: str) -> Insert:
    fresh = insert_into(steps, dialect)
    names = ("state", "reason", "result", "trace", "reader", "cost", "changed_at")
    changes = {name: fresh.excluded[name] for name in names}
    return fresh.on_conflict_do_update(index_elements=KEY, set_=changes)


def _end(connection: Connection, call_id: str, name: str, values: Json) -> None:
    upsert(connection, steps, {"call_id": call_id, "name": name}, values)
    if name == SUMMARY:
        _invalidate_briefing(connection, call_id)


def _update_waiting(call_id: str, name: str) -> Update:
    return update(steps).where(
        steps.c.call_id == call_id, steps.c.name == name, steps.c.state == "waiting"
    )


def _read_states(connection: Connection, call_id: str) -> dict[str, StepState]:
    query = select(steps.c.name, steps.c.state).where(steps.c.call_id == call_id)
    return {row.name: row.state for row in connection.execute(query)}


def _is_talk_with_party(call: Call) -> ColumnElement[bool]:
    """Sealed inbound calls of the same party in which the caller said something."""
    return and_(
        belongs_to(call.caller or ""),
        calls.c.agent_id == call.agent_id,
        calls.c.state == "sealed",
        calls.c.direction == "inbound",
        ~calls.c.is_silent,
    )


def to_step(row: Row[Any]) -> Step:
    trace = ReadingTrace(**row.trace) if row.trace else None
    return Step(
        row.name, row.state, row.reason, row.attempts, row.result, row.changed_at, trace
    )


def _invalidate_briefing(connection: Connection, call_id: str) -> None:
    row = connection.execute(
        select(calls.c.agent_id, calls.c.caller, calls.c.whose).where(
            calls.c.id == call_id
        )
    ).one()
    invalidate_briefing(connection, row.agent_id, row.whose or row.caller)


def steps_json(steps: list[Step]) -> list[Json]:
    names = "name state reason attempts result changed_at"
    return [
        pick_fields(step, names) | {"trace": step.trace and asdict(step.trace)}
        for step in steps
    ]


def are_finished(steps: list[Step]) -> bool:
    return bool(steps) and all(step.state not in OPEN_STATES for step in steps)
