"""Where sealed files lie.

A local folder here; an object store can serve the same six verbs later.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Protocol

from aftercall.disk import sync_folder
from aftercall.errors import ArchiveError, NotFound, StorageFull
from aftercall.ids import new_id

CHAIN_FILE = "chain.jsonl"
_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_STALE_FILE_AGE_S = 3600


class ArchivePlace(Protocol):
    def create(self, name: str, data: bytes) -> bool:
        """Put a new file there, whole and on disk; False, and nothing changed, if the name is
        taken.
        """
        ...

    def read(self, name: str) -> bytes:
        """Raises NotFound."""
        ...

    def remove(self, name: str) -> None:
        """Take a file away for good; one that is not there is gone already."""
        ...

    def list_names(self) -> list[str]:
        """The sealed files, sorted."""
        ...

    def append_link(self, next_line: Callable[[bytes], bytes]) -> None:
        """Append a line to the chain; `next_line` is given the last one (empty at first).

        One at a time, on disk.
        """
        ...

    def read_chain(self) -> list[bytes]:
        """The chain, whole lines only."""
        ...


class ArchiveFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    def create(self, name: str, data: bytes) -> bool:
        """The name appears only when the bytes are on disk: a crash leaves a whole file or none."""
        target = self.path / name
        if target.exists():
            return False
        temporary = self.path / f".{new_id()}.tmp"
        with _translated_disk_errors(name):
            try:
                _write_new(temporary, data)
                os.link(temporary, target)
            except FileExistsError:
                return False
            finally:
                temporary.unlink(missing_ok=True)
            sync_folder(self.path)
        return True

    def read(self, name: str) -> bytes:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"the archive has no file {name}") from None

    def remove(self, name: str) -> None:
        with _translated_disk_errors(name):
            (self.path / name).unlink(missing_ok=True)
            sync_folder(self.path)

    def list_names(self) -> list[str]:
        return sorted(
            entry.name
            for entry in os.scandir(self.path)
            if entry.name.endswith(".json") and not entry.name.startswith(".")
        )

    def append_link(self, next_line: Callable[[bytes], bytes]) -> None:
        with _translated_disk_errors(CHAIN_FILE), self._locked_chain() as chain:
            end = os.fstat(chain).st_size
            last, whole = _last_line(chain, end)
            if whole != end:
                os.ftruncate(chain, whole)  # a line cut off by a crash: its sealing never returned
            line = next_line(last) + b"\n"
            try:
                _write_all(chain, line, whole)
                os.fsync(chain)
            except OSError:
                os.ftruncate(chain, whole)
                raise

    def read_chain(self) -> list[bytes]:
        try:
            whole, _, _ = (self.path / CHAIN_FILE).read_bytes().rpartition(b"\n")
        except FileNotFoundError:
            return []
        return whole.split(b"\n") if whole else []

    def remove_stale_files(self) -> None:
        """Remove what crashed writers left behind under temporary names."""
        for leftover in self.path.glob(".*.tmp"):
            try:
                if leftover.stat().st_mtime < time() - _STALE_FILE_AGE_S:
                    leftover.unlink()
            except FileNotFoundError:
                continue

    @contextmanager
    def _locked_chain(self) -> Iterator[int]:
        chain = os.open(self.path / CHAIN_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(chain, fcntl.LOCK_EX)
            if os.fstat(chain).st_size == 0:
                sync_folder(self.path)  # the chain's own name must survive, too
            yield chain
        finally:
            os.close(chain)


@contextmanager
def _translated_disk_errors(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL_ERRNOS:
            raise StorageFull(
                f"no room to write {name} in the archive; free some space, nothing written is "
                "harmed"
            ) from error
        raise ArchiveError(f"{name} cannot be written in the archive ({error.strerror})") from error


def _write_new(path: Path, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        _write_all(file, data, 0)
        os.fsync(file)
    finally:
        os.close(file)


def _write_all(file: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, offset)
        view = view[written:]
        offset += written


def _last_line(file: int, end: int) -> tuple[bytes, int]:
    """The last whole line, and where whole lines end."""
    size = 4096
    while True:
        start = max(0, end - size)
        tail = os.pread(file, end - start, start)
        whole, newline, _ = tail.rpartition(b"\n")
        if newline and (b"\n" in whole or start == 0):
            return whole.rpartition(b"\n")[2], start + len(whole) + 1
        if start == 0:
            return b"", 0
        size *= 4
