"""Calls on disk while the database is away: one file a call, one synced line an entry.

The process that records a call holds the lock of its file. An unlocked file is left over from a
call that is over or from a process that died, and is imported when the database is back. Where two
processes record one call, on one home or on two, each has a file of its own.

While the disk is full, lines wait in memory, and are written first when there is room.
"""

import asyncio
import json
import os
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from aftercall.clock import Clock, attempt, format_instant, is_done_within
from aftercall.disk import (
    append_synced,
    create_locked,
    lock_file,
    sync_folder,
    try_locked,
)
from aftercall.errors import (
    AftercallError,
    DatabaseUnreachable,
    StorageFull,
    error_code,
)
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.journal.recorder import CallRecorder, GroupCommit, PendingWrite
from aftercall.journal.replay import JournalEntry
from aftercall.log import get_logger
from aftercall.model.calls import LiveCall

T = TypeVar("T")
CALL = "call"
END = "end"
"""Kinds of lines besides turns and events: who is calling, and how the call ended."""
GONE = "gone"
RETRY = "retry"
"""Kinds of entries that are no lines: delete the file; write what waits in memory."""
FILE_SUFFIX = ".jsonl"
MAX_WAITING_BYTES = 4 * 1024 * 1024  # about twenty thousand turns
RETRY_INTERVAL_S = 1.0
CHECK_INTERVAL_S = 3.0
CHECK_TIMEOUT_S = 2.0
"""After so long without any work done, the database is asked, and must answer in so long."""

log = get_logger("spill")


@dataclass(frozen=True)
class SpilledCall:
    """A call as its file tells it."""

    call: LiveCall
    entries: tuple[JournalEntry, ...]
    ended: tuple[datetime, str] | None


def call_entry(call: LiveCall) -> JournalEntry:
    return JournalEntry(call.id, CALL, 0, call.model_dump_json())


def end_entry(call_id: str, ended_at: datetime, end_reason: str) -> JournalEntry:
    return JournalEntry(
        call_id, END, 0, json.dumps([format_instant(ended_at), end_reason])
    )


def removal_entry(call_id: str) -> JournalEntry:
    return JournalEntry(call_id, GONE, 0, "")


def retry_entry() -> JournalEntry:
    return JournalEntry("", RETRY, 0, "")


