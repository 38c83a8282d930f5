"""Carriers that only tell what was said do not tell silence: a watch per call, on our clock."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aftercall.clock import Clock

SILENCE_TIMEOUT_S = 8.0
_WORDS_PER_SECOND = 2.0

SilenceCallback = Callable[[str, int, bool], Awaitable[None]]


@dataclass
class _Watch:
    turn: int
    is_last: bool
    task: asyncio.Task[None]


class SilenceWatch:
    def __init__(self, clock: Clock, on_silence: SilenceCallback) -> None:
        """`heard` is told call, turn and whether it was the last one when nothing has been said
        for a while.
        """
        self._clock = clock
        self._on_silence = on_silence
        self._watches: dict[str, _Watch] = {}

    def start(self, sid: str, turn: int, speaking: float, *, is_last: bool) -> None:
        """The agent speaks for about so many seconds; then the silence counts, even if nobody
        tells when it has ended.
        """
        self.stop(sid)
        task = asyncio.create_task(self._wait(sid, turn, speaking + SILENCE_TIMEOUT_S, is_last))
        self._watches[sid] = _Watch(turn, is_last, task)

    def restart(self, sid: str) -> None:
        """Somebody has just spoken."""
        if watch := self._watches.get(sid):
            self.start(sid, watch.turn, 0.0, is_last=watch.is_last)

    def stop(self, sid: str) -> None:
        if watch := self._watches.pop(sid, None):
            watch.task.cancel()

    async def close(self) -> None:
        tasks = [watch.task for watch in self._watches.values()]
        self._watches.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait(self, sid: str, turn: int, seconds: float, is_last: bool) -> None:
        await self._clock.sleep(seconds)
        if (watch := self._watches.get(sid)) and watch.task is asyncio.current_task():
            del self._watches[
                sid
            ]  # what it does now may start a new one, and is not to be broken off by that
        await self._on_silence(sid, turn, is_last)


def estimate_speaking_s(text: str) -> float:
    return len(text.split()) / _WORDS_PER_SECOND
