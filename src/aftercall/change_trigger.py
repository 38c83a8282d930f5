"""Runs a job only when the database has changed or when the time that the job named has come.

On SQLite one cheap query per tick serves all jobs, so an idle server costs almost nothing.
Heartbeats change the database too, so every job runs every few seconds even if a change was
missed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from aftercall.clock import Clock
from aftercall.db.connect import DatabaseChanges

Job = Callable[[], Awaitable[object]]
"""Does what is due. May return the time at which more will be due."""


class ChangeTrigger:
    def __init__(self, changes: DatabaseChanges, clock: Clock) -> None:
        self._changes = changes
        self._clock = clock
        self._last_version: object = None
        self._wake_events: dict[asyncio.Event, datetime | None] = {}

    async def poll(self) -> None:
        """Wake the jobs that have a reason to run."""
        version = self._changes.read_version()
        is_changed = version != self._last_version
        self._last_version = version
        for wake, due_at in self._wake_events.items():
            if is_changed or (due_at is not None and due_at <= self._clock.now()):
                wake.set()

    def wrap(self, job: Job) -> Job:
        """The job, made to wait for a reason. It runs at once the first time."""
        wake = asyncio.Event()
        wake.set()
        self._wake_events[wake] = None

        async def run_when_woken() -> None:
            await wake.wait()
            wake.clear()  # before the job: a change during the job wakes it again
            try:
                due_at = await job()
            except BaseException:  # a failed job runs again
                wake.set()
                raise
            self._wake_events[wake] = due_at if isinstance(due_at, datetime) else None

        return run_when_woken
