"""Who looks for work looks when something was written, or when a moment has come that an earlier look named; never in vain.

One glance a tick serves all of them, so that a server nobody calls costs next to nothing. Every process writes now and then that
it is alive: there is a look every few seconds, whatever else was missed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from aftercall.clock import Clock
from aftercall.db.changes import Changes

Look = Callable[[], Awaitable[object]]
"""Does what is due. It may return the moment when time alone will make more of it due."""


class Lookout:
    def __init__(self, changes: Changes, clock: Clock) -> None:
        self._changes = changes
        self._clock = clock
        self._seen: object = None
        self._bells: dict[asyncio.Event, datetime | None] = {}

    async def glance(self) -> None:
        """Ring for those who have a reason to look."""
        mark = self._changes.mark()
        is_news, self._seen = mark != self._seen, mark
        for bell, due_at in self._bells.items():
            if is_news or (due_at is not None and due_at <= self._clock.now()):
                bell.set()

    def expect(self, look: Look) -> Look:
        """The look, made to wait until there is a reason for it; the first is made at once."""
        bell = asyncio.Event()
        bell.set()
        self._bells[bell] = None

        async def look_with_reason() -> None:
            await bell.wait()
            bell.clear()  # before looking: what is written meanwhile rings again
            try:
                due_at = await look()
            except BaseException:  # a look that fails is made again
                bell.set()
                raise
            self._bells[bell] = due_at if isinstance(due_at, datetime) else None

        return look_with_reason
