"""Delivers an emulated carrier's callbacks with its habits: those that come late go beside the others, which do not wait."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from aftercall.clock import Clock
from aftercall.lab.habits import Habits

Send = Callable[[], Awaitable[None]]


class Postman:
    def __init__(self, clock: Clock, habits: Habits) -> None:
        self.habits = habits
        self._clock = clock
        self._under_way: set[asyncio.Task[None]] = set()

    async def deliver(self, kind: str, send: Send) -> None:
        """Returns when it was taken; at once if this kind comes late."""
        late_s = self.habits.delay_s(kind)
        if late_s:
            self.spawn(self._deliver_late(kind, send, late_s))
        else:
            await self._send(kind, send)

    def spawn(self, job: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(job)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def finish(self) -> None:
        """Wait until everything under way has been delivered."""
        while self._under_way:
            await asyncio.gather(*self._under_way, return_exceptions=True)

    async def close(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _deliver_late(self, kind: str, send: Send, late_s: float) -> None:
        await self._clock.sleep(late_s)
        await self._send(kind, send)

    async def _send(self, kind: str, send: Send) -> None:
        await asyncio.gather(*(send() for _ in range(self.habits.times(kind))))