class SpillFolder:
    """Files that hold calls while the database is away."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._locked_files: dict[str, tuple[int, Path]] = {}
        self._waiting: deque[JournalEntry] = deque()
        self._waiting_bytes = 0

    @property
    def has_waiting_entries(self) -> bool:
        """Whether entries wait in memory for room on disk."""
        return bool(self._waiting)

    @property
    def is_memory_full(self) -> bool:
        return self._waiting_bytes >= MAX_WAITING_BYTES

    def write(self, entries: Sequence[JournalEntry]) -> None:
        """Returns when the entries are on disk, or in memory while the disk is full.

        For one thread. The first entry of a call creates its file, its end unlocks it.
        """
        for entry in entries:
            if entry.kind == GONE:
                self._drop_waiting(entry.call_id)
            if entry.kind != RETRY:
                self._waiting.append(entry)
                self._waiting_bytes += len(entry.body)
        self._write_waiting()

    def close(self) -> None:
        """Unlocks every file; the next start imports them."""
        self._write_waiting()
        if self._waiting:
            log.error(
                "the disk is still full; words are lost", entries=len(self._waiting)
            )
        for call_id in list(self._locked_files):
            self._release(call_id)

    def list_files(self) -> list[Path]:
        return sorted(self.path.glob(f"*{FILE_SUFFIX}"))

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        sync_folder(self.path)

    def erase_caller(self, number: str) -> bool:
        """Deletes the files of this caller; returns False if one of their calls is live."""
        is_done = True
        for path in self.list_files():
            with try_locked(path) as is_ours:
                found = read_spilled_call(path)
                if found is not None and found.call.caller == number:
                    if is_ours:
                        self.remove(path)
                    is_done = is_done and is_ours
        return is_done

    def _write_waiting(self) -> None:
        while self._waiting:
            try:
                self._write(self._waiting[0])
            except OSError as error:
                if len(self._waiting) == 1:
                    log.error(
                        "the disk cannot be written; calls are kept in memory",
                        reason=error.strerror,
                    )
                return
            self._waiting_bytes -= len(self._waiting.popleft().body)

    def _drop_waiting(self, call_id: str) -> None:
        self._waiting = deque(
            entry for entry in self._waiting if entry.call_id != call_id
        )
        self._waiting_bytes = sum(len(entry.body) for entry in self._waiting)

    def _write(self, entry: JournalEntry) -> None:
        if entry.kind == GONE:
            self.remove(self._release(entry.call_id))
            return
        if entry.call_id not in self._locked_files:
            self._open_locked(entry.call_id)
        line = json.dumps([entry.kind, entry.seq, entry.body]).encode() + b"\n"
        append_synced(self._locked_files[entry.call_id][0], line)
        fault_point("spill.after_line")
        if entry.kind == END:
            self._release(entry.call_id)

    def _open_locked(self, call_id: str) -> None:
        """Another process on this home may hold a file of the same call."""
        self.path.mkdir(parents=True, exist_ok=True)
        path = self._path(call_id)
        if path.exists():  # after its end
            file = os.open(path, os.O_RDWR)
            if lock_file(file, wait=False):
                self._locked_files[call_id] = (file, path)
                return
            os.close(file)
            path = self._path(f"{call_id}.{new_id()}")
        self._locked_files[call_id] = (create_locked(path), path)

    def _release(self, call_id: str) -> Path:
        if call_id not in self._locked_files:
            return self._path(call_id)
        file, path = self._locked_files.pop(call_id)
        os.close(file)
        return path

    def _path(self, call_id: str) -> Path:
        return self.path / f"{call_id}{FILE_SUFFIX}"


class SpillJournal:
    """Entries of live calls, written to their files in a thread that starts with the first."""

    def __init__(self, folder: SpillFolder) -> None:
        self._folder = folder
        self._writer: GroupCommit[JournalEntry] | None = None

    async def begin(self, recorder: CallRecorder) -> None:
        """From here on the entries of the call go to a file."""
        if not recorder.is_spilling:
            self.refuse_if_full()
            await self.submit(call_entry(recorder.call))
            recorder.is_spilling = True

    def refuse_if_full(self) -> None:
        if self._folder.is_memory_full:
            raise StorageFull(
                "the disk has no room, and too much waits in memory for it; free some space"
            )

    def submit(self, entry: JournalEntry) -> PendingWrite:
        if self._writer is None:
            folder = self._folder
            self._writer = GroupCommit("spill", folder.write, on_close=folder.close)
        return self._writer.submit(entry)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def read_spilled_call(path: Path) -> SpilledCall | None:
    """None if the file is gone or has no whole line. A line cut off was never acknowledged."""
    try:
        whole, _, _ = path.read_bytes().rpartition(b"\n")
    except FileNotFoundError:
        return None
    lines = [JournalEntry("", *json.loads(line)) for line in whole.splitlines()]
    calls = [
        LiveCall.model_validate_json(line.body) for line in lines if line.kind == CALL
    ]
    if not calls:
        return None
    lines = [line._replace(call_id=calls[-1].id) for line in lines]
    ends = [json.loads(line.body) for line in lines if line.kind == END]
    ended = (datetime.fromisoformat(ends[0][0]), str(ends[0][1])) if ends else None
    entries = tuple(line for line in lines if line.kind not in (CALL, END))
    return SpilledCall(calls[-1], entries, ended)


def _ignore(asking: asyncio.Future[Any]) -> None:
    """Its error, too: the outage was told already."""
    if not asking.cancelled():
        asking.exception()


class DatabaseOutage:
    """Whether the database is away; polls it until it is back."""

    def __init__(
        self,
        is_ready: Callable[[], bool],
        on_database_back: Callable[[], Awaitable[None]],
        clock: Clock,
    ) -> None:
        """`on_database_back` is repeated until it succeeds."""
        self.is_active = False
        self.reason: AftercallError | None = None
        self._is_ready = is_ready
        self._on_database_back = on_database_back
        self._clock = clock
        self._watch: asyncio.Task[None] | None = None
        self._work_done = 0

    def start(self, error: AftercallError) -> None:
        if not self.is_active:
            log.error(
                "the database is away; calls are kept on disk until it is back",
                error=error.code,
                reason=str(error),
            )
        self.is_active = True
        self.reason = error
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._wait_for_database())

    async def ask(
        self,
        seconds: float,
        job: Callable[[], T],
        on_late: Callable[[asyncio.Task[T]], object] = _ignore,
    ) -> T:
        """What the database answers a live call. If it is late or away, the outage begins.

        While it lasts, nobody waits for an answer. `on_late` gets one that came too late.
        """
        self._refuse_if_active()
        asking = asyncio.create_task(asyncio.to_thread(job))
        waiting = asyncio.shield(asking)
        try:
            return await attempt(self._clock, seconds, waiting, DatabaseUnreachable)
        except DatabaseUnreachable as error:
            asking.add_done_callback(on_late)
            self.start(error)
            raise

    async def watch(self, start: Callable[[], Awaitable[T]]) -> T:
        """The result of work that takes its time, but not longer than the database is there.

        While other work is done, it is. Work that is given up may be done later all the same.
        """
        self._refuse_if_active()
        work = asyncio.ensure_future(start())
        work.add_done_callback(self._count_work)
        while True:
            done_before = self._work_done
            if await is_done_within(self._clock, CHECK_INTERVAL_S, work):
                return work.result()
            if self._work_done == done_before:
                await self.ask(CHECK_TIMEOUT_S, self._is_ready)

    async def close(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    def _count_work(self, work: asyncio.Future[Any]) -> None:
        self._work_done += 1
        _ignore(work)

    def _refuse_if_active(self) -> None:
        if self.is_active:
            raise self.reason or DatabaseUnreachable("the database is away")

    async def _wait_for_database(self) -> None:
        logged_code = ""
        while True:
            await self._clock.sleep(RETRY_INTERVAL_S)
            try:
                if not await asyncio.to_thread(self._is_ready):
                    continue
                self.is_active = False  # first: new entries go to the database again
                await self._on_database_back()
            except Exception as error:  # noqa: BLE001 - if it stopped, calls would stay on disk
                self.is_active = True
                code = error_code(error)
                if code != logged_code:
                    log.warning("the database is not back yet", error=code)
                logged_code = code
            if not self.is_active:
                self.reason = None
                log.warning("the database is back")
                return
