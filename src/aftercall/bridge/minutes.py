"""The minutes of a live call: what was said by whom, in order, on its way into the journal."""

import asyncio
from collections.abc import Mapping
from typing import Any

from aftercall.bridge.scribe import Scribe
from aftercall.bridge.transcript import Draft, Transcript
from aftercall.clock import Clock
from aftercall.journal.record import Record
from aftercall.model.turns import Speaker, Turn


class Minutes:
    def __init__(self, record: Record, clock: Clock) -> None:
        self._clock = clock
        self._transcript = Transcript()
        self._scribe = Scribe(record, clock)
        self._is_closed = False

    @property
    def turns(self) -> list[Turn]:
        """What is on disk."""
        return self._scribe.turns

    @property
    def has_no_room(self) -> bool:
        """Neither the disk nor the memory takes more: what is said now is lost."""
        return self._scribe.has_no_room

    @property
    def is_missing_words(self) -> bool:
        return self._transcript.is_missing_words

    def begin(self, speaker: Speaker, key: str) -> None:
        self._transcript.begin(speaker, key, self._clock.now(), self._clock.monotonic())

    def know(self, speaker: Speaker, key: str, text: str, confidence: float | None = None) -> None:
        self._transcript.know(speaker, key, text, self._clock.now(), self._clock.monotonic(), confidence)
        if not self._is_closed:
            self.write_ready()

    def note(self, kind: str, data: Mapping[str, Any] | None = None) -> "asyncio.Future[None]":
        return self._scribe.note(kind, data or {})

    def write_ready(self) -> None:
        for draft in self._transcript.take(self._clock.monotonic()):
            self._scribe.write(draft)

    async def write_all(self) -> None:
        """Everything known is on disk, or given up, when this returns."""
        written = [self._scribe.write(draft) for draft in self._transcript.take(self._clock.monotonic(), everything=True)]
        await asyncio.gather(*written, return_exceptions=True)

    async def close(self) -> None:
        await self.write_all()
        self._is_closed = True
        await self._scribe.close()

    def take_late(self) -> list[Draft]:
        """Words that came after the minutes were closed."""
        return self._transcript.take(self._clock.monotonic(), everything=True)
