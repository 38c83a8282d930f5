"""The journal: opens a call, appends what happens in it, seals it when it ends.

When `append` returns, the entry is on disk: in the database or, while that is away, in a file of
the call. While the disk is full, entries wait in memory; when that is full, too, they are
refused. Words that arrive after the seal become addenda. Recovery seals calls of dead processes.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from aftercall import telemetry
from aftercall.clock import Clock
from aftercall.disk import try_locked
from aftercall.errors import (
    AftercallError,
    CallErased,
    CallNotLive,
    DatabaseUnreachable,
    RefusedInput,
    StorageFull,
    error_code,
)
from aftercall.faults import fault_point
from aftercall.journal.archive import Archive, SealedFile
from aftercall.journal.handover import Handovers, Presence
from aftercall.journal.recorder import (
    CallRecorder,
    GroupCommit,
    JournalInserter,
    time_out_write,
)
from aftercall.journal.replay import (
    INTERRUPTED,
    JournalEntry,
    compare_entries,
    find_missing,
    find_turns_behind,
    is_place_taken,
    make_leg,
    replay_entries,
    to_entries,
    to_finished_call,
)
from aftercall.journal.spill import (
    DatabaseOutage,
    SpillFolder,
    SpillJournal,
    call_entry,
    end_entry,
    read_spilled_call,
    removal_entry,
    retry_entry,
)
from aftercall.journal.store import CallRow, CallStore
from aftercall.log import get_logger
from aftercall.model.calls import Call, Event, LiveCall, Turn

DATABASE_TIMEOUT_S = 1.0  # so long a write may take: the caller is on the phone
RECOVERY_INTERVAL_S = 60.0
MAX_CLOCK_SKEW = timedelta(days=1)  # of another machine's clock
log = get_logger("journal")


class Journal:
    """Records and seals the calls of this process."""

    def __init__(
        self,
        store: CallStore,
        handovers: Handovers,
        inserter: JournalInserter,
        archive: Archive,
        presence: Presence,
        clock: Clock,
        spill: SpillFolder,
        reconnect_window: timedelta,
        database_timeout_s: float = DATABASE_TIMEOUT_S,
    ) -> None:
        """After `database_timeout_s` the database counts as away."""
        self.store = store
        self.handovers = handovers
        self.reconnect_window = reconnect_window
        self.spill = spill
        self.outage = DatabaseOutage(inserter.is_ready, self._on_database_back, clock)
        self.archive = archive
        self.presence = presence
        self.clock = clock
        self._database_timeout_s = database_timeout_s
        self._inserter = inserter
        self._writer: GroupCommit[JournalEntry] | None = None
        self._spiller = SpillJournal(spill)
        self._recorders: dict[tuple[str, str], CallRecorder] = {}
        self._opening: dict[tuple[str, str], asyncio.Task[CallRecorder]] = {}
        self._sealing: set[str] = set()
        self._seal_tasks: set[asyncio.Task[SealedFile]] = set()

    @property
    def live_recorders(self) -> list[CallRecorder]:
        return list(self._recorders.values())

    async def open(self, call: LiveCall) -> CallRecorder:
        """Begins a call. A repeated webhook gets the same recorder."""
        key = (call.source, call.sid)
        if recorder := self._recorders.get(key):
            return recorder
        if key not in self._opening:
            self._opening[key] = asyncio.create_task(self._open(call))
            self._opening[key].add_done_callback(lambda _: self._opening.pop(key))
        return await asyncio.shield(self._opening[key])

    def adopt(self, call: LiveCall) -> CallRecorder:
        """Goes on with a call that another process recorded until now."""
        recorder = CallRecorder(call, self._write)
        recorder.restore(self.store.list_entries(call.id))
        self._recorders[call.source, call.sid] = recorder
        return recorder

    def release(self, recorder: CallRecorder) -> None:
        """The call is sealed, or left to another process."""
        recorder.is_open = False
        key = (recorder.call.source, recorder.call.sid)
        if self._recorders.get(key) is recorder:
            del self._recorders[key]

    async def seal(
        self,
        recorder: CallRecorder,
        *,
        end_reason: str,
        ended_at: datetime | None = None,
    ) -> SealedFile:
        """Ends a call and seals it into the archive, even if the caller of this is cancelled.

        After an error it may be repeated; recovery repeats it, too.
        """
        ended_at = ended_at or self.clock.now()
        sealing = asyncio.create_task(self._seal(recorder, end_reason, ended_at))
        self._seal_tasks.add(sealing)
        sealing.add_done_callback(self._seal_tasks.discard)
        return await asyncio.shield(sealing)

    def ingest(self, call: Call, *, is_handed_in: bool = False) -> tuple[CallRow, bool]:
        """Returns whether it is new. One handed in soon after another joins its conversation."""
        if known := self.store.find(call.source, call.sid):
            return known, False
        window = self.reconnect_window if is_handed_in else None
        with self._mark_sealing(call.id):
            added = self.store.add_finished(
                call, to_entries(call), self.presence.process, window
            )
            if added is None:
                if known := self.store.find(call.source, call.sid):
                    return known, False
                raise RefusedInput("id", "belongs to another call")
            self._archive_and_finish(added)
        return self.store.get(call.id), True

    def add_addendum(self, row: CallRow, late: Sequence[Turn | Event]) -> None:
        """Stores what came after the seal."""
        if row.archive_name is None:
            raise CallNotLive(f"call {row.live.id} is not sealed yet")
        now = self.clock.now()
        addenda = self.archive.add_addendum(row.live.id, row.archive_name, late, now)
        fault_point("addendum.after_file")
        self.store.set_addenda_count(row.live, addenda, late, now)

    def is_abandoned(self, row: CallRow) -> bool:
        """Whether its process died, or its sealing failed here."""
        if row.owner == self.presence.process:
            return row.state == "sealing" and row.live.id not in self._sealing
        is_offered = self.handovers.list_offered([row.live.id])
        return not (self.is_elsewhere(row) or is_offered)

    def is_elsewhere(self, row: CallRow) -> bool:
        """Whether another process that is alive has the call."""
        is_ours = row.owner == self.presence.process
        return not is_ours and self.presence.is_alive(row.owner, self.clock.now())

    def seal_abandoned(self, row: CallRow) -> SealedFile | None:
        """Seals an abandoned call; returns None if another process did it first."""
        replayed = replay_entries(self.store.list_entries(row.live.id))
        call = to_finished_call(row.live, row.ended_at, row.end_reason, replayed)
        with self._mark_sealing(call.id):
            if not self._claim(call.id, row.owner, call.ended_at, call.end_reason):
                return None
            return self._archive_and_finish(call)

    async def close(self) -> None:
        await asyncio.gather(*self._seal_tasks, return_exceptions=True)
        await self.outage.close()
        await asyncio.to_thread(self._spiller.close)
        if self._writer is not None:
            await asyncio.to_thread(self._writer.close)

    async def _open(self, call: LiveCall) -> CallRecorder:
        telemetry.count("calls_started", source=call.source)
        recorder = CallRecorder(call, self._write)
        if not await self._open_row(call):
            await self._spiller.begin(recorder)
        self._recorders[call.source, call.sid] = recorder
        return recorder

    async def _open_row(self, call: LiveCall) -> bool:
        """False while the database is away."""
        open_row = partial(self.store.open, call, self.presence.process)
        try:
            is_new = await self.outage.ask(self._database_timeout_s, open_row)
        except AftercallError as error:
            if not error.retryable:
                raise
            self.outage.start(error)
            return False
        if not is_new:
            raise CallNotLive(f"{call.source} call {call.sid} is not live here")
        return True

    async def _write(self, recorder: CallRecorder, entry: JournalEntry) -> None:
        if not recorder.is_spilling and not self.outage.is_active:
            if self._writer is None:
                write, close = self._inserter.write, self._inserter.close
                self._writer = GroupCommit("journal", write, on_close=close)
            written = self._writer.submit(entry)
            timeout_s = self._database_timeout_s
            alarm = asyncio.ensure_future(self.clock.sleep(timeout_s))
            alarm.add_done_callback(partial(time_out_write, written, timeout_s))
            try:
                await written
            except AftercallError as error:
                if not error.retryable:
                    raise
                self.outage.start(error)
            finally:  # also when cancelled: the write has ended by then
                alarm.cancel()
                if written.exception() is None:
                    recorder.mark_written(entry)
            if written.exception() is None:
                return
        await self._spiller.begin(recorder)
        self._spiller.refuse_if_full()
        spilled = self._spiller.submit(entry)
        try:
            await spilled
        finally:
            if spilled.exception() is None:
                recorder.mark_written(entry)

    async def _on_database_back(self) -> None:
        """Writes live calls to the database again; imports and seals those that are over."""
        for recorder in self.live_recorders:
            async with recorder.lock:
                if recorder.is_spilling and recorder.is_open:
                    await self._return_to_database(recorder)
        await self._spiller.submit(retry_entry())
        if self.spill.has_waiting_entries:
            raise StorageFull("calls wait in memory for room on disk; free some space")
        await asyncio.to_thread(self._seal_spilled)

    async def _return_to_database(self, recorder: CallRecorder) -> None:
        """Stores what was spilled, unless another process has taken or sealed the call.

        Where it wrote words of its own in their place, ours become a leg when they are imported.
        """
        call, owner = recorder.call, self.presence.process
        known = await asyncio.to_thread(self.store.list_entries, call.id)
        if compare_entries(recorder.entries, known)[1]:
            await self._spill_end(recorder, INTERRUPTED, self.clock.now())
            return
        try:
            row = await asyncio.to_thread(
                self.store.import_spilled, call, recorder.entries, owner, is_live=True
            )
        except CallErased:
            # on another machine, which did not know that they were calling
            log.warning("a live call was erased; no more of it is kept", call=call.id)
            await self._spiller.submit(removal_entry(call.id))
            recorder.is_spilling = False
            self.release(recorder)
            return
        if row.state == "sealed":
            await asyncio.to_thread(_add_late_entries, self, row, recorder.entries)
        elif row.owner != owner:  # it was taken before the database went away
            await self._spill_end(recorder, INTERRUPTED, self.clock.now())
            return
        if row.live.sid != call.sid:
            del self._recorders[call.source, call.sid]
            recorder.call, recorder.is_second = row.live, True
            self._recorders[call.source, row.live.sid] = recorder
            log.warning("two processes answered one call", call=call.id)
        await self._spiller.submit(removal_entry(call.id))
        recorder.is_spilling = False

    def _seal_spilled(self) -> None:
        for call_id in import_spilled(self):
            row = self.store.get(call_id)
            if row.state != "sealed" and self.is_abandoned(row):
                self.seal_abandoned(row)

    async def _seal(
        self, recorder: CallRecorder, end_reason: str, ended_at: datetime
    ) -> SealedFile:
        await recorder.close()
        try:
            sealed = await asyncio.to_thread(
                self._seal_record, recorder, end_reason, ended_at
            )
        except DatabaseUnreachable as error:
            await self._spill_end(recorder, end_reason, ended_at)
            self.outage.start(error)
            raise
        except (StorageFull, CallNotLive):
            # no room in the archive: recovery seals the call; or another process has it
            self.release(recorder)
            raise
        self.release(recorder)
        return sealed

    async def _spill_end(
        self, recorder: CallRecorder, end_reason: str, ended_at: datetime
    ) -> None:
        """Writes the end of the call to its file, which is imported when the database is back."""
        await self._spiller.submit(call_entry(recorder.call))
        await self._spiller.submit(end_entry(recorder.call.id, ended_at, end_reason))
        self.release(recorder)

    def _seal_record(
        self, recorder: CallRecorder, end_reason: str, ended_at: datetime
    ) -> SealedFile:
        call = recorder.call
        if recorder.is_spilling or self.outage.is_active:
            raise DatabaseUnreachable(
                f"call {call.id} is kept on disk until the database is back"
            )
        with self._mark_sealing(call.id):
            if not self._claim(call.id, self.presence.process, ended_at, end_reason):
                raise CallNotLive(f"call {call.id} was sealed by another process")
            row = self.store.get(call.id)
            replayed = replay_entries(recorder.entries)
            live = row.live.model_copy(update={"metadata": call.metadata})
            finished = to_finished_call(live, row.ended_at, row.end_reason, replayed)
            return self._archive_and_finish(finished)

    def _claim(
        self, call_id: str, held_by: str, ended_at: datetime, end_reason: str
    ) -> bool:
        try:
            return self.store.claim(
                call_id,
                held_by=held_by,
                sealer=self.presence.process,
                ended_at=ended_at,
                end_reason=end_reason,
            )
        except StorageFull as error:  # a full database counts as away
            raise DatabaseUnreachable(
                f"the database has no room to store the end of call {call_id}"
            ) from error

    def _archive_and_finish(self, call: Call) -> SealedFile:
        with telemetry.timed("seal", call.id):
            sealed = self.archive.seal(call)
            fault_point("seal.before_finish")
            self.store.finish(
                call,
                archive_name=sealed.name,
                sha256=sealed.sha256,
                sealed_at=self.clock.now(),
            )
            fault_point("resume.after_keep")
        seconds = (call.ended_at - call.started_at).total_seconds()
        how = {"source": call.source, "end_reason": call.end_reason}
        telemetry.record("call", seconds, call.id, **how)
        return sealed

    @contextmanager
    def _mark_sealing(self, call_id: str) -> Iterator[None]:
        self._sealing.add(call_id)
        try:
            yield
        finally:
            self._sealing.discard(call_id)


def ingest_call(journal: Journal, call: Call) -> tuple[CallRow, bool]:
    """Seals a finished call, or refuses it whole. Turns behind those of a known one are added."""
    if call.ended_at > journal.clock.now() + MAX_CLOCK_SKEW:
        raise RefusedInput("ended_at", "lies in the future")
    row, is_new = journal.ingest(call, is_handed_in=True)
    if row.archive_name and len(call.turns) > row.turn_count:
        sealed, added = journal.archive.read(row.archive_name)
        if late := find_turns_behind(call.turns, (*sealed.turns, *added)):
            journal.add_addendum(row, late)
    return row, is_new


@dataclass(frozen=True)
class RecoveryResult:
    sealed: tuple[str, ...]
    failed: tuple[str, ...]


def recover(journal: Journal) -> RecoveryResult:
    """Seals what crashed processes left open. One call's fault does not stop the others."""
    sealed: list[str] = []
    failed: list[str] = []
    import_spilled(journal)
    for row in filter(journal.is_abandoned, journal.store.list_unsealed()):
        try:
            if journal.seal_abandoned(row) is not None:
                sealed.append(row.live.id)
                log.warning("recovered a call", call=row.live.id, was=row.state)
        except Exception as error:  # noqa: BLE001 - the edge of one call: the others are recovered
            failed.append(row.live.id)
            code = error_code(error)
            log.warning("cannot recover a call yet", call=row.live.id, error=code)
    for call_id in journal.store.list_late_calls():
        entries = journal.store.list_entries(call_id)
        _add_late_entries(journal, journal.store.get(call_id), entries)
        journal.store.delete_entries(call_id, len(entries))
    journal.presence.remove_dead(
        in_use={row.owner for row in journal.store.list_unsealed()}
    )
    return RecoveryResult(tuple(sealed), tuple(failed))


