"""The journal: open a call, append what happens in it, seal it when it ends.

Whatever `append` returned for is on disk, whatever happens next. Late words of a sealed call become addenda.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from aftercall.clock import Clock
from aftercall.errors import CallNotLive, JournalConflict, JournalGap, RefusedInput
from aftercall.faults import reach
from aftercall.journal.archive import Archive, Sealed
from aftercall.journal.fold import entries_of, entry_of, finished_call, fold
from aftercall.journal.presence import Presence
from aftercall.journal.store import CallRow, CallStore, Entry, Pen
from aftercall.journal.writer import GroupWriter
from aftercall.model.calls import Call, LiveCall
from aftercall.model.turns import Event, Turn


class Record:
    """One live call's numbered entries. Appends of one call go one after the other, those of many calls together."""

    def __init__(self, call: LiveCall, writer: GroupWriter) -> None:
        self.call = call
        self.is_open = True
        self._writer = writer
        self._lock = asyncio.Lock()
        self._kept: dict[str, list[Entry]] = {"turn": [], "event": []}

    @property
    def next_turn(self) -> int:
        return len(self._kept["turn"]) + 1

    @property
    def next_event(self) -> int:
        return len(self._kept["event"]) + 1

    @property
    def entries(self) -> list[Entry]:
        return [*self._kept["turn"], *self._kept["event"]]

    async def append(self, item: Turn | Event) -> None:
        """Return when the item is on disk. The same one again changes nothing; a gap or a second version is refused."""
        entry = entry_of(self.call.id, item)
        async with self._lock:
            if not self.is_open:
                raise CallNotLive(f"call {self.call.id} has ended; attach late words to the sealed call")
            if self._is_kept(entry):
                return
            reach("journal.before_append")
            written = self._writer.put(entry)
            try:
                await written
            finally:  # also when we are cancelled: by then it is on disk, or not
                if written.exception() is None:
                    self._kept[entry.kind].append(entry)
            reach("journal.after_append")

    async def close(self) -> None:
        """Wait for an append on its way, and take no more."""
        async with self._lock:
            self.is_open = False

    def _is_kept(self, entry: Entry) -> bool:
        kept = self._kept[entry.kind]
        if entry.seq > len(kept) + 1:
            raise JournalGap(f"call {self.call.id}: {entry.kind} {entry.seq} came where {len(kept) + 1} is next")
        if entry.seq == len(kept) + 1:
            return False
        if kept[entry.seq - 1].body != entry.body:
            raise JournalConflict(f"call {self.call.id}: {entry.kind} {entry.seq} is already written, with other contents")
        return True


