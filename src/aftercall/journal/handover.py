"""Processes that share the calls: which are alive, and which of them owns a call.

Each process holds the lock of its file in the home until it ends: a crash shows at once on the
same machine. Other machines do not see the lock; for them the heartbeat in the database counts.

On Postgres several processes answer the phone, and each request of a carrier reaches any of them.
A call has one owner (`calls.owner`), which writes and seals it. While the owner waits for the
carrier, the call has a row here, and the process that deletes the row becomes the owner. So a
media socket opens once, and two processes never write the turns of one call. A call without a row
is taken from a dead process only.

On SQLite one process answers the phone, and nothing is written here.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import and_, delete, or_, select, update

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import calls, handovers, processes
from aftercall.disk import create_locked, try_locked
from aftercall.errors import CallElsewhere
from aftercall.ids import new_id
from aftercall.journal.store import CallRow, CallStore

HEARTBEAT_INTERVAL_S = 10.0
HEARTBEAT_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class ProcessRow:
    id: str
    beat_at: datetime
    failures: list[dict[str, str]] | None
    """Failing upkeep jobs; None for a process that does no upkeep."""


class ProcessStore:
    """The rows of processes and their last heartbeats."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record_heartbeat(
        self, process: str, now: datetime, failures: Sequence[dict[str, str]] | None
    ) -> None:
        beat = {"beat_at": now, "failures": failures}
        row = {"started_at": now, **beat}
        with self._database.write() as connection:
            upsert(connection, processes, {"id": process}, row, changes=beat)

    def list_all(self) -> list[ProcessRow]:
        query = select(processes.c.id, processes.c.beat_at, processes.c.failures)
        return [ProcessRow(*row) for row in self._database.fetch(query)]

    def get_last_heartbeat(self, process: str) -> datetime | None:
        query = select(processes.c.beat_at).where(processes.c.id == process)
        return self._database.fetch_value(query)

    def delete(self, process: str) -> None:
        self._database.execute(delete(processes).where(processes.c.id == process))


class Presence:
    """Which processes are alive, by their heartbeats."""

    def __init__(self, folder: Path, store: ProcessStore, clock: Clock) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.process = new_id()
        self._folder = folder
        self._store = store
        self._clock = clock
        self._lock = create_locked(self.lock_path)
        self.send_heartbeat()

    @property
    def lock_path(self) -> Path:
        return self._path(self.process)

    def send_heartbeat(self, failures: Sequence[dict[str, str]] | None = None) -> None:
        self._store.record_heartbeat(self.process, self._clock.now(), failures)

    def find_others(self) -> list[ProcessRow]:
        """The other processes that are alive."""
        now = self._clock.now()
        others = [row for row in self._store.list_all() if row.id != self.process]
        return [row for row in others if self.is_alive(row.id, now)]

    def is_alive(self, process: str, now: datetime) -> bool:
        if process == self.process:
            return True
        path = self._path(process)
        if path.exists():
            with try_locked(path) as is_ours:
                return not is_ours and path.exists()
        last = self._store.get_last_heartbeat(process)
        return last is not None and not _is_silent(last, now)

    def remove_dead(self, in_use: set[str]) -> None:
        """Forgets dead processes that own no call."""
        now = self._clock.now()
        known = {path.stem for path in self._folder.glob("*.lock")}
        known.update(
            row.id for row in self._store.list_all() if _is_silent(row.beat_at, now)
        )
        for process in known - in_use:
            if not self.is_alive(process, now):
                self._remove(process)

    def close(self) -> None:
        self._remove(self.process)
        self.release_lock()

    def release_lock(self) -> None:
        """From here on other processes of this machine take this one for dead."""
        os.close(self._lock)

    def _remove(self, process: str) -> None:
        self._store.delete(process)
        self._path(process).unlink(missing_ok=True)

    def _path(self, process: str) -> Path:
        return self._folder / f"{process}.lock"


def _is_silent(last: datetime, now: datetime) -> bool:
    return now - last > timedelta(seconds=HEARTBEAT_TIMEOUT_S)


@dataclass(frozen=True)
class TakenCall:
    """A live call that belongs to this process now."""

    row: CallRow
    """As it was before: `row.owner` is the process that had it."""
    briefing: str | None
    """What its owner prepared for the stream."""
    notice: str | None
    """The key of the last notice that was answered."""


class LateEnd:
    """A reported end of a call, to be stored when the database knows the call."""

    def __init__(self, reason: str, reported_s: float) -> None:
        self.reason = reason
        self.due_s = reported_s
        self._reported_s = reported_s

    def age_s(self, now_s: float) -> float:
        return now_s - self._reported_s


