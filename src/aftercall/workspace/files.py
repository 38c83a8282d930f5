"""Reads and changes pages: files that other programs may change at the same time.

A change is atomic: temporary file, fsync, rename. Bytes that are not UTF-8 survive the round
trip. Everything here blocks, so an event loop calls it in a thread.

A store may be mounted on a folder (`pages.py`): its pages are rows then, and its files are copies.
"""

import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Protocol

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
    digest = sha256(path.name.encode(errors="surrogateescape")).hexdigest()
    return make_lock_folder(path.parent) / f"{digest[:2]}.lock"


def make_lock_folder(parent: Path) -> Path:
    folder = parent / LOCK_FOLDER
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        # workspaces are often git repositories
        (folder / ".gitignore").write_text("*\n", "utf-8")
    return folder


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


PAGE_SUFFIXES = (".md", ".ics", ".txt")
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


DatedText = tuple[str, datetime]


class WorkspaceStore(Protocol):
    """Where the pages of a folder are kept."""

    def load(self, path: Path) -> DatedText | None: ...

    def edit(
        self, path: Path, change: Change, *, author: str, keeps_history: bool
    ) -> bool: ...

    def write(self, path: Path, text: str, at: datetime) -> None: ...

    def claim(self, path: Path) -> DatedText | None: ...

    def remove(self, path: Path) -> bool: ...

    def remove_folder(self, folder: Path) -> bool: ...

    def sync(self) -> None: ...


class PageFolder:
    """Pages that are files and nothing else."""

    def load(self, path: Path) -> DatedText | None:
        with translated_errors(path):
            text = decode(path, load_bytes(path))
            if text is None:
                return None
            try:
                return text, date_file(path)
            except FileNotFoundError:  # removed meanwhile
                return None

    def edit(
        self, path: Path, change: Change, *, author: str, keeps_history: bool
    ) -> bool:
        """A file has neither author nor history."""
        text = read_copy(path)
        if change(text) in (None, text):  # no trace on the disk, not even a lock
            return False
        with translated_errors(path), locked_target(path) as target:
            for _ in range(MAX_ATTEMPTS):
                before = load_bytes(target)
                text = decode(target, before)
                after = change(text)
                if after is None or after == text or encode(after) == before:
                    return False
                if swap_bytes(target, before, encode(after)):
                    return True
            raise contended(path)

    def write(self, path: Path, text: str, at: datetime) -> None:
        with translated_errors(path), locked_target(path) as target:
            for _ in range(MAX_ATTEMPTS):
                if swap_bytes(target, load_bytes(target), encode(text), at):
                    return
            raise contended(path)

    def claim(self, path: Path) -> DatedText | None:
        if read_copy(path) is None:  # refuses what is too large before it is removed
            return None
        spare = make_temporary_path(path)
        with translated_errors(path), locked(path):
            try:
                path.replace(spare)
            except FileNotFoundError:
                return None
            try:
                dated = date_file(spare)
                text = decode(path, load_bytes(spare))
            finally:
                spare.unlink(missing_ok=True)
                sync_folder(path.parent)
        return (text, dated) if text is not None else None

    def remove(self, path: Path) -> bool:
        with translated_errors(path):
            there = [
                each for each in (path, make_temporary_path(path)) if each.exists()
            ]
            if not there:
                return False
            with locked(path):
                for each in there:
                    each.unlink(missing_ok=True)
                sync_folder(path.parent)
        return True

    def remove_folder(self, folder: Path) -> bool:
        if not folder.is_dir():
            return False
        with translated_errors(folder):
            shutil.rmtree(folder)
        return True

    def sync(self) -> None:
        """The files are the pages."""


FOLDER = PageFolder()
_mounts: dict[Path, list[WorkspaceStore]] = {}


def mount(root: Path, store: WorkspaceStore) -> None:
    """From here on this process finds the pages below `root` in the store."""
    _mounts.setdefault(root, []).append(store)


def unmount(root: Path, store: WorkspaceStore) -> None:
    stores = _mounts.get(root, [])
    if store in stores:
        stores.remove(store)
    if not stores:
        _mounts.pop(root, None)


def _find_store(path: Path) -> WorkspaceStore:
    if _mounts:
        for folder in (path, *path.parents):
            if folder in _mounts:
                return _mounts[folder][0]
    return FOLDER


def read(path: Path) -> str | None:
    """The text; None if there is no page or only white space on it."""
    found = _find_store(path).load(path)
    return found[0] if found else None


def read_dated(path: Path) -> DatedText | None:
    """The text and its date."""
    return _find_store(path).load(path)


def read_copy(path: Path) -> str | None:
    """The text of the file on this machine, which may be seconds older than the page.

    For whoever looks through many pages: it asks no database.
    """
    found = FOLDER.load(path)
    return found[0] if found else None


