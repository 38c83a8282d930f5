"""A clock for tests: time passes only when the test moves it."""

import asyncio
import heapq
from datetime import datetime, timedelta
from itertools import count

from aftercall.clock import to_millisecond
from aftercall.testing.calls import START

SETTLE_ROUNDS = 20


class VirtualClock:
    """A Clock that stands still until you move it; a 30-second call takes microseconds."""

    def __init__(self, start: datetime = START) -> None:
        self._start = to_millisecond(start)
        self._elapsed_s = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()
        self._fell_asleep = asyncio.Event()

    def now(self) -> datetime:
        return to_millisecond(self._start + timedelta(seconds=self._elapsed_s))

    def monotonic(self) -> float:
        return self._elapsed_s

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._fell_asleep.set()
        due_s = self._elapsed_s + max(0.0, seconds)
        heapq.heappush(self._sleepers, (due_s, next(self._order), woken))
        await woken

    async def until_asleep(self) -> None:
        """Waits in real time until a task sleeps on this clock; threads take a while to get
        there.
        """
        while all(woken.done() for _, _, woken in self._sleepers):
            self._fell_asleep.clear()
            await self._fell_asleep.wait()

    def move(self, seconds: float) -> None:
        """Moves the time and wakes no sleeper: for code that only reads the clock."""
        self._elapsed_s += seconds

    async def advance(self, seconds: float) -> None:
        """Lets time pass: sleepers wake in order, each at its time, and run until they wait
        again.
        """
        until_s = self._elapsed_s + seconds
        await _settle()
        while self._sleepers and self._sleepers[0][0] <= until_s:
            self._elapsed_s, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
            await _settle()
        self._elapsed_s = until_s


async def _settle() -> None:
    """Lets every ready task run, with enough rounds for tasks that wake each other."""
    for _ in range(SETTLE_ROUNDS):
        await asyncio.sleep(0)
