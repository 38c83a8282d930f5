"""The SQL of post-call work: which calls are due, and how far each step is."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Insert, Row, and_, or_, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import ReturningInsert

from aftercall.db.connect import Database
from aftercall.db.conversations import belongs_to
from aftercall.db.stale_briefings import invalidate_all_briefings, invalidate_briefing
from aftercall.db.statements import upsert
from aftercall.db.tables import calls, documents, fact_occurrences, facts, steps
from aftercall.memory.document_store import parse_next_call_context
from aftercall.model.briefing import RecentCall
from aftercall.model.calls import Call
from aftercall.model.people import find_greeted_name
from aftercall.model.reading import ReadingTrace
from aftercall.model.steps import OPEN_STATES, Step, StepOutcome, StepState

KEY = ["call_id", "name"]
ALONE_S = 30

TOLD = "summary"  # the step whose result the next call is told


class StepStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, limit: int = 100) -> list[str]:
        """Sealed calls whose work has not been started, oldest first."""
        query = (
            select(calls.c.id).where(calls.c.postcall == "due").order_by(calls.c.id).limit(limit)
        )
        with self._database.read() as connection:
            return [str(row.id) for row in connection.execute(query)]

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody else starts calls just now: two that start the same ones do no harm,
        and all of the work twice.

        Whoever falls asleep over it loses the privilege. On SQLite the others are few and near,
        and are not asked.
        """
        if self._database.dialect != "postgresql":
            yield True
            return
        with self._database.read() as connection:
            connection.execute(
                text(f"SET LOCAL idle_in_transaction_session_timeout = '{ALONE_S}s'")
            )
            yield bool(
                connection.execute(
                    text("SELECT pg_try_advisory_xact_lock(hashtextextended('aftercall.start', 0))")
                ).scalar()
            )

    def await_start(self, call_ids: Sequence[str], names: Sequence[str], now: datetime) -> None:
        """Show the steps, before anybody can begin them: one who began and one who only now
        makes the rows might wait for each other.
        """
        waiting = {"state": "waiting", "reason": "", "changed_at": now}
        rows = [
            {"call_id": call_id, "name": name, **waiting}
            for call_id in sorted(call_ids)
            for name in sorted(names)
        ]
        if rows:
            with self._database.write() as connection:
                connection.execute(
                    _insert(connection).on_conflict_do_nothing(index_elements=KEY), rows
                )

    def mark_started(self, call_ids: Sequence[str]) -> None:
        with self._database.write() as connection:
            # Not against those who only refer to these calls, like facts on their way in: the
            # id does not change.
            locked = (
                select(calls.c.id)
                .where(calls.c.id.in_(call_ids))
                .order_by(calls.c.id)
                .with_for_update(key_share=True)
            )
            connection.execute(
                update(calls)
                .where(calls.c.id.in_(connection.execute(locked).scalars().all()))
                .values(postcall="started")
            )

    def begin(
        self, call_id: str, names: Sequence[str], now: datetime, *, again: bool = False
    ) -> list[str]:
        """In one transaction, since the steps of a call begin together.

        `again` also begins what had come to its end.
        """
        with self._database.write() as connection:
            return begin(connection, call_id, names, now, again=again)

    def begin_by_hand(self, call_id: str, names: Sequence[str], now: datetime, reason: str) -> None:
        """Where no engine takes up what a crash cuts off: a step that nobody else will take
        shows as failed until it has ended.

        What the engine has, or is about to take, is left to it.
        """
        with self._database.write() as connection:
            known = {
                row.name: row.state
                for row in connection.execute(
                    select(steps.c.name, steps.c.state).where(steps.c.call_id == call_id)
                )
            }
            is_due = (
                connection.execute(select(calls.c.postcall).where(calls.c.id == call_id)).scalar()
                == "due"
            )
            to_come = {
                name
                for name in names
                if known.get(name, "waiting" if is_due else "failed") in OPEN_STATES
            }
            begin(connection, call_id, [name for name in names if name in to_come], now, again=True)
            alone = [name for name in names if name not in to_come]
            begin(connection, call_id, alone, now, again=True, shown=("failed", reason))

    def finish(self, call_id: str, name: str, outcome: StepOutcome, now: datetime) -> None:
        with self._database.write() as connection:
            finish(connection, call_id, name, outcome, now)

    def put_off(
        self, call_id: str, name: str, reason: str, now: datetime, after: Sequence[str] = ()
    ) -> None:
        """Steps that wait for it wait from now on: they are not forgotten, however long it
        takes.
        """
        with self._database.write() as connection:
            _end(
                connection, call_id, name, {"state": "waiting", "reason": reason, "changed_at": now}
            )
            if after:
                connection.execute(
                    update(steps).where(_waiting(call_id, after)).values(changed_at=now)
                )

    def fail(
        self,
        call_id: str,
        name: str,
        reason: str,
        now: datetime,
        after: Sequence[str] = (),
        told: str = "",
    ) -> None:
        """Steps that wait for it fail with it; `told` is their reason."""
        with self._database.write() as connection:
            _end(
                connection, call_id, name, {"state": "failed", "reason": reason, "changed_at": now}
            )
            if after:
                connection.execute(
                    update(steps)
                    .where(_waiting(call_id, after))
                    .values(state="failed", reason=told, changed_at=now)
                )

    def with_secrets(self, call_ids: Sequence[str]) -> set[str]:
        """Those of the calls that any fact told in confidence rests on."""
        query = (
            select(fact_occurrences.c.call_id)
            .join(facts, facts.c.id == fact_occurrences.c.fact_id)
            .where(facts.c.visibility == "secret", fact_occurrences.c.call_id.in_(call_ids))
        )
        with self._database.read() as connection:
            return set(connection.execute(query).scalars())

    def archive_names(self, call_ids: Sequence[str]) -> list[str]:
        """The sealed files of these calls, where there is one."""
        query = select(calls.c.archive_name).where(
            calls.c.id.in_(call_ids), calls.c.archive_name.is_not(None)
        )
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def state_of(self, call_id: str, name: str) -> StepState | None:
        query = select(steps.c.state).where(steps.c.call_id == call_id, steps.c.name == name)
        with self._database.read() as connection:
            return connection.execute(query).scalar()

    def result_of(self, call_id: str, name: str) -> str:
        """What the step made when it last ended well; empty if it made nothing."""
        query = select(steps.c.result).where(steps.c.call_id == call_id, steps.c.name == name)
        with self._database.read() as connection:
            return connection.execute(query).scalar() or ""

    def hush(self, call_id: str, clean: Callable[[str], str]) -> None:
        """Take a secret out of what the steps made."""
        told = select(steps.c.name, steps.c.result).where(
            steps.c.call_id == call_id, steps.c.result.is_not(None)
        )
        with self._database.write() as connection:
            for row in connection.execute(told).all():
                if (hushed := clean(row.result)) != row.result:
                    connection.execute(
                        update(steps)
                        .where(steps.c.call_id == call_id, steps.c.name == row.name)
                        .values(result=hushed)
                    )
                    _outdate(connection, call_id)

    def of_call(self, call_id: str) -> list[Step]:
        query = select(steps).where(steps.c.call_id == call_id).order_by(steps.c.name)
        with self._database.read() as connection:
            return [to_step(row) for row in connection.execute(query)]

    def last_greeting(self, call: Call) -> tuple[str, datetime] | None:
        """What the greeting step left after this party's last call with words in it, and when;
        None if it left nothing.
        """
        query = (
            select(steps.c.result, steps.c.changed_at)
            .select_from(
                calls.outerjoin(
                    steps, and_(steps.c.call_id == calls.c.id, steps.c.name == "greeting")
                )
            )
            .where(
                belongs_to(call.caller or ""),
                calls.c.agent_id == call.agent_id,
                calls.c.started_at < call.started_at,
            )
            .where(calls.c.state == "sealed", calls.c.direction == "inbound", ~calls.c.is_silent)
            .order_by(calls.c.started_at.desc())
        )
        with self._database.read() as connection:
            row = connection.execute(query.limit(1)).first()
        return (row.result, row.changed_at) if row and row.result else None

    def has_later_call(self, call: Call) -> bool:
        """Whether this party has called since, with words: a call may be handed in long after
        it ended.
        """
        query = (
            select(calls.c.id)
            .where(
                belongs_to(call.caller or ""),
                calls.c.agent_id == call.agent_id,
                calls.c.started_at > call.started_at,
            )
            .where(calls.c.state == "sealed", calls.c.direction == "inbound", ~calls.c.is_silent)
        )
        with self._database.read() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def recent_summaries(
        self, agent_id: str, party: str, limit: int, *, of_all: bool = False
    ) -> list[RecentCall]:
        """The last calls of this party that have a summary, oldest first; `of_all`: of
        everybody who did not withhold their number.
        """
        whose = calls.c.whose != "" if of_all else belongs_to(party)
        greetings = steps.alias()
        left = and_(greetings.c.call_id == calls.c.id, greetings.c.name == "greeting")
        query = (
            select(
                calls.c.ended_at,
                steps.c.result,
                documents.c.content,
                greetings.c.result.label("greeting"),
                calls.c.whose,
            )
            .join(
                steps,
                and_(steps.c.call_id == calls.c.id, steps.c.name == TOLD, steps.c.state == "done"),
            )
            .outerjoin(documents, documents.c.call_id == calls.c.id)
            .outerjoin(greetings, left)
            .where(whose, calls.c.agent_id == agent_id, steps.c.result.is_not(None))
            .order_by(calls.c.started_at.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            return [_to_recent(row, party) for row in connection.execute(query)][::-1]


def _to_recent(row: Any, party: str) -> RecentCall:
    whose = "" if row.whose == party else row.whose or ""
    return RecentCall(
        row.ended_at,
        row.result,
        parse_next_call_context(row.content or ""),
        find_greeted_name(row.greeting or ""),
        whose,
    )


def begin(
    connection: Connection,
    call_id: str,
    names: Sequence[str],
    now: datetime,
    *,
    again: bool = False,
    shown: tuple[StepState, str] = ("running", ""),
) -> list[str]:
    """Those that are going on now.

    What had come to its end before a crash stays as it is, and is not among them.
    """
    state, reason = shown
    rows = [
        {
            "call_id": call_id,
            "name": name,
            "state": state,
            "reason": reason,
            "attempts": 1,
            "changed_at": now,
        }
        for name in names
    ]
    begun = (
        set(
            connection.execute(
                _statement(connection, "again" if again else "begin"), rows
            ).scalars()
        )
        if rows
        else set()
    )
    return [name for name in names if name in begun]


def take_together(
    connection: Connection, name: str, outcomes: Mapping[str, StepOutcome], now: datetime
) -> set[str]:
    """Begin and end one step of several calls; those of them that had not come to its end
    before.
    """
    running = {"name": name, "state": "running", "reason": "", "attempts": 1, "changed_at": now}
    rows = [{"call_id": call_id, **running} for call_id in sorted(outcomes)]
    begun = set(connection.execute(_statement(connection, "begin_calls"), rows).scalars())
    ended = [
        {"call_id": call_id, "name": name, **_ended(outcomes[call_id], now)}
        for call_id in sorted(begun)
    ]
    if ended:
        connection.execute(_statement(connection, "finish"), ended)
    if ended and name == TOLD:
        theirs: dict[str, list[str]] = defaultdict(list)
        for row in connection.execute(
            select(calls.c.agent_id, calls.c.caller, calls.c.whose).where(calls.c.id.in_(begun))
        ):
            theirs[row.agent_id].append(row.whose or row.caller or "")
        for agent_id, callers in theirs.items():
            invalidate_all_briefings(connection, agent_id, callers)
    return begun


def _ended(outcome: StepOutcome, now: datetime) -> dict[str, Any]:
    trace = asdict(outcome.trace) if outcome.trace else None
    return {
        "state": outcome.state,
        "reason": outcome.reason,
        "result": outcome.result,
        "trace": trace,
        "changed_at": now,
    }


def finish(
    connection: Connection, call_id: str, name: str, outcome: StepOutcome, now: datetime
) -> None:
    """How a step ended, and what it made in the database, stand or fall together."""
    if outcome.write:
        outcome.write(connection)
    connection.execute(
        _statement(connection, "finish"), {"call_id": call_id, "name": name, **_ended(outcome, now)}
    )
    if name == TOLD:
        _outdate(connection, call_id)


def _end(connection: Connection, call_id: str, name: str, values: dict[str, Any]) -> None:
    upsert(connection, steps, {"call_id": call_id, "name": name}, values)
    if name == TOLD:
        _outdate(connection, call_id)


def _waiting(call_id: str, names: Sequence[str]) -> ColumnElement[bool]:
    return and_(steps.c.call_id == call_id, steps.c.name.in_(names), steps.c.state == "waiting")


def _statement(connection: Connection, name: str) -> ReturningInsert[Any] | Insert:
    return _STATEMENTS[connection.dialect.name == "postgresql"][name]


def _insert(connection: Connection) -> sqlite.Insert | postgresql.Insert:
    return (
        postgresql.insert(steps)
        if connection.dialect.name == "postgresql"
        else sqlite.insert(steps)
    )


def _build(fresh: sqlite.Insert | postgresql.Insert) -> dict[str, ReturningInsert[Any] | Insert]:
    """Made once: putting a statement together costs as much as running it."""
    new = fresh.excluded
    running = {
        "state": new.state,
        "reason": new.reason,
        "changed_at": new.changed_at,
        "attempts": steps.c.attempts + new.attempts,
    }
    unfinished = or_(*(steps.c.state == state for state in OPEN_STATES))
    ended = {name: new[name] for name in ("state", "reason", "result", "trace", "changed_at")}
    return {
        "begin": fresh.on_conflict_do_update(
            index_elements=KEY, set_=running, where=unfinished
        ).returning(steps.c.name),
        "begin_calls": fresh.on_conflict_do_update(
            index_elements=KEY, set_=running, where=unfinished
        ).returning(steps.c.call_id),
        "again": fresh.on_conflict_do_update(index_elements=KEY, set_=running).returning(
            steps.c.name
        ),
        "finish": fresh.on_conflict_do_update(index_elements=KEY, set_=ended),
    }


_STATEMENTS = {True: _build(postgresql.insert(steps)), False: _build(sqlite.insert(steps))}


def to_step(row: Row[Any]) -> Step:
    trace = ReadingTrace(**row.trace) if row.trace else None
    return Step(row.name, row.state, row.reason, row.attempts, row.result, row.changed_at, trace)


def _outdate(connection: Connection, call_id: str) -> None:
    row = connection.execute(
        select(calls.c.agent_id, calls.c.caller, calls.c.whose).where(calls.c.id == call_id)
    ).one()
    invalidate_briefing(connection, row.agent_id, row.whose or row.caller)
