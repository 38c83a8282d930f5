"""Reading and changing files that other programs may change at the same time.

A change is whole or not there at all: temporary file, fsync, rename. Bytes that are not UTF-8
survive the round trip. Nothing here waits on a database or a network; everything blocks, so an
event loop calls it in a thread.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from aftercall import faults
from aftercall.disk import sync_folder
from aftercall.errors import (
    FileTooLarge,
    WorkspaceBusy,
    WorkspaceError,
    WorkspaceFull,
    WorkspaceMissing,
    WorkspaceReadOnly,
)

LOCK_FOLDER = ".aftercall"
LOCK_TIMEOUT_S = 10.0
_LOCK_POLL_INTERVAL_S = 0.005


@contextmanager
def locked(path: Path, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the lock of `path`, a file that may be missing in a folder that is there.

    Not re-entrant.
    """
    lock = _lock_file(path)
    deadline = time.monotonic() + timeout_s
    while (held := _try_lock(lock)) is None:
        if time.monotonic() > deadline:
            raise WorkspaceBusy(f"{path}: another process has held its lock for {timeout_s:g} s")
        time.sleep(_LOCK_POLL_INTERVAL_S)
    try:
        yield
    finally:
        os.close(held)


def _lock_file(path: Path) -> Path:
    folder = path.parent / LOCK_FOLDER
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n", "utf-8")  # many a workspace is a git repository
    return folder / f"{path.name}.lock"


def _try_lock(lock: Path) -> int | None:
    """The descriptor that holds the lock.

    Each call opens anew: flock belongs to the open file, so threads exclude each other too.
    """
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


MAX_BYTES = 1_000_000
MAX_ATTEMPTS = 20

Change = Callable[[str | None], str | None]

_CAUSES: dict[int, tuple[type[WorkspaceError], str]] = {
    errno.EROFS: (WorkspaceReadOnly, "is on a read-only file system"),
    errno.EACCES: (WorkspaceReadOnly, "may not be changed or read by this user"),
    errno.EPERM: (WorkspaceReadOnly, "may not be changed by this user"),
    errno.ENOSPC: (WorkspaceFull, "cannot be written, the disk is full"),
    errno.EDQUOT: (WorkspaceFull, "cannot be written, the disk quota is used up"),
    errno.ENOENT: (WorkspaceMissing, "cannot be made, its folder is not there"),
    errno.ENOTDIR: (WorkspaceMissing, "cannot be made, a part of its path is a file"),
    errno.EEXIST: (WorkspaceMissing, "cannot be made, a file stands where its folder should be"),
}


def read(path: Path) -> str | None:
    """The text, or None where there is none: no file, or nothing but white space in it."""
    with _translated_errors(path):
        return _decode(path, _load(path))


def edit(path: Path, change: Change) -> bool:
    """Replace the text by what `change` makes of it; None or the same text leaves the file as
    it is.

    `change` may be called several times, each time with newer text, and must have no effect
    besides its answer. Says whether the file was written.
    """
    if not _differs(read(path), change):  # nothing to do makes nothing on the disk, not even a lock
        return False
    with _translated_errors(path), _opened(path) as target:
        for _ in range(MAX_ATTEMPTS):
            before = _load(target)
            text = _decode(target, before)
            after = change(text)
            if after is None or after == text or _encode(after) == before:
                return False
            if _swap(target, before, _encode(after)):
                return True
        raise _contended(path)


def write(path: Path, text: str, at: datetime) -> None:
    """Write `text`, whatever stood there, and date the file `at`."""
    with _translated_errors(path), _opened(path) as target:
        for _ in range(MAX_ATTEMPTS):
            if _swap(target, _load(target), _encode(text), at):
                return
        raise _contended(path)


def claim(path: Path) -> tuple[str, datetime] | None:
    """Take the file away and return its text and its date. Of several claimants one gets it."""
    if read(path) is None:  # also refuses what is too large or no file, before it is gone
        return None
    spare = _temporary_path(path)
    with _translated_errors(path), locked(path):
        try:
            path.replace(spare)
        except FileNotFoundError:
            return None
        try:
            dated = datetime.fromtimestamp(spare.stat().st_mtime, UTC)
            text = _decode(path, _load(spare))
        finally:
            spare.unlink(missing_ok=True)
            sync_folder(path.parent)
    return (text, dated) if text is not None else None


def _differs(text: str | None, change: Change) -> bool:
    after = change(text)
    return after is not None and after != text


def _contended(path: Path) -> WorkspaceBusy:
    return WorkspaceBusy(f"{path}: another program changes it faster than it can be edited")


@contextmanager
def _translated_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        cause, reason = _CAUSES.get(
            error.errno or 0, (WorkspaceError, f"cannot be used ({error.strerror})")
        )
        raise cause(f"{path}: {reason}") from error


@contextmanager
def _opened(path: Path) -> Iterator[Path]:
    """The file behind any links, locked, its folder made if need be: a link stays a link."""
    target = Path(os.path.realpath(path))
    _make_folder(target.parent)
    with locked(target):
        yield target


def _make_folder(folder: Path) -> None:
    missing = [step for step in (folder, *folder.parents) if not step.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for step in missing:
        sync_folder(step.parent)


def _load(path: Path) -> bytes | None:
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer for ever.
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise WorkspaceError(f"{path}: is not a file")
        with os.fdopen(opened, "rb", closefd=False) as file:
            raw = file.read(MAX_BYTES + 1)
    finally:
        os.close(opened)
    _refuse_large(path, len(raw))
    return raw


def _refuse_large(path: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise FileTooLarge(
            f"{path}: is larger than {MAX_BYTES:,} bytes; move what is not needed to another file"
        )


def _decode(path: Path, raw: bytes | None) -> str | None:
    if raw is None:
        return None
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise WorkspaceError(f"{path}: is UTF-16; save it as UTF-8")
    text = raw.decode("utf-8", "surrogateescape")
    return text if text.strip("\ufeff \t\r\n") else None


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _temporary_path(path: Path) -> Path:
    """One fixed name: only the holder of the lock uses it, and what a crash left there is
    overwritten by the next edit.
    """
    return path.with_name(f".{path.name}.aftercall-tmp")


def _swap(target: Path, before: bytes | None, after: bytes, at: datetime | None = None) -> bool:
    """Put `after` in the place of `before`; False, and nothing done, if something else stands
    there by now.
    """
    _refuse_large(target, len(after))
    spare = _temporary_path(target)
    try:
        _write(spare, after, like=target)
        if at:
            os.utime(spare, (at.timestamp(), at.timestamp()))
        faults.fault_point("workspace.before_compare")
        if _load(target) != before:
            return False
        faults.fault_point("workspace.before_rename")
        spare.replace(target)
    finally:
        spare.unlink(missing_ok=True)
    faults.fault_point("workspace.after_rename")
    sync_folder(target.parent)
    return True


def _write(path: Path, raw: bytes, like: Path) -> None:
    path.unlink(missing_ok=True)
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with os.fdopen(opened, "wb") as file:
        with suppress(FileNotFoundError):
            _copy_access(like, file.fileno())
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())


def _copy_access(source: Path, copy: int) -> None:
    """The old file's mode and, where we may, its owner.

    A rename would replace even a file that is write-protected: respect that.
    """
    found = source.stat()
    if not found.st_mode & 0o222:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    with suppress(PermissionError):
        os.fchown(copy, found.st_uid, found.st_gid)
    os.fchmod(copy, stat.S_IMODE(found.st_mode))
