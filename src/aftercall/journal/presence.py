"""Which processes are alive: a crash shows at once on the same machine, by timeout on another.

Each process holds the lock of its file in the home until it ends. Other machines do not see the
lock; for them the heartbeat in the database counts.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import delete, select

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import processes
from aftercall.disk import create_locked, try_locked
from aftercall.ids import new_id

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
        with self._database.read() as connection:
            return [ProcessRow(*row) for row in connection.execute(query)]

    def get_last_heartbeat(self, process: str) -> datetime | None:
        query = select(processes.c.beat_at).where(processes.c.id == process)
        with self._database.read() as connection:
            return connection.execute(query).scalar()

    def delete(self, process: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(processes).where(processes.c.id == process))


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
