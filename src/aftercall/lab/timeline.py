"""Time on the emulated line: as it passes, or as fast as everybody on the line is ready for the
next moment.

Who takes part is either at work (asking a webhook, say) or waits. In virtual time nothing
passes while somebody works, and when all wait the clock jumps to the first who is due: a
ten-minute call takes as long as its webhooks do.
"""

import asyncio
import heapq
from itertools import count
from typing import Any, Protocol

from aftercall.clock import Clock


class Alarm:
    """One wait of one participant, which others may cut short."""

    def __init__(self) -> None:
        self.woken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()


class Timeline(Protocol):
    def now_s(self) -> float: ...

    def join(self) -> None:
        """One more takes part, and is at work."""
        ...

    def leave(self) -> None: ...

    async def wait(self, alarm: Alarm, seconds: float | None) -> bool:
        """Wait so long, or until woken; whether somebody woke us."""
        ...

    def wake(self, alarm: Alarm) -> None: ...


class VirtualTimeline:
    def __init__(self) -> None:
        self._now_s = 0.0
        self._active_count = 0
        self._waiting: list[tuple[float, int, Alarm]] = []
        self._order = count()

    def now_s(self) -> float:
        return self._now_s

    def join(self) -> None:
        self._active_count += 1

    def leave(self) -> None:
        self._active_count -= 1
        self._advance()

    async def wait(self, alarm: Alarm, seconds: float | None) -> bool:
        if seconds is not None:
            heapq.heappush(
                self._waiting, (self._now_s + max(0.0, seconds), next(self._order), alarm)
            )
        self._active_count -= 1
        self._advance()
        try:
            return await alarm.woken
        except asyncio.CancelledError:
            if alarm.woken.cancelled():
                self._active_count += (
                    1  # it never woke; whoever was cancelled leaves as one who works
                )
            raise

    def wake(self, alarm: Alarm) -> None:
        if not alarm.woken.done():
            self._active_count += 1
            alarm.woken.set_result(True)

    def _advance(self) -> None:
        while self._active_count == 0 and self._waiting:
            due_s, _, alarm = heapq.heappop(self._waiting)
            if not alarm.woken.done():
                self._now_s = max(self._now_s, due_s)
                self._active_count += 1
                alarm.woken.set_result(False)


class RealTimeline:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now_s(self) -> float:
        return self._clock.monotonic()

    def join(self) -> None:
        return

    def leave(self) -> None:
        return

    async def wait(self, alarm: Alarm, seconds: float | None) -> bool:
        if seconds is None:
            return await alarm.woken
        rest = asyncio.ensure_future(self._clock.sleep(max(0.0, seconds)))
        either: set[asyncio.Future[Any]] = {alarm.woken, rest}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            rest.cancel()
        return alarm.woken.done()

    def wake(self, alarm: Alarm) -> None:
        if not alarm.woken.done():
            alarm.woken.set_result(True)
