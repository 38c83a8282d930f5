"""What was said in a live call, by whom and in order, on its way into the journal.

Turns keep the order in which they began, even when their words arrive late. Entries are written
one at a time: a failed one is retried and the rest waits behind it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from aftercall.clock import Clock
from aftercall.errors import AftercallError, StorageFull
from aftercall.journal.recorder import CallRecorder
from aftercall.log import get_logger
from aftercall.model.calls import MAX_TURN_CHARS, Event, Speaker, Turn
from aftercall.model.json_fields import Json

JOIN_WINDOW_S = 1.0
MISSING_WORDS_TIMEOUT_S = 5.0
RETRY_INTERVAL_S = 1.0
MAX_QUEUED_ITEMS = 2_000  # a disk that hangs must not fill the memory

log = get_logger("turn_log")

MakeItem = Callable[[], Turn | Event]


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
    delay_ms: int | None = None

    def add_text(self, text: str, confidence: float | None) -> None:
        self.text = f"{self.text} {text.strip()}".strip()[:MAX_TURN_CHARS]
        known = [value for value in (self.confidence, confidence) if value is not None]
        self.confidence = min(known, default=None)

    def to_turn(self, seq: int, not_before: datetime | None = None) -> Turn:
        at = max(self.at, not_before or self.at)
        return Turn(
            seq=seq,
            speaker=self.speaker,
            text=self.text,
            at=at,
            confidence=self.confidence,
            delay_ms=self.delay_ms,
        )


class TurnDrafts:
    """The turns that are not written yet. Values only: the caller passes the time."""

    def __init__(self) -> None:
        self._drafts: deque[TurnDraft] = deque()

    @property
    def is_missing_words(self) -> bool:
        """Whether the caller said something whose words have not come yet."""
        return any(
            draft.speaker == "caller" and not draft.is_known for draft in self._drafts
        )

    def start(
        self, speaker: Speaker, key: str, at: datetime, now_s: float
    ) -> TurnDraft:
        for draft in self._drafts:
            if draft.key == key and draft.speaker == speaker:
                return draft
        draft = TurnDraft(speaker, key, at, now_s)
        self._drafts.append(draft)
        return draft

    def set_text(
        self,
        speaker: Speaker,
        key: str,
        text: str,
        at: datetime,
        now_s: float,
        confidence: float | None = None,
    ) -> None:
        """Add the words of a turn. Empty text means that nothing was said after all."""
        draft = self.start(speaker, key, at, now_s)
        draft.add_text(text, confidence)
        draft.is_known = True
        draft.since_s = now_s

    def pop_ready(self, now_s: float, *, everything: bool = False) -> list[TurnDraft]:
        """The turns that can be written now.

        With `everything`, also those that might still grow, and none waits for missing words.
        """
        ready: list[TurnDraft] = []
        while self._drafts and (everything or self._is_ready(now_s)):
            draft = self._drafts.popleft()
            if not draft.text:
                continue
            if ready and ready[-1].speaker == draft.speaker:
                ready[-1].add_text(draft.text, draft.confidence)
                ready[-1].delay_ms = ready[-1].delay_ms or draft.delay_ms
            else:
                ready.append(draft)
        return ready

    def _is_ready(self, now_s: float) -> bool:
        first = self._drafts[0]
        other = next(
            (draft for draft in self._drafts if draft.speaker != first.speaker), None
        )
        if first.is_known:
            is_joined = now_s - first.since_s >= JOIN_WINDOW_S
            return first.speaker == "agent" or other is not None or is_joined
        if first.speaker == "agent" or other is None:
            return False
        return now_s - other.since_s >= MISSING_WORDS_TIMEOUT_S


class TurnLog:
    """Writes the turns of a call to the journal in the order they were heard."""

    def __init__(self, recorder: CallRecorder, clock: Clock) -> None:
        self._recorder = recorder
        self.call_id = recorder.call.id
        self._clock = clock
        self._drafts = TurnDrafts()
        self._queue: deque[tuple[MakeItem, asyncio.Future[None]]] = deque()
        self._wake = asyncio.Event()
        self._is_closing = False
        self._last_at: datetime | None = None
        self._writer = asyncio.create_task(self._write_all())
        self.turns: list[Turn] = []
        """What is on disk."""
        self.is_full = False
        """Neither the disk nor the memory takes more: what is said now is lost."""

    @property
    def is_missing_words(self) -> bool:
        return self._drafts.is_missing_words

    def start_turn(
        self, speaker: Speaker, key: str, delay_ms: int | None = None
    ) -> None:
        now = self._clock.now()
        now_s = self._clock.monotonic()
        draft = self._drafts.start(speaker, key, now, now_s)
        draft.delay_ms = draft.delay_ms if delay_ms is None else delay_ms

    def set_text(
        self, speaker: Speaker, key: str, text: str, confidence: float | None = None
    ) -> None:
        now = self._clock.now()
        now_s = self._clock.monotonic()
        self._drafts.set_text(speaker, key, text, now, now_s, confidence)
        if not self._is_closing:
            self.flush_ready()

    def add_event(self, kind: str, data: Json | None = None) -> asyncio.Future[None]:
        """The future is done when the event is on disk, and cancelled if it is given up."""
        at = self._clock.now()
        fields = dict(data or {})
        return self._enqueue(
            lambda: Event(
                seq=self._recorder.next_event_seq, kind=kind, at=at, data=fields
            )
        )

    async def write_event(self, kind: str, data: Json) -> None:
        """Returns when the event is on disk, after all words that are known."""
        await self.flush_all()
        await self.add_event(kind, data)

    def flush_ready(self) -> None:
        for draft in self._drafts.pop_ready(self._clock.monotonic()):
            self._enqueue_turn(draft)

    async def flush_all(self) -> None:
        """Returns when everything known is on disk, or given up."""
        written = [self._enqueue_turn(draft) for draft in self.pop_unwritten()]
        await asyncio.gather(*written, return_exceptions=True)

    async def close(self) -> None:
        """Write what is left. What cannot be written is given up, and logged."""
        await self.flush_all()
        self._is_closing = True
        self._wake.set()
        await self._writer

    def pop_unwritten(self) -> list[TurnDraft]:
        """Words that are not queued. After `close` these are late words."""
        return self._drafts.pop_ready(self._clock.monotonic(), everything=True)

    def _enqueue_turn(self, draft: TurnDraft) -> asyncio.Future[None]:
        return self._enqueue(
            lambda: draft.to_turn(self._recorder.next_turn_seq, self._last_at)
        )

    def _enqueue(self, make: MakeItem) -> asyncio.Future[None]:
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if len(self._queue) >= MAX_QUEUED_ITEMS or self._writer.done():
            cause = "has stopped" if self._writer.done() else "is too slow"
            log.error(f"the writer of turns {cause}", call=self._recorder.call.id)
            self.is_full = True
            written.cancel()
            return written
        self._queue.append((make, written))
        self._wake.set()
        return written

    async def _write_all(self) -> None:
        while True:
            while self._queue:
                await self._write_next()
            if self._is_closing:
                return
            self._wake.clear()
            await self._wake.wait()

    async def _write_next(self) -> None:
        """Write the first entry. A retryable failure leaves it first in the queue."""
        make, written = self._queue[0]
        item = make()
        try:
            await self._recorder.append(item)
        except AftercallError as error:
            log.error(
                "an entry could not be written",
                call=self._recorder.call.id,
                error=error.code,
            )
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
        self._queue.popleft()