def edit(
    path: Path, change: Change, *, author: str = "", keeps_history: bool = True
) -> bool:
    """Replaces the text by the result of `change`; None or the same text changes nothing.

    `change` may be called several times, each time with newer text, and must have no side
    effects. Without `keeps_history`, older revisions go too. Returns whether anything changed.
    """
    store = _find_store(path)
    return store.edit(path, change, author=author, keeps_history=keeps_history)


def write(path: Path, text: str, at: datetime) -> None:
    """Writes `text` over anything, and dates the page `at`."""
    _find_store(path).write(path, text, at)


def claim(path: Path) -> DatedText | None:
    """Removes the page and returns its text and date. Of several claimants one gets it."""
    return _find_store(path).claim(path)


def remove(path: Path) -> bool:
    """Removes a page with its history, and what a crash in an edit left of it.

    Returns whether anything was there. A file that is being written is removed after the writer
    has let go of its lock.
    """
    return _find_store(path).remove(path)


def remove_folder(folder: Path) -> bool:
    """Removes all pages below a folder, and the folder."""
    return _find_store(folder).remove_folder(folder)


def sync(root: Path) -> None:
    """Brings the pages and the files of this machine together."""
    _find_store(root).sync()


def discard_unfinished(root: Path) -> int:
    """Removes the temporary copies that crashes left; returns how many. The files stay."""
    copies = list(root.rglob(f".*{_TEMPORARY_SUFFIX}"))
    for copy in copies:
        path = copy.with_name(copy.name[1:].removesuffix(_TEMPORARY_SUFFIX))
        with translated_errors(path), locked(path):
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


def remove_empty_folders(folder: Path, root: Path) -> None:
    """A folder's name may be a number: it goes with the last page in it."""
    while folder != root and folder.is_relative_to(root):
        left = [path.name for path in folder.iterdir()] if folder.exists() else []
        if any(name != LOCK_FOLDER for name in left):
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder = folder.parent


def contended(path: Path) -> WorkspaceBusy:
    return WorkspaceBusy(
        f"{path}: another program changes it faster than it can be edited"
    )


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        cause, reason = _CAUSES.get(
            error.errno or 0, (WorkspaceError, f"cannot be used ({error.strerror})")
        )
        raise cause(f"{path}: {reason}") from error


@contextmanager
def locked_target(path: Path) -> Iterator[Path]:
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


def list_pages(root: Path) -> Iterator[tuple[str, int]]:
    """The path of each file that is a page, and when it was changed in nanoseconds.

    Hidden files, links that lead nowhere and names that are no text are none.
    """
    for parent, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            file = Path(parent, name)
            path = file.relative_to(root).as_posix()
            is_text = not any("\ud800" <= char <= "\udfff" for char in path)
            if name.startswith(".") or not name.endswith(PAGE_SUFFIXES) or not is_text:
                continue
            with suppress(OSError):
                yield path, file.stat().st_mtime_ns


def is_gone(file: Path) -> bool:
    """Whether there is no such file; one that cannot be looked at is there."""
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def load_bytes(path: Path) -> bytes | None:
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
    refuse_large(path, len(raw))
    return raw


def refuse_large(path: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise FileTooLarge(
            f"{path}: is larger than {MAX_BYTES:,} bytes; move what is not needed to another file"
        )


def date_file(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def decode(path: Path, raw: bytes | None) -> str | None:
    if raw is None:
        return None
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise WorkspaceError(f"{path}: is UTF-16; save it as UTF-8")
    text = raw.decode("utf-8", "surrogateescape")
    return text if text.strip("\ufeff \t\r\n") else None


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def make_temporary_path(path: Path) -> Path:
    """One fixed name: only the holder of the lock uses it, and the next edit overwrites it."""
    return path.with_name(f".{path.name}{_TEMPORARY_SUFFIX}")


def swap_bytes(
    target: Path, before: bytes | None, after: bytes, at: datetime | None = None
) -> bool:
    """Replaces `before` by `after`; does nothing and returns False if the file has changed."""
    refuse_large(target, len(after))
    spare = make_temporary_path(target)
    try:
        _write(spare, after, like=target)
        if at:
            os.utime(spare, (at.timestamp(), at.timestamp()))
        faults.fault_point("workspace.before_compare")
        if load_bytes(target) != before:
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
    """Copies the mode and, if permitted, the owner."""
    found = refuse_protected(source)
    with suppress(PermissionError):
        os.fchown(copy, found.st_uid, found.st_gid)
    os.fchmod(copy, stat.S_IMODE(found.st_mode))


def refuse_protected(path: Path) -> os.stat_result:
    """A rename would replace a write-protected file."""
    found = path.stat()
    if not found.st_mode & 0o222:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return found