class Journal:
    """Keeps the calls of this process."""

    def __init__(self, store: CallStore, pen: Pen, archive: Archive, presence: Presence, clock: Clock) -> None:
        self.store = store
        self.archive = archive
        self.presence = presence
        self.clock = clock
        self._pen = pen
        self._writer: GroupWriter | None = None
        self._records: dict[tuple[str, str], Record] = {}
        self._opening: dict[tuple[str, str], asyncio.Task[Record]] = {}
        self._sealing: set[str] = set()
        self._seals: set[asyncio.Task[Sealed]] = set()

    @property
    def live(self) -> list[Record]:
        return list(self._records.values())

    async def open(self, call: LiveCall) -> Record:
        """Begin a call. Opened twice (a webhook that came twice) it is the same record."""
        key = (call.source, call.sid)
        if record := self._records.get(key):
            return record
        if key not in self._opening:
            self._opening[key] = asyncio.create_task(self._open(call))
            self._opening[key].add_done_callback(lambda _: self._opening.pop(key))
        return await asyncio.shield(self._opening[key])

    async def seal(self, record: Record, *, end_reason: str, ended_at: datetime | None = None) -> Sealed:
        """End a call and put it into the archive. After an error it may be sealed again; recovery tries, too.

        Whoever asked may be cancelled (the line is gone, the server stops): sealing goes on.
        """
        sealing = asyncio.create_task(self._seal(record, end_reason, ended_at or self.clock.now()))
        self._seals.add(sealing)
        sealing.add_done_callback(self._seals.discard)
        return await asyncio.shield(sealing)

    def take_in(self, call: Call) -> tuple[CallRow, bool]:
        """Seal a call that finished elsewhere; returns it, and whether it is new."""
        if known := self.store.find(call.source, call.sid):
            return known, False
        with self._busy_with(call.id):
            if not self.store.take_in(call, entries_of(call), self.presence.process):
                if known := self.store.find(call.source, call.sid):
                    return known, False
                raise RefusedInput("id", "belongs to another call")
            self._archive_and_finish(call)
        return self.store.get(call.id), True

    def attach(self, row: CallRow, late: Sequence[Turn | Event]) -> None:
        """Keep what came after the seal."""
        if row.archive_name is None:
            raise CallNotLive(f"call {row.live.id} is not sealed yet")
        addenda = self.archive.attach(row.live.id, row.archive_name, late, self.clock.now())
        self.store.count_addenda(row.live.id, addenda)

    def is_abandoned(self, row: CallRow) -> bool:
        """Whether nobody keeps or seals this call any more: its process died, or its sealing failed here."""
        if row.owner == self.presence.process:
            return row.state == "sealing" and row.live.id not in self._sealing
        return not self.presence.is_alive(row.owner, self.clock.now())

    def seal_abandoned(self, row: CallRow) -> Sealed | None:
        """Seal a call that nobody keeps; None if another process did it first."""
        call = finished_call(row, fold(self.store.entries(row.live.id)))
        with self._busy_with(call.id):
            if not self._claim(call.id, row.owner, call.ended_at, call.end_reason):
                return None
            return self._archive_and_finish(call)

    async def close(self) -> None:
        await asyncio.gather(*self._seals, return_exceptions=True)
        if self._writer is not None:
            await asyncio.to_thread(self._writer.close)

    async def _open(self, call: LiveCall) -> Record:
        if not await asyncio.to_thread(self.store.open, call, self.presence.process):
            raise CallNotLive(f"{call.source} call {call.sid} is known already and not live here")
        self._writer = self._writer or GroupWriter(self._pen.write, self._pen.close)
        record = self._records[call.source, call.sid] = Record(call, self._writer)
        return record

    async def _seal(self, record: Record, end_reason: str, ended_at: datetime) -> Sealed:
        await record.close()
        sealed = await asyncio.to_thread(self._seal_record, record.call, record.entries, end_reason, ended_at)
        self._records.pop((record.call.source, record.call.sid), None)
        return sealed

    def _seal_record(self, call: LiveCall, entries: list[Entry], end_reason: str, ended_at: datetime) -> Sealed:
        with self._busy_with(call.id):
            if not self._claim(call.id, self.presence.process, ended_at, end_reason):
                raise CallNotLive(f"call {call.id} was sealed by another process")
            row = replace(self.store.get(call.id), live=call)
            return self._archive_and_finish(finished_call(row, fold(entries)))

    def _claim(self, call_id: str, held_by: str, ended_at: datetime, end_reason: str) -> bool:
        sealer = self.presence.process
        return self.store.claim(call_id, held_by=held_by, sealer=sealer, ended_at=ended_at, end_reason=end_reason)

    def _archive_and_finish(self, call: Call) -> Sealed:
        sealed = self.archive.seal(call)
        reach("resume.before_keep")
        self.store.finish(call, archive_name=sealed.name, sha256=sealed.sha256, sealed_at=self.clock.now())
        reach("resume.after_keep")
        return sealed

    @contextmanager
    def _busy_with(self, call_id: str) -> Iterator[None]:
        self._sealing.add(call_id)
        try:
            yield
        finally:
            self._sealing.discard(call_id)
