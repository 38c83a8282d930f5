"""Calls on disk while the database is away: one file a call, one line an entry, each synced
before anything rests on it.

Whoever keeps the call holds a lock on its file, and the system lets go of it however the
process ends. A file that nobody holds is left over, and is taken up into the journal when the
database is back (`take_up.py`).

While the disk takes nothing, lines wait in memory, in their order, and are written before any
other once there is room.
"""

import asyncio
import errno
import fcntl
import json
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from aftercall.clock import Clock, format_instant
from aftercall.disk import sync_folder
from aftercall.errors import AftercallError, CallErased, error_code
from aftercall.faults import fault_point
from aftercall.journal.archive import Archive
from aftercall.journal.replay import replay_entries
from aftercall.journal.store import CallRow, CallStore, JournalEntry
from aftercall.log import get_logger
from aftercall.model.calls import LiveCall
from aftercall.model.turns import Event, Turn

CALL, END, GONE, RETRY = "call", "end", "gone", "retry"
"""Kinds of lines besides turns and events: who is calling, how it ended.

The others are no lines: the file has
served, and: write what waits in memory.
"""
FILE_SUFFIX = ".jsonl"
MAX_WAITING_BYTES = (
    4 * 1024 * 1024
)  # about twenty thousand turns; a full disk must not fill the memory, too

log = get_logger("spill")


@dataclass(frozen=True)
class SpilledCall:
    """What a file holds of its call."""

    call: LiveCall
    entries: tuple[JournalEntry, ...]
    ended: tuple[datetime, str] | None


def call_entry(call: LiveCall) -> JournalEntry:
    return JournalEntry(call.id, CALL, 0, call.model_dump_json())


def end_entry(call_id: str, ended_at: datetime, end_reason: str) -> JournalEntry:
    return JournalEntry(call_id, END, 0, json.dumps([format_instant(ended_at), end_reason]))


def removal_entry(call_id: str) -> JournalEntry:
    return JournalEntry(call_id, GONE, 0, "")


def retry_entry() -> JournalEntry:
    return JournalEntry("", RETRY, 0, "")


class SpillFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._locked_files: dict[str, int] = {}
        self._waiting: deque[JournalEntry] = deque()
        self._waiting_bytes = 0

    @property
    def has_waiting_entries(self) -> bool:
        """Whether the disk has not taken everything yet."""
        return bool(self._waiting)

    @property
    def is_memory_full(self) -> bool:
        """Whether not even the memory has room for more."""
        return self._waiting_bytes >= MAX_WAITING_BYTES

    def write(self, entries: Sequence[JournalEntry]) -> None:
        """On disk when it returns, or in memory while the disk takes nothing; for one thread.

        A call's first line makes its file, its end lets go of it.
        """
        for entry in entries:
            if entry.kind == GONE:
                self._drop_waiting(entry.call_id)
            if entry.kind != RETRY:
                self._waiting.append(entry)
                self._waiting_bytes += len(entry.body)
        self._write_waiting()

    def close(self) -> None:
        """Let go of every file; what is in them is for the next start."""
        self._write_waiting()
        if self._waiting:
            log.error("no room on disk until the end; words are lost", entries=len(self._waiting))
        for call_id in list(self._locked_files):
            self._release(call_id)

    def list_files(self) -> list[Path]:
        return sorted(self.path.glob(f"*{FILE_SUFFIX}"))

    @contextmanager
    def try_lock(self, path: Path) -> Iterator[bool]:
        """Whether the file is ours alone now: nobody keeps its call, and nobody else is taking
        it up.
        """
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            yield False
            return
        try:
            yield _try_flock(file) and path.exists()
        finally:
            os.close(file)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        sync_folder(self.path)

    def erase_caller(self, number: str) -> bool:
        """Erase what is left of this caller; False if one of their calls is going on."""
        is_done = True
        for path in self.list_files():
            with self.try_lock(path) as is_ours:
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
                        "the disk takes nothing; calls are kept in memory", reason=error.strerror
                    )
                return
            self._waiting_bytes -= len(self._waiting.popleft().body)

    def _drop_waiting(self, call_id: str) -> None:
        self._waiting = deque(entry for entry in self._waiting if entry.call_id != call_id)
        self._waiting_bytes = sum(len(entry.body) for entry in self._waiting)

    def _write(self, entry: JournalEntry) -> None:
        if entry.kind == GONE:
            self._release(entry.call_id)
            self.remove(self._path(entry.call_id))
            return
        if entry.call_id not in self._locked_files:
            self._open_locked(entry.call_id)
        _append(self._locked_files[entry.call_id], _encode(entry))
        fault_point("spill.after_line")
        if entry.kind == END:
            self._release(entry.call_id)

    def _open_locked(self, call_id: str) -> None:
        """Locked before it has its name: nobody may take it for left over."""
        self.path.mkdir(parents=True, exist_ok=True)
        path = self._path(call_id)
        if path.exists():  # let go of before, at its end
            self._locked_files[call_id] = _lock(path)
            return
        starting = path.with_suffix(".starting")
        file = _lock(starting)
        starting.rename(path)
        sync_folder(self.path)
        self._locked_files[call_id] = file

    def _release(self, call_id: str) -> None:
        with suppress(KeyError):
            os.close(self._locked_files.pop(call_id))

    def _path(self, call_id: str) -> Path:
        return self.path / f"{call_id}{FILE_SUFFIX}"


