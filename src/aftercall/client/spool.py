"""What an agent could not hand over yet, in one file a call, synced before it is acknowledged.

A file starts with the numbers of the last turn and event that the server has stored, in a line of
fixed length, and a line that says which call it is. Its other lines wait to be sent. The process
that runs the call holds the file's lock; an unlocked one was left by a process that died.
"""

import asyncio
import json
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from aftercall.disk import (
    DISK_FULL_ERRNOS,
    append_synced,
    create_once,
    lock_file,
    sync_folder,
)

COUNTS_BYTES = 64
MAX_AGE_S = 48 * 3600.0  # no call is longer
SUFFIX = ".call"
SENDER_FILE = "sender"


class CallInUse(Exception):
    """Another process, or another call of this one, has this source and sid."""


class SpoolFull(Exception):
    """There is no room for the spool, or it cannot be written: nothing was acknowledged."""


@dataclass
class UnsentItem:
    """Something to be stored: a turn, an event, a request, the end. `seq` is among its kind."""

    op: str
    seq: int
    fields: dict[str, Any] = field(repr=False)
    is_spooled: bool = False
    stored: asyncio.Future[str | None] | None = None
    """The server's answer when it has stored this; no answer if the connection is lost."""


class SpoolFile:
    """The file of one call. Not synced until something has to wait in it."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file = file
        self._lock = Lock()  # so that no thread writes to a file that was closed
        self._body_start = 0
        self._has_lines = False
        self.turns = self.events = 0
        """The last numbers that the server has stored, as far as this process knows."""
        self.info: dict[str, Any] = {}
        self.items: list[UnsentItem] = []
        self._read()

    def set_info(self, info: dict[str, Any]) -> None:
        """Says which call it is, unless the file says so already."""
        if not self.info:
            self.info = info
            line = json.dumps(info).encode() + b"\n"
            self._body_start = COUNTS_BYTES + len(line)
            os.pwrite(self._file, self._counts() + line, 0)

    def set_counts(self, turns: int, events: int) -> None:
        """Survives the end of the process, and need not survive the machine's: so no sync."""
        self.turns, self.events = max(turns, self.turns), max(events, self.events)
        os.pwrite(self._file, self._counts(), 0)

    def append(self, items: Sequence[UnsentItem]) -> None:
        """Returns when they are on disk; leaves the file as it was if that fails."""
        lines = [json.dumps([item.op, item.seq, item.fields]) for item in items]
        try:
            with self._lock:
                self._has_lines = True
                append_synced(
                    self._file, "".join(f"{line}\n" for line in lines).encode()
                )
                sync_folder(self._path.parent)
        except OSError as error:
            is_full = error.errno in DISK_FULL_ERRNOS
            cause = (
                "has no room" if is_full else f"cannot be written ({error.strerror})"
            )
            raise SpoolFull(f"the spool in {self._path.parent} {cause}") from error
        for item in items:
            item.is_spooled = True

    def clear(self) -> None:
        """Everything was stored by the server. A crash before it sends repeats, which are known."""
        if self._has_lines:
            os.ftruncate(self._file, self._body_start)
            self._has_lines = False

    def remove(self) -> None:
        with suppress(FileNotFoundError):
            self._path.unlink()
        self.close()

    def refuse(self) -> None:
        """The server refuses the call: the file is kept aside for a person to look at."""
        self._path.replace(self._path.with_suffix(".refused"))
        self.close()

    def close(self) -> None:
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def _counts(self) -> bytes:
        text = f'{{"turns": {self.turns}, "events": {self.events}}}'
        return text.ljust(COUNTS_BYTES - 1).encode() + b"\n"

    def _read(self) -> None:
        """Takes up what a process before this one could not send."""
        raw = os.pread(self._file, os.fstat(self._file).st_size, 0)
        whole, _, cut = raw.rpartition(b"\n")  # a line cut off was never acknowledged
        lines = whole.split(b"\n") if whole else []
        if len(lines) < 2:
            os.ftruncate(self._file, 0)
            return
        counts = json.loads(lines[0])
        self.info = json.loads(lines[1])
        self.turns = counts["turns"]
        self.events = counts["events"]
        self._body_start = COUNTS_BYTES + len(lines[1]) + 1
        self._has_lines = len(lines) > 2
        for line in lines[2:]:
            op, seq, fields = json.loads(line)
            self.items.append(UnsentItem(op, seq, fields, is_spooled=True))
        if cut:
            os.ftruncate(self._file, len(whole) + 1)


class Spool:
    """The folder of these files, for the processes of one agent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_once(folder / SENDER_FILE, secrets.token_urlsafe(16).encode())
        self.sender = (folder / SENDER_FILE).read_text().strip()
        """Names this agent to the server, also after a restart."""

    def open(self, source: str, sid: str) -> SpoolFile:
        name = sha256(f"{source}\0{sid}".encode()).hexdigest()[:40]
        opened = self._open(self._folder / f"{name}{SUFFIX}", os.O_CREAT)
        if opened is None:
            raise CallInUse(f"{source} call {sid} is running already")
        return opened

    def open_leftovers(self) -> Iterator[SpoolFile]:
        """Files of processes that died with something unsent.

        One without is left for its agent to come back to, and removed in time.
        """
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            with suppress(FileNotFoundError):
                is_old = time.time() - path.stat().st_mtime > MAX_AGE_S
                if not is_old and path.read_bytes().count(b"\n") <= 2:
                    continue
                opened = self._open(path)
                if opened is not None and opened.items:
                    yield opened
                elif opened is not None:
                    opened.remove()

    def _open(self, path: Path, flags: int = 0) -> SpoolFile | None:
        """None if another process has it, or has removed it meanwhile."""
        file = os.open(path, os.O_RDWR | flags, 0o600)
        if lock_file(file, wait=False) and _is_at(path, file):
            return SpoolFile(path, file)
        os.close(file)
        return None


def _is_at(path: Path, file: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(file).st_ino
    except FileNotFoundError:
        return False
