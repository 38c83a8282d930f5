"""Fakes for your own tests and ours: time that you move by hand, calls made up on the spot."""

import asyncio
import heapq
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from aftercall.clock import to_millisecond
from aftercall.model.calls import Call, LiveCall

START = datetime(2026, 2, 13, 15, 41, 12, 120_000, tzinfo=UTC)


class VirtualClock:
    """A Clock that stands still until you move it; a 30-second call takes microseconds."""

    def __init__(self, start: datetime = START) -> None:
        self._start = to_millisecond(start)
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> datetime:
        return to_millisecond(self._start + timedelta(seconds=self._elapsed))

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + max(0.0, seconds), next(self._order), woken))
        await woken

    def move(self, seconds: float) -> None:
        """Move the hands without waking anybody: for code that only looks at the clock."""
        self._elapsed += seconds

    async def advance(self, seconds: float) -> None:
        """Let time pass: sleepers wake in order, each at its own time, and run until they wait again."""
        until = self._elapsed + seconds
        await _settle()
        while self._sleepers and self._sleepers[0][0] <= until:
            self._elapsed, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
            await _settle()
        self._elapsed = until


async def _settle() -> None:
    """Give every task that can run its turn; enough rounds for tasks that hand work to each other."""
    for _ in range(20):
        await asyncio.sleep(0)


_numbers = count(1)


def make_live_call(**fields: Any) -> LiveCall:
    """A live call with a number of its own; name what matters to your test."""
    defaults = {"source": "test", "sid": f"T{next(_numbers):06}", "caller": "+15550100", "callee": "+15550101", "started_at": START}
    return LiveCall.model_validate(defaults | fields)


def make_call(said: Iterable[tuple[str, str]] = (("agent", "Hello!"), ("caller", "Hi.")), **fields: Any) -> Call:
    """A finished call from pairs of speaker and text, two seconds a turn."""
    started = fields.pop("started_at", START)
    turns = [
        {"seq": seq, "speaker": speaker, "text": text, "at": started + timedelta(seconds=2 * seq)}
        for seq, (speaker, text) in enumerate(said, 1)
    ]
    ended = fields.pop("ended_at", started + timedelta(seconds=2 * len(turns) + 2))
    live = make_live_call(started_at=started, **fields).model_dump()
    return Call.model_validate(live | {"ended_at": ended, "turns": turns})