def import_spilled(journal: Journal) -> list[str]:
    """Imports the spill files of calls that are over and of dead processes.

    Recovery seals the calls. One call's fault does not stop the others.
    """
    imported: list[str] = []
    for path in journal.spill.list_files():
        with try_locked(path) as is_ours:
            if not is_ours:
                continue
            try:
                imported += _import_spilled_call(journal, path)
            except CallErased:
                log.warning("a spilled call has been erased since; its file is deleted")
            except AftercallError as error:
                log.warning(
                    "cannot import a spilled call", call=path.stem, error=error.code
                )
                continue
            journal.spill.remove(path)
    return imported


def _import_spilled_call(journal: Journal, path: Path) -> list[str]:
    spilled = read_spilled_call(path)
    if spilled is None:
        return []
    owner, call_id = journal.presence.process, spilled.call.id
    known = journal.store.find_unsealed(call_id)
    written = journal.store.list_entries(call_id) if known else ()
    other, is_taken = compare_entries(spilled.entries, written)
    if known is not None and (is_taken or journal.is_elsewhere(known)):
        _seal_as_leg(journal, known, other)
        return []
    entries = spilled.entries
    row = journal.store.import_spilled(spilled.call, entries, owner, spilled.ended)
    fault_point("spill.after_read")
    if row.state == "sealed":
        _add_late_entries(journal, row, entries)
    log.warning("imported a spilled call", call=row.live.id, entries=len(entries))
    return [row.live.id]


def _add_late_entries(
    journal: Journal, row: CallRow, entries: Sequence[JournalEntry]
) -> None:
    """Stores what the sealed call lacks of these entries as an addendum.

    Words in the place of others are of another process, and become a leg.
    """
    name = str(row.archive_name)
    sealed, added = journal.archive.read(name)
    replayed = replay_entries(entries)
    late = find_missing(replayed, [*sealed.turns, *added], sealed.events)
    if is_place_taken(late, sealed):
        _seal_as_leg(journal, row, late)
    elif late:
        journal.add_addendum(row, late)
        log.warning("added late entries", call=row.live.id, entries=len(late))
    elif added:  # written before a crash, and perhaps not counted
        addenda = len(journal.archive.list_files(name)) - 1
        journal.store.set_addenda_count(row.live, addenda, added, journal.clock.now())


def _seal_as_leg(journal: Journal, row: CallRow, words: Sequence[Turn | Event]) -> None:
    """Two processes recorded the call without knowing of each other."""
    if words:
        leg, _ = journal.ingest(make_leg(row.live, words))
        told = {"call": row.live.id, "leg": leg.live.id, "entries": len(words)}
        log.warning("another process recorded the call too", **told)
