"""The minutes of a live call: what was said by whom, in order, on its way into the journal."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aftercall.clock import Clock
from aftercall.errors import AftercallError, StorageFull
from aftercall.journal.record import CallRecorder
from aftercall.log import get_logger
from aftercall.model.turns import MAX_TURN_CHARS, Event, Speaker, Turn

JOIN_WINDOW_S = 1.0
MISSING_WORDS_TIMEOUT_S = 5.0


@dataclass(slots=True)
class TurnDraft:
    """A turn before it has a number."""

    speaker: Speaker
    key: str
    at: datetime
    since_s: float
    text: str = field(default="", repr=False)
    confidence: float | None = None
    is_known: bool = False


class TurnDrafts:
    def __init__(self) -> None:
        self._drafts: deque[TurnDraft] = deque()

    @property
    def is_missing_words(self) -> bool:
        """Whether the caller said something of which no words have come yet."""
        return any(draft.speaker == "caller" and not draft.is_known for draft in self._drafts)

    def start(self, speaker: Speaker, key: str, at: datetime, now_s: float) -> None:
        if self._find(speaker, key) is None:
            self._drafts.append(TurnDraft(speaker, key, at, now_s))

    def set_text(
        self,
        speaker: Speaker,
        key: str,
        text: str,
        at: datetime,
        now_s: float,
        confidence: float | None = None,
    ) -> None:
        """The words of a turn; empty ones mean that there was nothing after all."""
        draft = self._find(speaker, key)
        if draft is None:
            draft = TurnDraft(speaker, key, at, now_s)
            self._drafts.append(draft)
        draft.text = _join(draft.text, text)
        draft.confidence = _lower(draft.confidence, confidence)
        draft.is_known, draft.since_s = True, now_s

    def pop_ready(self, now_s: float, *, everything: bool = False) -> list[TurnDraft]:
        """The turns that can be written down now.

        With `everything`, also what might still grow; never words that are missing.
        """
        ready: list[TurnDraft] = []
        while self._drafts and (everything or self._is_ready(now_s)):
            draft = self._drafts.popleft()
            if not draft.text:
                continue
            if ready and ready[-1].speaker == draft.speaker:
                ready[-1].text = _join(ready[-1].text, draft.text)
                ready[-1].confidence = _lower(ready[-1].confidence, draft.confidence)
            else:
                ready.append(draft)
        return ready

    def _is_ready(self, now_s: float) -> bool:
        first = self._drafts[0]
        other = next((draft for draft in self._drafts if draft.speaker != first.speaker), None)
        if not first.is_known:
            return (
                first.speaker == "caller"
                and other is not None
                and now_s - other.since_s >= MISSING_WORDS_TIMEOUT_S
            )
        return (
            first.speaker == "agent" or other is not None or now_s - first.since_s >= JOIN_WINDOW_S
        )

    def _find(self, speaker: Speaker, key: str) -> TurnDraft | None:
        return next(
            (draft for draft in self._drafts if draft.key == key and draft.speaker == speaker), None
        )


def _join(before: str, after: str) -> str:
    return f"{before} {after.strip()}".strip()[:MAX_TURN_CHARS]


def _lower(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return min(known, default=None)


RETRY_INTERVAL_S = 1.0
MAX_QUEUED_ITEMS = 2_000  # a disk that hangs must not fill the memory

log = get_logger("scribe")

MakeItem = Callable[[], Turn | Event]


class JournalQueue:
    def __init__(self, record: CallRecorder, clock: Clock) -> None:
        self._record = record
        self._clock = clock
        self._waiting: deque[tuple[MakeItem, asyncio.Future[None]]] = deque()
        self._work = asyncio.Event()
        self._is_closing = False
        self._last_at: datetime | None = None
        self._task = asyncio.create_task(self._run())
        self.turns: list[Turn] = []
        self.is_full = False
        """Neither the disk nor the memory takes more: what is said now is lost."""

    def add_turn(self, draft: TurnDraft) -> asyncio.Future[None]:
        def make() -> Turn:
            at = max(draft.at, self._last_at or draft.at)
            text, confidence = draft.text, draft.confidence
            return Turn(
                seq=self._record.next_turn_seq,
                speaker=draft.speaker,
                text=text,
                at=at,
                confidence=confidence,
            )

        return self._add(make)

    def add_event(self, kind: str, data: Mapping[str, Any]) -> asyncio.Future[None]:
        at = self._clock.now()
        return self._add(
            lambda: Event(seq=self._record.next_event_seq, kind=kind, at=at, data=dict(data))
        )

    async def close(self) -> None:
        """Write what is left; what cannot be written is given up, and told."""
        self._is_closing = True
        self._work.set()
        await self._task

    def _add(self, make: MakeItem) -> asyncio.Future[None]:
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if len(self._waiting) >= MAX_QUEUED_ITEMS or self._task.done():
            log.error("too much waits to be written down", call=self._record.call.id)
            self.is_full = True
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
            log.error("could not write down", call=self._record.call.id, error=error.code)
            self.is_full = self.is_full or isinstance(error, StorageFull)
            if error.retryable and not self._is_closing:
                await self._clock.sleep(RETRY_INTERVAL_S)
                return
            written.cancel()
        else:
            if isinstance(item, Turn):
                self._last_at = item.at
                self.turns.append(item)
            if not written.done():
                written.set_result(None)
        self._waiting.popleft()


class TurnLog:
    def __init__(self, record: CallRecorder, clock: Clock) -> None:
        self._clock = clock
        self._drafts = TurnDrafts()
        self._queue = JournalQueue(record, clock)
        self._is_closed = False

    @property
    def turns(self) -> list[Turn]:
        """What is on disk."""
        return self._queue.turns

    @property
    def is_full(self) -> bool:
        """Neither the disk nor the memory takes more: what is said now is lost."""
        return self._queue.is_full

    @property
    def is_missing_words(self) -> bool:
        return self._drafts.is_missing_words

    def start_turn(self, speaker: Speaker, key: str) -> None:
        self._drafts.start(speaker, key, self._clock.now(), self._clock.monotonic())

    def set_text(
        self, speaker: Speaker, key: str, text: str, confidence: float | None = None
    ) -> None:
        self._drafts.set_text(
            speaker, key, text, self._clock.now(), self._clock.monotonic(), confidence
        )
        if not self._is_closed:
            self.flush_ready()

    def add_event(self, kind: str, data: Mapping[str, Any] | None = None) -> "asyncio.Future[None]":
        return self._queue.add_event(kind, data or {})

    def flush_ready(self) -> None:
        for draft in self._drafts.pop_ready(self._clock.monotonic()):
            self._queue.add_turn(draft)

    async def flush_all(self) -> None:
        """Everything known is on disk, or given up, when this returns."""
        written = [
            self._queue.add_turn(draft)
            for draft in self._drafts.pop_ready(self._clock.monotonic(), everything=True)
        ]
        await asyncio.gather(*written, return_exceptions=True)

    async def close(self) -> None:
        await self.flush_all()
        self._is_closed = True
        await self._queue.close()

    def pop_late(self) -> list[TurnDraft]:
        """Words that came after the minutes were closed."""
        return self._drafts.pop_ready(self._clock.monotonic(), everything=True)
