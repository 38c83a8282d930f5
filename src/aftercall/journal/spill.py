"""Calls on disk while the database is away: one file a call, one line an entry, each synced before anything rests on it.

Whoever keeps the call holds a lock on its file, and the system lets go of it however the process ends. A file that nobody
holds is left over, and is taken up into the journal when the database is back (`take_up.py`).

While the disk takes nothing, lines wait in memory, in their order, and are written before any other once there is room.
"""

import errno
import fcntl
import json
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from aftercall.disk import sync_folder
from aftercall.faults import reach
from aftercall.journal.store import Entry
from aftercall.log import get_logger
from aftercall.model.calls import LiveCall
from aftercall.model.instants import format_instant

CALL, END, GONE, RETRY = "call", "end", "gone", "retry"
"""Kinds of lines besides turns and events: who is calling, how it ended. The others are no lines: the file has
served, and: write what waits in memory."""
SUFFIX = ".jsonl"
MAX_WAITING_BYTES = 4 * 1024 * 1024  # about twenty thousand turns; a full disk must not fill the memory, too

log = get_logger("spill")


@dataclass(frozen=True)
class Spilled:
    """What a file holds of its call."""

    call: LiveCall
    entries: tuple[Entry, ...]
    ended: tuple[datetime, str] | None


def call_entry(call: LiveCall) -> Entry:
    return Entry(call.id, CALL, 0, call.model_dump_json())


def end_entry(call_id: str, ended_at: datetime, end_reason: str) -> Entry:
    return Entry(call_id, END, 0, json.dumps([format_instant(ended_at), end_reason]))


def gone_entry(call_id: str) -> Entry:
    return Entry(call_id, GONE, 0, "")


def retry_entry() -> Entry:
    return Entry("", RETRY, 0, "")


class SpillFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: dict[str, int] = {}
        self._waiting: deque[Entry] = deque()
        self._waiting_bytes = 0

    @property
    def is_waiting(self) -> bool:
        """Whether the disk has not taken everything yet."""
        return bool(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether not even the memory has room for more."""
        return self._waiting_bytes >= MAX_WAITING_BYTES

    def write(self, entries: Sequence[Entry]) -> None:
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
        for call_id in list(self._held):
            self._let_go(call_id)

    def files(self) -> list[Path]:
        return sorted(self.path.glob(f"*{SUFFIX}"))

    @contextmanager
    def taken(self, path: Path) -> Iterator[bool]:
        """Whether the file is ours alone now: nobody keeps its call, and nobody else is taking it up."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            yield False
            return
        try:
            yield _is_free(file) and path.exists()
        finally:
            os.close(file)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        sync_folder(self.path)

    def forget_caller(self, number: str) -> bool:
        """Erase what is left of this caller; False if one of their calls is going on."""
        is_done = True
        for path in self.files():
            with self.taken(path) as is_ours:
                found = read(path)
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
                    log.error("the disk takes nothing; calls are kept in memory", reason=error.strerror)  # noqa: TRY400 - no trace: speech
                return
            self._waiting_bytes -= len(self._waiting.popleft().body)

    def _drop_waiting(self, call_id: str) -> None:
        self._waiting = deque(entry for entry in self._waiting if entry.call_id != call_id)
        self._waiting_bytes = sum(len(entry.body) for entry in self._waiting)

    def _write(self, entry: Entry) -> None:
        if entry.kind == GONE:
            self._let_go(entry.call_id)
            self.remove(self._path(entry.call_id))
            return
        if entry.call_id not in self._held:
            self._make(entry.call_id)
        _append(self._held[entry.call_id], _encode(entry))
        reach("spill.after_line")
        if entry.kind == END:
            self._let_go(entry.call_id)

    def _make(self, call_id: str) -> None:
        """Locked before it has its name: nobody may take it for left over."""
        self.path.mkdir(parents=True, exist_ok=True)
        path = self._path(call_id)
        if path.exists():  # let go of before, at its end
            self._held[call_id] = _lock(path)
            return
        starting = path.with_suffix(".starting")
        file = _lock(starting)
        starting.rename(path)
        sync_folder(self.path)
        self._held[call_id] = file

    def _let_go(self, call_id: str) -> None:
        with suppress(KeyError):
            os.close(self._held.pop(call_id))

    def _path(self, call_id: str) -> Path:
        return self.path / f"{call_id}{SUFFIX}"


def read(path: Path) -> Spilled | None:
    """None if not even its first line was written, or it is gone. A line that was cut off was never acknowledged."""
    try:
        whole, _, _ = path.read_bytes().rpartition(b"\n")
    except FileNotFoundError:
        return None
    lines = [Entry(path.stem, *json.loads(line)) for line in whole.splitlines()]
    calls = [LiveCall.model_validate_json(line.body) for line in lines if line.kind == CALL]
    if not calls:
        return None
    ends = [json.loads(line.body) for line in lines if line.kind == END]
    ended = (datetime.fromisoformat(ends[0][0]), str(ends[0][1])) if ends else None
    return Spilled(calls[-1], tuple(line for line in lines if line.kind not in (CALL, END)), ended)


def _encode(entry: Entry) -> bytes:
    return json.dumps([entry.kind, entry.seq, entry.body]).encode() + b"\n"


def _append(file: int, line: bytes) -> None:
    """Whole or not at all, unless the power goes: then it is cut off, and nobody was told that it is there."""
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


def _is_free(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
