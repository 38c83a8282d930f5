"""Reads and changes files that other programs may change at the same time.

A change is atomic: temporary file, fsync, rename. Bytes that are not UTF-8 survive the round
trip. Everything here blocks, so an event loop calls it in a thread.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from aftercall import faults
from aftercall.disk import lock_file, sync_folder
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
_LOCK_NAME = re.compile(r"[0-9a-f]{2}\.lock")
_TEMPORARY_SUFFIX = ".aftercall-tmp"


@contextmanager
def locked(path: Path, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Holds the lock of `path`. The file may be missing, its folder must exist. Not re-entrant."""
    lock = _lock_file(path)
    deadline = time.monotonic() + timeout_s
    while (held := _try_lock(lock)) is None:
        if time.monotonic() > deadline:
            raise WorkspaceBusy(
                f"{path}: another process has held its lock for {timeout_s:g} s"
            )
        time.sleep(_LOCK_POLL_INTERVAL_S)
    try:
        yield
    finally:
        os.close(held)


def _lock_file(path: Path) -> Path:
    """One of 256 locks of a folder. Its name holds no word: it outlives the file."""
    folder = path.parent / LOCK_FOLDER
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        # workspaces are often git repositories
        (folder / ".gitignore").write_text("*\n", "utf-8")
    return (
        folder
        / f"{sha256(path.name.encode(errors='surrogateescape')).hexdigest()[:2]}.lock"
    )


def _try_lock(lock: Path) -> int | None:
    """The descriptor that holds the lock, or None.

    Each call opens the file again: flock belongs to the open file, so it excludes threads, too.
    """
    held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if lock_file(held, wait=False) and _is_still_there(lock, held):
            return held
    except BaseException:
        os.close(held)
        raise
    os.close(held)
    return None


def _is_still_there(lock: Path, held: int) -> bool:
    """A lock file that was removed meanwhile locks nothing."""
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
    errno.EEXIST: (
        WorkspaceMissing,
        "cannot be made, a file stands where its folder should be",
    ),
}


def read(path: Path) -> str | None:
    """The text; None if there is no file or only white space in it."""
    with _translated_errors(path):
        return _decode(path, _load(path))


def edit(path: Path, change: Change) -> bool:
    """Replaces the text by the result of `change`; None or the same text changes nothing.

    `change` may be called several times, each time with newer text, and must have no side
    effects. Returns whether the file was written.
    """
    text = read(path)
    if change(text) in (None, text):  # leave no trace on the disk, not even a lock
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
    """Writes `text` over anything, and dates the file `at`."""
    with _translated_errors(path), _opened(path) as target:
        for _ in range(MAX_ATTEMPTS):
            if _swap(target, _load(target), _encode(text), at):
                return
        raise _contended(path)


def claim(path: Path) -> tuple[str, datetime] | None:
    """Removes the file and returns its text and date. Of several claimants one gets it."""
    if read(path) is None:  # refuses what is too large before it is removed
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


def remove(path: Path) -> bool:
    """Removes a file, and what a crash in an edit left of it. Returns whether anything was there.

    A file that is being written is removed after the writer has let go of its lock.
    """
    with _translated_errors(path):
        there = [each for each in (path, _temporary_path(path)) if each.exists()]
        if not there:
            return False
        with locked(path):
            for each in there:
                each.unlink(missing_ok=True)
            sync_folder(path.parent)
    return True


def discard_unfinished(root: Path) -> int:
    """Removes the temporary copies that crashes left; returns how many. The files stay."""
    copies = list(root.rglob(f".*{_TEMPORARY_SUFFIX}"))
    for copy in copies:
        path = copy.with_name(copy.name[1:].removesuffix(_TEMPORARY_SUFFIX))
        with _translated_errors(path), locked(path):
            copy.unlink(missing_ok=True)
    return len(copies)


def remove_named_locks(root: Path) -> int:
    """Removes lock files that carry the name of the file they once locked."""
    named = [
        path
        for path in root.rglob(f"{LOCK_FOLDER}/*.lock")
        if not _LOCK_NAME.fullmatch(path.name)
    ]
    for path in named:
        path.unlink(missing_ok=True)
    return len(named)


def _contended(path: Path) -> WorkspaceBusy:
    return WorkspaceBusy(
        f"{path}: another program changes it faster than it can be edited"
    )


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
    """The locked file behind any links, in a folder that exists: a link stays a link."""
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
        # Without O_NONBLOCK, opening a named pipe would wait for a writer forever.
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
    """One fixed name: only the holder of the lock uses it, and the next edit overwrites it."""
    return path.with_name(f".{path.name}{_TEMPORARY_SUFFIX}")


def _swap(
    target: Path, before: bytes | None, after: bytes, at: datetime | None = None
) -> bool:
    """Replaces `before` by `after`; does nothing and returns False if the file has changed."""
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
    """Copies the mode and, if permitted, the owner.

    Refuses a write-protected file, which a rename would replace.
    """
    found = source.stat()
    if not found.st_mode & 0o222:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    with suppress(PermissionError):
        os.fchown(copy, found.st_uid, found.st_gid)
    os.fchmod(copy, stat.S_IMODE(found.st_mode))
