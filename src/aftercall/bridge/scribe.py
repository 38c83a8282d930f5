"""Writing a live call down: turns and events go to the journal one after the other, and the audio never waits for them.

What cannot be written now is tried again while the call lasts, and once more at its end.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from aftercall.bridge.transcript import Draft
from aftercall.clock import Clock
from aftercall.errors import AftercallError, StorageFull
from aftercall.journal.record import Record
from aftercall.log import get_logger
from aftercall.model.turns import Event, Turn

TRY_AGAIN_S = 1.0
MOST_WAITING = 2_000  # a disk that hangs must not fill the memory

log = get_logger("scribe")

Make = Callable[[], Turn | Event]


class Scribe:
    def __init__(self, record: Record, clock: Clock) -> None:
        self._record = record
        self._clock = clock
        self._waiting: deque[tuple[Make, asyncio.Future[None]]] = deque()
        self._work = asyncio.Event()
        self._is_closing = False
        self._last_at: datetime | None = None
        self._task = asyncio.create_task(self._run())
        self.turns: list[Turn] = []
        self.has_no_room = False
        """Neither the disk nor the memory takes more: what is said now is lost."""

    def write(self, draft: Draft) -> asyncio.Future[None]:
        def make() -> Turn:
            at = max(draft.at, self._last_at or draft.at)
            text, confidence = draft.text, draft.confidence
            return Turn(seq=self._record.next_turn, speaker=draft.speaker, text=text, at=at, confidence=confidence)

        return self._put(make)

    def note(self, kind: str, data: Mapping[str, Any]) -> asyncio.Future[None]:
        at = self._clock.now()
        return self._put(lambda: Event(seq=self._record.next_event, kind=kind, at=at, data=dict(data)))

    async def close(self) -> None:
        """Write what is left; what cannot be written is given up, and told."""
        self._is_closing = True
        self._work.set()
        await self._task

    def _put(self, make: Make) -> asyncio.Future[None]:
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if len(self._waiting) >= MOST_WAITING or self._task.done():
            log.error("too much waits to be written down", call=self._record.call.id)
            self.has_no_room = True
            written.cancel()
            return written
        self._waiting.append((make, written))
        self._work.set()
        return written

    async def _run(self) -> None:
        while True:
            while self._waiting:
                await self._write_next()
            if self._is_closing:
                return
            self._work.clear()
            await self._work.wait()

    async def _write_next(self) -> None:
        make, written = self._waiting[0]
        item = make()
        try:
            await self._record.append(item)
        except AftercallError as error:
            log.error("could not write down", call=self._record.call.id, error=error.code)  # noqa: TRY400 - a trace may hold speech
            self.has_no_room = self.has_no_room or isinstance(error, StorageFull)
            if error.retryable and not self._is_closing:
                await self._clock.sleep(TRY_AGAIN_S)
                return
            written.cancel()
        else:
            if isinstance(item, Turn):
                self._last_at = item.at
                self.turns.append(item)
            if not written.done():
                written.set_result(None)
        self._waiting.popleft()
