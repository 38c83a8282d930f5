"""The journal: open a call, append what happens in it, seal it when it ends.

Whatever `append` returned for is on disk, whatever happens next: in the database or, while that
is away, in a file of the call's own. Only while the disk has no room is it in memory, and is
written first thing when there is; with no room there either, it is refused. Late words of a
sealed call become addenda.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from aftercall.clock import Clock
from aftercall.errors import (
    AftercallError,
    CallNotLive,
    DatabaseUnreachable,
    JournalConflict,
    JournalGap,
    RefusedInput,
    StorageFull,
)
from aftercall.faults import fault_point
from aftercall.journal.archive import Archive, SealedFile
from aftercall.journal.presence import Presence
from aftercall.journal.replay import replay_entries, to_entries, to_entry, to_finished_call
from aftercall.journal.spill import (
    DatabaseOutage,
    SpillFolder,
    call_entry,
    end_entry,
    import_spilled_calls,
    removal_entry,
    retry_entry,
)
from aftercall.journal.store import CallRow, CallStore, JournalEntry, JournalInserter
from aftercall.journal.writer import JournalWriter, PendingWrite
from aftercall.model.calls import Call, LiveCall, has_caller_words
from aftercall.model.turns import Event, Turn

DATABASE_TIMEOUT_S = 1.0  # a database that takes longer is away: the caller is on the phone

T = TypeVar("T")


class CallRecorder:
    """One live call's numbered entries.

    Appends of one call go one after the other, those of many calls together.
    """

    def __init__(
        self, call: LiveCall, write: Callable[["CallRecorder", JournalEntry], Awaitable[None]]
    ) -> None:
        self.call = call
        self.is_open = True
        self.is_spilling = False
        """Its entries go to a file of its own, and back to the database when that is there
        again.
        """
        self.lock = asyncio.Lock()
        self._write = write
        self._written: dict[str, list[JournalEntry]] = {"turn": [], "event": []}

    @property
    def next_turn_seq(self) -> int:
        return len(self._written["turn"]) + 1

    @property
    def next_event_seq(self) -> int:
        return len(self._written["event"]) + 1

    @property
    def entries(self) -> list[JournalEntry]:
        return [*self._written["turn"], *self._written["event"]]

    async def append(self, item: Turn | Event) -> None:
        """Return when the item is on disk.

        The same one again changes nothing; a gap or a second version is refused.
        """
        entry = to_entry(self.call.id, item)
        async with self.lock:
            if not self.is_open:
                raise CallNotLive(
                    f"call {self.call.id} has ended; attach late words to the sealed call"
                )
            if self._is_written(entry):
                return
            fault_point("journal.before_append")
            await self._write(self, entry)
            fault_point("journal.after_append")

    def mark_written(self, entry: JournalEntry) -> None:
        """It is on disk."""
        self._written[entry.kind].append(entry)

    async def close(self) -> None:
        """Wait for an append on its way, and take no more."""
        async with self.lock:
            self.is_open = False

    def _is_written(self, entry: JournalEntry) -> bool:
        kept = self._written[entry.kind]
        if entry.seq > len(kept) + 1:
            raise JournalGap(
                f"call {self.call.id}: {entry.kind} {entry.seq} came where {len(kept) + 1} is next"
            )
        if entry.seq == len(kept) + 1:
            return False
        if kept[entry.seq - 1].body != entry.body:
            raise JournalConflict(
                f"call {self.call.id}: {entry.kind} {entry.seq} is already written, with "
                "other contents"
            )
        return True


class Journal:
    """Keeps the calls of this process."""

    def __init__(
        self,
        store: CallStore,
        inserter: JournalInserter,
        archive: Archive,
        presence: Presence,
        clock: Clock,
        spill: SpillFolder,
        reconnect_window: timedelta,
    ) -> None:
        self.store = store
        self.reconnect_window = reconnect_window
        self.spill = spill
        self.outage = DatabaseOutage(inserter.is_ready, self._on_database_back, clock)
        self.archive = archive
        self.presence = presence
        self.clock = clock
        self._inserter = inserter
        self._writer: JournalWriter | None = None
        self._spiller: JournalWriter | None = None
        self._recorders: dict[tuple[str, str], CallRecorder] = {}
        self._opening: dict[tuple[str, str], asyncio.Task[CallRecorder]] = {}
        self._sealing: set[str] = set()
        self._seal_tasks: set[asyncio.Task[SealedFile]] = set()

    @property
    def live_recorders(self) -> list[CallRecorder]:
        return list(self._recorders.values())

    async def open(self, call: LiveCall) -> CallRecorder:
        """Begin a call. Opened twice (a webhook that came twice) it is the same record."""
        key = (call.source, call.sid)
        if record := self._recorders.get(key):
            return record
        if key not in self._opening:
            self._opening[key] = asyncio.create_task(self._open(call))
            self._opening[key].add_done_callback(lambda _: self._opening.pop(key))
        return await asyncio.shield(self._opening[key])

    async def seal(
        self, recorder: CallRecorder, *, end_reason: str, ended_at: datetime | None = None
    ) -> SealedFile:
        """End a call and put it into the archive.

        After an error it may be sealed again; recovery tries, too.

        Whoever asked may be cancelled (the line is gone, the server stops): sealing goes on.
        """
        sealing = asyncio.create_task(
            self._seal(recorder, end_reason, ended_at or self.clock.now())
        )
        self._seal_tasks.add(sealing)
        sealing.add_done_callback(self._seal_tasks.discard)
        return await asyncio.shield(sealing)

    def ingest(self, call: Call, *, is_handed_in: bool = False) -> tuple[CallRow, bool]:
        """Seal a call that is over; returns it, and whether it is new.

        One that is handed in was answered elsewhere. It becomes a leg of its caller's
        conversation within the reconnect window.
        """
        if known := self.store.find(call.source, call.sid):
            return known, False
        window = self.reconnect_window if is_handed_in else None
        with self._mark_sealing(call.id):
            noted = self.store.add_finished(call, to_entries(call), self.presence.process, window)
            if noted is None:
                if known := self.store.find(call.source, call.sid):
                    return known, False
                raise RefusedInput("id", "belongs to another call")
            self._archive_and_finish(noted)
        return self.store.get(call.id), True

    def add_addendum(self, row: CallRow, late: Sequence[Turn | Event]) -> None:
        """Keep what came after the seal."""
        if row.archive_name is None:
            raise CallNotLive(f"call {row.live.id} is not sealed yet")
        addenda = self.archive.add_addendum(row.live.id, row.archive_name, late, self.clock.now())
        self.store.set_addenda_count(row.live.id, addenda, has_caller_words=has_caller_words(late))

    def is_abandoned(self, row: CallRow) -> bool:
        """Whether nobody keeps or seals this call any more: its process died, or its sealing
        failed here.
        """
        if row.owner == self.presence.process:
            return row.state == "sealing" and row.live.id not in self._sealing
        return not self.presence.is_alive(row.owner, self.clock.now())

    def seal_abandoned(self, row: CallRow) -> SealedFile | None:
        """Seal a call that nobody keeps; None if another process did it first."""
        call = to_finished_call(row, replay_entries(self.store.list_entries(row.live.id)))
        with self._mark_sealing(call.id):
            if not self._claim(call.id, row.owner, call.ended_at, call.end_reason):
                return None
            return self._archive_and_finish(call)

    async def close(self) -> None:
        await asyncio.gather(*self._seal_tasks, return_exceptions=True)
        await self.outage.close()
        for writer in (self._spiller, self._writer):
            if writer is not None:
                await asyncio.to_thread(writer.close)

    def import_spilled(self) -> list[str]:
        """What was kept on disk by calls that are over, and by processes that are gone, while
        the database was away.
        """
        return import_spilled_calls(
            self.spill, self.store, self.archive, self.presence.process, self.clock.now()
        )

    async def _open(self, call: LiveCall) -> CallRecorder:
        record = CallRecorder(call, self._write)
        if not await self._open_row(call):
            await self._start_spilling(record)
        self._recorders[call.source, call.sid] = record
        return record

    async def _open_row(self, call: LiveCall) -> bool:
        """False while the database is away."""
        if self.outage.is_active:
            return False
        try:
            is_new = await self._with_timeout(
                asyncio.to_thread(self.store.open, call, self.presence.process)
            )
        except AftercallError as error:
            if not error.retryable:
                raise
            self.outage.start(error)
            return False
        if not is_new:
            raise CallNotLive(f"{call.source} call {call.sid} is known already and not live here")
        return True

    async def _write(self, record: CallRecorder, entry: JournalEntry) -> None:
        if not record.is_spilling and not self.outage.is_active:
            self._writer = self._writer or JournalWriter(self._inserter.write, self._inserter.close)
            written = self._writer.submit(entry)
            alarm = asyncio.ensure_future(self.clock.sleep(DATABASE_TIMEOUT_S))
            alarm.add_done_callback(partial(_time_out_write, written))
            try:
                await written
            except AftercallError as error:
                if not error.retryable:
                    raise
                self.outage.start(error)
            finally:  # also when we are cancelled: by then it is on disk, or not
                alarm.cancel()
                if written.exception() is None:
                    record.mark_written(entry)
            if written.exception() is None:
                return
        await self._start_spilling(record)
        self._refuse_if_full()
        spilled = self._spill_entry(entry)
        try:
            await spilled
        finally:
            if spilled.exception() is None:
                record.mark_written(entry)

    async def _start_spilling(self, record: CallRecorder) -> None:
        """From here on the call is kept in a file of its own."""
        if not record.is_spilling:
            self._refuse_if_full()
            await self._spill_entry(call_entry(record.call))
            record.is_spilling = True

    def _refuse_if_full(self) -> None:
        if self.spill.is_memory_full:
            raise StorageFull(
                "the disk has no room, and too much waits in memory for it; free some space"
            )

    def _spill_entry(self, entry: JournalEntry) -> PendingWrite:
        self._spiller = self._spiller or JournalWriter(self.spill.write, self.spill.close)
        return self._spiller.submit(entry)

    async def _with_timeout(self, work: Awaitable[T]) -> T:
        """The work's result, or that the database is away; work that comes too late ends by
        itself.
        """
        task = asyncio.ensure_future(work)
        alarm = asyncio.ensure_future(self.clock.sleep(DATABASE_TIMEOUT_S))
        try:
            await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
        if task.done():
            return task.result()
        task.add_done_callback(
            lambda late: late.cancelled() or late.exception()
        )  # nobody is left to ask how it ended
        raise DatabaseUnreachable(f"no answer from the database within {DATABASE_TIMEOUT_S:g} s")

    async def _on_database_back(self) -> None:
        """The database is back: calls that go on are written there again, and those that are
        over are taken up and sealed.
        """
        for record in self.live_recorders:
            async with record.lock:
                if record.is_spilling and record.is_open:
                    owner = self.presence.process
                    await asyncio.to_thread(
                        self.store.import_spilled, record.call, record.entries, owner, is_live=True
                    )
                    await self._spill_entry(removal_entry(record.call.id))
                    record.is_spilling = False
        await self._spill_entry(retry_entry())
        if self.spill.has_waiting_entries:
            raise StorageFull("calls wait in memory for room on disk; free some space")
        await asyncio.to_thread(self._seal_spilled)

    def _seal_spilled(self) -> None:
        for call_id in self.import_spilled():
            row = self.store.get(call_id)
            if row.state != "sealed" and self.is_abandoned(row):
                self.seal_abandoned(row)

    async def _seal(self, record: CallRecorder, end_reason: str, ended_at: datetime) -> SealedFile:
        await record.close()
        try:
            sealed = await asyncio.to_thread(self._seal_record, record, end_reason, ended_at)
        except DatabaseUnreachable as error:
            await self._spill_end(record, end_reason, ended_at, error)
            raise
        except (
            StorageFull
        ):  # in the archive: its end is noted, and recovery seals it when there is room
            self._remove_recorder(record)
            raise
        self._remove_recorder(record)
        return sealed

    def _remove_recorder(self, record: CallRecorder) -> None:
        self._recorders.pop((record.call.source, record.call.sid), None)

    async def _spill_end(
        self, record: CallRecorder, end_reason: str, ended_at: datetime, error: AftercallError
    ) -> None:
        """How the call ended goes to its file, which is taken up with the others when the
        database is back.
        """
        await self._spill_entry(call_entry(record.call))
        await self._spill_entry(end_entry(record.call.id, ended_at, end_reason))
        self._remove_recorder(record)
        self.outage.start(error)

    def _seal_record(self, record: CallRecorder, end_reason: str, ended_at: datetime) -> SealedFile:
        call = record.call
        if record.is_spilling or self.outage.is_active:
            raise DatabaseUnreachable(f"call {call.id} is kept on disk until the database is back")
        with self._mark_sealing(call.id):
            if not self._claim(call.id, self.presence.process, ended_at, end_reason):
                raise CallNotLive(f"call {call.id} was sealed by another process")
            row = replace(self.store.get(call.id), live=call)
            return self._archive_and_finish(to_finished_call(row, replay_entries(record.entries)))

    def _claim(self, call_id: str, held_by: str, ended_at: datetime, end_reason: str) -> bool:
        sealer = self.presence.process
        try:
            return self.store.claim(
                call_id, held_by=held_by, sealer=sealer, ended_at=ended_at, end_reason=end_reason
            )
        except StorageFull as error:  # a database that takes nothing is as good as away
            raise DatabaseUnreachable(
                f"the database has no room to note the end of call {call_id}"
            ) from error

    def _archive_and_finish(self, call: Call) -> SealedFile:
        sealed = self.archive.seal(call)
        fault_point("resume.before_keep")
        self.store.finish(
            call, archive_name=sealed.name, sha256=sealed.sha256, sealed_at=self.clock.now()
        )
        fault_point("resume.after_keep")
        return sealed

    @contextmanager
    def _mark_sealing(self, call_id: str) -> Iterator[None]:
        self._sealing.add(call_id)
        try:
            yield
        finally:
            self._sealing.discard(call_id)


def _time_out_write(written: PendingWrite, alarm: "asyncio.Future[None]") -> None:
    """An entry that is written all the same, later, is there twice and folds into one."""
    if not alarm.cancelled() and not written.done():
        written.set_exception(DatabaseUnreachable(f"not written within {DATABASE_TIMEOUT_S:g} s"))