def read_spilled_call(path: Path) -> SpilledCall | None:
    """None if not even its first line was written, or it is gone.

    A line that was cut off was never acknowledged.
    """
    try:
        whole, _, _ = path.read_bytes().rpartition(b"\n")
    except FileNotFoundError:
        return None
    lines = [JournalEntry(path.stem, *json.loads(line)) for line in whole.splitlines()]
    calls = [LiveCall.model_validate_json(line.body) for line in lines if line.kind == CALL]
    if not calls:
        return None
    ends = [json.loads(line.body) for line in lines if line.kind == END]
    ended = (datetime.fromisoformat(ends[0][0]), str(ends[0][1])) if ends else None
    return SpilledCall(
        calls[-1], tuple(line for line in lines if line.kind not in (CALL, END)), ended
    )


def _encode(entry: JournalEntry) -> bytes:
    return json.dumps([entry.kind, entry.seq, entry.body]).encode() + b"\n"


def _append(file: int, line: bytes) -> None:
    """Whole or not at all, unless the power goes: then it is cut off, and nobody was told that
    it is there.
    """
    end = os.fstat(file).st_size
    try:
        if os.write(file, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # noqa: TRY301 - cut off below like any other failure
        os.fsync(file)
    except OSError:
        os.ftruncate(file, end)
        raise


def _lock(path: Path) -> int:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def _try_flock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


RETRY_INTERVAL_S = 1.0


class DatabaseOutage:
    def __init__(
        self,
        is_ready: Callable[[], bool],
        on_database_back: Callable[[], Awaitable[None]],
        clock: Clock,
    ) -> None:
        """`return_home` brings everything back that was kept elsewhere meanwhile; it is tried
        until it succeeds.
        """
        self.is_active = False
        self.reason: AftercallError | None = None
        """Why it is on."""
        self._is_ready = is_ready
        self._on_database_back = on_database_back
        self._clock = clock
        self._watch: asyncio.Task[None] | None = None

    def start(self, error: AftercallError) -> None:
        if not self.is_active:
            log.error(
                "the database is away; calls are kept on disk until it is back",
                error=error.code,
                reason=str(error),
            )
        self.is_active, self.reason = True, error
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._wait_for_database())

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    async def _wait_for_database(self) -> None:
        told = ""
        while True:
            await self._clock.sleep(RETRY_INTERVAL_S)
            try:
                if not await asyncio.to_thread(self._is_ready):
                    continue
                self.is_active = (
                    False  # first: what is written from here on goes to the database again
                )
                await self._on_database_back()
            except Exception as error:  # noqa: BLE001 - the edge of the watch: one that stopped would leave calls on disk for ever
                self.is_active = True
                code = error_code(error)
                if code != told:  # it is tried every second, and told once
                    log.warning("the database is not back yet", error=code)
                told = code
            if not self.is_active:
                self.reason = None
                log.warning("the database is back")
                return


def import_spilled_calls(
    spill: SpillFolder, store: CallStore, archive: Archive, owner: str, now: datetime
) -> list[str]:
    """Every file that nobody holds: its call is in the journal afterwards, for recovery to
    seal. One's trouble stops no other.
    """
    taken: list[str] = []
    for path in spill.list_files():
        with spill.try_lock(path) as is_ours:
            if not is_ours:
                continue
            try:
                taken += _import_spilled_call(path, store, archive, owner, now)
            except CallErased:
                log.warning("a call that was kept on disk has been erased since; its file goes")
            except AftercallError as error:
                log.warning(
                    "a call that was kept on disk cannot be taken up yet",
                    call=path.stem,
                    error=error.code,
                )
                continue
            spill.remove(path)
    return taken


def _import_spilled_call(
    path: Path, store: CallStore, archive: Archive, owner: str, now: datetime
) -> list[str]:
    spilled = read_spilled_call(path)
    if spilled is None:
        return []
    row = store.import_spilled(spilled.call, spilled.entries, owner, spilled.ended)
    fault_point("spill.after_take_up")
    if row.state == "sealed" and (late := find_late_items(archive, row, spilled.entries)):
        store.set_addenda_count(
            row.live.id, archive.add_addendum(row.live.id, str(row.archive_name), late, now)
        )
    log.warning(
        "took up a call that was kept on disk", call=row.live.id, entries=len(spilled.entries)
    )
    return [row.live.id]


def find_late_items(
    archive: Archive, row: CallRow, entries: Sequence[JournalEntry]
) -> list[Turn | Event]:
    """What the sealed call lacks of these: somebody sealed it while its own process did not
    know, or could not.
    """
    sealed, _ = archive.read(str(row.archive_name))
    folded = replay_entries(entries)
    there = {(event.kind, event.at) for event in sealed.events}
    return [
        *(turn for turn in folded.turns if turn.seq > len(sealed.turns)),
        *(event for event in folded.events if (event.kind, event.at) not in there),
    ]
