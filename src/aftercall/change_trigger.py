"""Who looks for work looks when something was written, or when a moment has come that an
earlier look named; never in vain.

One glance a tick serves all of them, so that a server nobody calls costs next to nothing. Every
process writes now and then that it is alive: there is a look every few seconds, whatever else
was missed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from aftercall.clock import Clock
from aftercall.db.connect import TableChanges

Job = Callable[[], Awaitable[object]]
"""Does what is due. It may return the moment when time alone will make more of it due."""


class ChangeTrigger:
    def __init__(self, changes: TableChanges, clock: Clock) -> None:
        self._changes = changes
        self._clock = clock
        self._last_version: object = None
        self._wake_events: dict[asyncio.Event, datetime | None] = {}

    async def poll(self) -> None:
        """Ring for those who have a reason to look."""
        mark = self._changes.read_version()
        is_news, self._last_version = mark != self._last_version, mark
        for bell, due_at in self._wake_events.items():
            if is_news or (due_at is not None and due_at <= self._clock.now()):
                bell.set()

    def wrap(self, job: Job) -> Job:
        """The look, made to wait until there is a reason for it; the first is made at once."""
        bell = asyncio.Event()
        bell.set()
        self._wake_events[bell] = None

        async def look_with_reason() -> None:
            await bell.wait()
            bell.clear()  # before looking: what is written meanwhile rings again
            try:
                due_at = await job()
            except BaseException:  # a look that fails is made again
                bell.set()
                raise
            self._wake_events[bell] = due_at if isinstance(due_at, datetime) else None

        return look_with_reason
