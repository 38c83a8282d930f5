"""The SQL of follow-up runs: sealing a call sets the timer of its conversation."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    and_,
    case,
    exists,
    func,
    or_,
    select,
    type_coerce,
    update,
)

from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import calls, followup_runs
from aftercall.errors import NotFound
from aftercall.journal.store import CallRow, to_call_row
from aftercall.model.followups import FollowUpRun
from aftercall.model.json_fields import Json
from aftercall.who.trust import count_wrong_passcodes

runs = followup_runs
# `!= "done"` repeats the condition of the partial index, so that the planner uses it.
is_open = runs.c.state != "done"
is_waiting = and_(runs.c.state == "due", is_open, runs.c.run == runs.c.finished_run)


class RunStore:
    """One row a conversation and run of its follow-up work, so that a run happens once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, now: datetime, window_s: float, limit: int = 50) -> list[FollowUpRun]:
        """Conversations whose window has passed and that no live call may still join."""
        going_on = exists().where(
            calls.c.state != "sealed",
            or_(
                calls.c.conversation == runs.c.conversation,
                and_(
                    calls.c.caller == runs.c.caller, calls.c.agent_id == runs.c.agent_id
                ),
            ),
        )
        opened = now - timedelta(seconds=window_s)
        query = (
            select(runs)
            .where(is_waiting, runs.c.ended_at < opened, _last_sealed() <= opened)
            .where(~going_on)
            .order_by(runs.c.ended_at)
            .limit(limit)
        )
        return [_to_run(row) for row in self._database.fetch(query)]

    def add_missing(self, since: datetime, now: datetime) -> int:
        """Adds a run to conversations that have none."""
        has_run = exists().where(runs.c.conversation == calls.c.conversation)
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
                    "ended_at": call.ended_at,
                }
                upsert(
                    connection,
                    runs,
                    {"conversation": call.conversation},
                    timer,
                )
        return len({call.conversation for call in lost})

    def list_stuck(
        self, since: datetime, before: datetime
    ) -> list[tuple[str, int, str]]:
        """Failed runs, and those unfinished since `before`: conversation, number, state."""
        query = select(runs).where(
            runs.c.ended_at >= since,
            runs.c.changed_at < before,
            runs.c.state != "done",
            runs.c.state != "due",
        )
        return [
            (row.conversation, row.run, row.state)
            for row in self._database.fetch(query)
        ]

    def next_due(self, window_s: float) -> datetime | None:
        """When the next window closes; in the past if a live call holds one open."""
        sealed = _last_sealed()
        opened = case((sealed > runs.c.ended_at, sealed), else_=runs.c.ended_at)
        query = select(type_coerce(func.min(opened), runs.c.ended_at.type)).where(
            is_waiting
        )
        first: datetime | None = self._database.fetch_value(query)
        return first and first + timedelta(seconds=window_s)

    def list_waiting(self, window_s: float) -> list[tuple[FollowUpRun, str, datetime]]:
        """Conversations whose window is open: each with its last call, and until when."""
        last_call = (
            select(calls.c.id)
            .where(calls.c.conversation == runs.c.conversation)
            .order_by(calls.c.started_at.desc())
            .limit(1)
            .scalar_subquery()
        )
        sealed = _last_sealed()
        query = select(
            runs, last_call.label("last_call"), sealed.label("last_sealed")
        ).where(is_waiting)
        rows = self._database.fetch(query.order_by(runs.c.ended_at.desc()))
        window = timedelta(seconds=window_s)
        return [
            (_to_run(row), row.last_call, max(row.ended_at, row.last_sealed) + window)
            for row in rows
        ]

    def mark_running(self, conversation: str, run: int, now: datetime) -> None:
        """Does nothing if another process has marked the same run."""
        self._database.execute(
            update(runs)
            .where(
                runs.c.conversation == conversation,
                runs.c.run == run - 1,
                runs.c.state == "due",
            )
            .values(state="running", run=run, changed_at=now)
        )

    def finish(
        self, conversation: str, run: int, state: str, reason: str, now: datetime
    ) -> None:
        """A leg sealed meanwhile has made the run due again; then it stays due."""
        is_running = runs.c.state == "running"
        ended = {
            "state": case((is_running, state), else_=runs.c.state),
            "reason": case((is_running, reason), else_=runs.c.reason),
        }
        self._database.execute(
            update(runs)
            .where(runs.c.conversation == conversation, runs.c.finished_run < run)
            .values(**ended, finished_run=run, changed_at=now)
        )

    def make_due(self, conversation: str, now: datetime) -> None:
        """Runs it again: by hand, or because the sweep found its workflow gone."""
        with self._database.write() as connection:
            again = {
                "state": "due",
                "reason": "",
                "finished_run": runs.c.run,
                "changed_at": now,
            }
            connection.execute(
                update(runs).where(runs.c.conversation == conversation).values(again)
            )

    def get(self, conversation: str) -> FollowUpRun:
        row = self._database.fetch_first(
            select(runs).where(runs.c.conversation == conversation)
        )
        if row is None:
            raise NotFound(f"there is no conversation {conversation!r}")
        return _to_run(row)

    def is_pending(self, conversation: str) -> bool:
        """Whether its follow-up waits or runs; False for a conversation without one."""
        query = select(runs.c.state).where(runs.c.conversation == conversation)
        return self._database.fetch_value(query) in ("due", "running")

    def note_legs(self, conversation: str, legs: dict[str, int]) -> None:
        self._note(conversation, {"legs": legs})

    def note_wrong_passcodes(self, conversation: str, wrong: int) -> None:
        self._note(conversation, {"wrong_passcodes": wrong})

    def _note(self, conversation: str, values: Json) -> None:
        self._database.execute(
            update(runs).where(runs.c.conversation == conversation).values(values)
        )

    def wrong_passcodes_of(
        self, caller: str | None, since: datetime, *, apart_from: Sequence[str]
    ) -> tuple[int, int]:
        return count_wrong_passcodes(
            self._database, caller, since, apart_from=apart_from
        )

    def is_handed_in(self, conversation: str) -> bool:
        """Whether another agent answered any of its calls."""
        query = (
            select(calls.c.id)
            .where(calls.c.conversation == conversation, calls.c.is_handed_in)
            .limit(1)
        )
        return self._database.fetch_first(query) is not None

    def list_legs(self, conversation: str) -> list[CallRow]:
        """Sealed legs in the order they began."""
        query = (
            select(calls)
            .where(
                calls.c.conversation == conversation,
                calls.c.state == "sealed",
                calls.c.archive_name.is_not(None),
            )
            .order_by(calls.c.started_at, calls.c.id)
        )
        return [to_call_row(row) for row in self._database.fetch(query)]


def _last_sealed() -> ColumnElement[datetime]:
    """When the newest leg was sealed: calls that ended long ago may be handed in one by one."""
    last = select(func.max(calls.c.sealed_at)).where(
        calls.c.conversation == runs.c.conversation
    )
    return func.coalesce(last.correlate(runs).scalar_subquery(), runs.c.ended_at)


def _to_run(row: Row[Any]) -> FollowUpRun:
    fields = {name: row._mapping[name] for name in FollowUpRun.__dataclass_fields__}
    return FollowUpRun(**fields | {"legs": row.legs or {}})
