"""Which processes are alive: a crash is known at once on the same machine, by silence on another.

Each process holds a lock on a file of its own in the home; the system lets go of it however the
process ends. On other machines, which do not see that file, the heartbeat in the database counts.
"""

import fcntl
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from aftercall.clock import Clock
from aftercall.ids import new_id
from aftercall.journal.store import CallStore, ProcessRow

HEARTBEAT_INTERVAL_S = 10.0
HEARTBEAT_TIMEOUT_S = 60.0


class Presence:
    def __init__(self, folder: Path, store: CallStore, clock: Clock) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.process = new_id()
        self._folder = folder
        self._store = store
        self._clock = clock
        self._lock = _create_locked(self._path(self.process))
        self.send_heartbeat()

    def send_heartbeat(self, failures: Sequence[dict[str, str]] | None = None) -> None:
        """Say that we are alive, and what fails here.

        A command that says nothing of the kind beats only once.
        """
        self._store.record_heartbeat(self.process, self._clock.now(), failures)

    def find_others(self) -> list[ProcessRow]:
        """The other processes that are alive."""
        now = self._clock.now()
        return [
            row
            for row in self._store.list_processes()
            if row.id != self.process and self.is_alive(row.id, now)
        ]

    def is_alive(self, process: str, now: datetime) -> bool:
        if process == self.process:
            return True
        path = self._path(process)
        if path.exists():
            return not _is_unlocked(path)
        last = self._store.get_last_heartbeat(process)
        return last is not None and now - last <= timedelta(seconds=HEARTBEAT_TIMEOUT_S)

    def remove_dead(self, in_use: set[str]) -> None:
        """Forget processes that are gone and own nothing any more."""
        now = self._clock.now()
        known = {path.stem for path in self._folder.glob("*.lock")}
        known.update(
            self._store.list_silent_processes(since=now - timedelta(seconds=HEARTBEAT_TIMEOUT_S))
        )
        for process in known - in_use:
            if not self.is_alive(process, now):
                self._remove(process)

    def close(self) -> None:
        self._remove(self.process)
        os.close(self._lock)

    def _remove(self, process: str) -> None:
        self._store.delete_process(process)
        self._path(process).unlink(missing_ok=True)

    def _path(self, process: str) -> Path:
        return self._folder / f"{process}.lock"


def _create_locked(path: Path) -> int:
    """Locked before it has its name: nobody may find the file free while we are only starting."""
    starting = path.with_suffix(".starting")
    file = os.open(starting, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    starting.rename(path)
    return file


def _is_unlocked(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(file)