class Handovers:
    """Which calls any process may take, and who has taken them."""

    def __init__(
        self, database: Database, store: CallStore, presence: Presence, clock: Clock
    ) -> None:
        self.is_shared = database.dialect != "sqlite"
        self.process = presence.process
        self._database = database
        self._store = store
        self._presence = presence
        self._clock = clock

    def find_last_leg(self, source: str, sid: str) -> tuple[CallRow, int] | None:
        """The newest call of a carrier's sid, and its number: later legs are `SID.2`, `SID.3`."""
        row = self._store.find(source, sid)
        number = 1
        if row is None:
            return None
        while later := self._store.find(source, f"{sid}.{number + 1}"):
            row, number = later, number + 1
        return row, number

    def offer(self, call_id: str, seconds: float, notice: str = "") -> str | None:
        """Any process may take the call. For so long, recovery leaves it alone if its owner dies.

        Returns why the call is over, if another process was told so meanwhile.
        """
        until = self._clock.now() + timedelta(seconds=seconds)
        row = {"until": until, "notice": notice, "briefing": None}
        with self._database.write() as connection:
            upsert(connection, handovers, {"call_id": call_id}, row)
            query = select(calls.c.end_reason).where(calls.c.id == call_id)
            return connection.execute(query).scalar()

    def add_briefing(self, call_id: str, briefing: str) -> None:
        """For the process that takes the call; one that has taken it already made its own."""
        is_offered = handovers.c.call_id == call_id
        self._database.execute(
            update(handovers).where(is_offered).values(briefing=briefing)
        )

    def take(
        self, source: str, sid: str, *, is_stream: bool = False
    ) -> TakenCall | None:
        """Makes this process the owner. None for a call that is unknown or over.

        A stream takes only a call that was offered. Raises CallElsewhere while another process
        that is alive has the call.
        """
        found = self.find_last_leg(source, sid)
        if found is None or found[0].state != "live":
            return None
        row = found[0]
        with self._database.write() as connection:
            offered = connection.execute(
                delete(handovers)
                .where(handovers.c.call_id == row.live.id)
                .returning(handovers.c.briefing, handovers.c.notice)
            ).first()
            if offered is None:
                self._refuse_held(row, is_stream=is_stream)
            is_same = and_(calls.c.id == row.live.id, calls.c.owner == row.owner)
            taken = connection.execute(
                update(calls)
                .where(is_same, calls.c.state == "live")
                .values(owner=self.process)
            )
            if taken.rowcount != 1:
                raise CallElsewhere(f"call {row.live.id} was taken meanwhile")
        return TakenCall(row, *(offered or (None, None)))

    def take_ended(self, source: str, sid: str, reason: str) -> CallRow | None:
        """A call that is over, to be sealed here.

        None if there is nothing to do: it is sealed, or its owner was told and seals it.
        """
        now = self._clock.now()
        try:
            taken = self.take(source, sid)
        except CallElsewhere:
            if found := self.find_last_leg(source, sid):
                self.ask_to_end(found[0].live.id, reason)
            return None
        if taken is None:
            return None
        return replace(
            taken.row,
            owner=self.process,
            ended_at=taken.row.ended_at or now,
            end_reason=taken.row.end_reason or reason,
        )

    def ask_to_end(self, call_id: str, reason: str) -> None:
        """The process that has the call looks once a second, and ends it.

        The first end that is stored counts.
        """
        is_going_on = and_(
            calls.c.id == call_id,
            calls.c.state == "live",
            calls.c.end_reason.is_(None),
        )
        end = {"ended_at": self._clock.now(), "end_reason": reason}
        self._database.execute(update(calls).where(is_going_on).values(end))

    def list_changes(self, call_ids: Sequence[str]) -> list[tuple[str, str | None]]:
        """Of these calls, which others took (with None), and which are over, and why."""
        is_taken = calls.c.owner != self.process
        is_over = and_(calls.c.state == "live", calls.c.end_reason.is_not(None))
        query = select(calls.c.id, calls.c.owner, calls.c.end_reason).where(
            calls.c.id.in_(call_ids), or_(is_taken, is_over)
        )
        return [
            (call_id, None if owner != self.process else reason)
            for call_id, owner, reason in self._database.fetch(query)
        ]

    def list_offered(self, call_ids: Sequence[str]) -> set[str]:
        """Of these calls, those that another process may take yet."""
        query = select(handovers.c.call_id).where(
            handovers.c.call_id.in_(call_ids), handovers.c.until > self._clock.now()
        )
        return set(self._database.fetch_column(query))

    def _refuse_held(self, row: CallRow, *, is_stream: bool) -> None:
        """Nobody offered the call: it is ours, or left by a dead process, or refused."""
        is_ours = row.owner == self.process
        is_held = not is_ours and self._presence.is_alive(row.owner, self._clock.now())
        if is_stream or is_held:
            raise CallElsewhere(f"call {row.live.id} is live in another process")
