"""One writer at a time for each file, across threads and processes."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aftercall.errors import WorkspaceBusy

FOLDER = ".aftercall"
PATIENCE_S = 10.0
_PAUSE_S = 0.005


@contextmanager
def locked(path: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Hold the lock of `path`, a file that may be missing in a folder that is there. Not re-entrant."""
    lock = _lock_file(path)
    deadline = time.monotonic() + patience_s
    while (held := _try_lock(lock)) is None:
        if time.monotonic() > deadline:
            raise WorkspaceBusy(f"{path}: another process has held its lock for {patience_s:g} s")
        time.sleep(_PAUSE_S)
    try:
        yield
    finally:
        os.close(held)


def _lock_file(path: Path) -> Path:
    folder = path.parent / FOLDER
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n", "utf-8")  # many a workspace is a git repository
    return folder / f"{path.name}.lock"


def _try_lock(lock: Path) -> int | None:
    """The descriptor that holds the lock. Each call opens anew: flock belongs to the open file, so threads exclude each other too."""
    held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_still_there(lock, held):
            return held
    except BlockingIOError:
        pass
    except BaseException:
        os.close(held)
        raise
    os.close(held)
    return None


def _is_still_there(lock: Path, held: int) -> bool:
    """A lock file that somebody removed meanwhile locks nobody out."""
    with suppress(FileNotFoundError):
        return os.path.samestat(lock.stat(), os.fstat(held))
    return False
