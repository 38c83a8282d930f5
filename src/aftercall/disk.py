"""Files that survive a crash: synced writes, files created once, full disks, locks, access."""

import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aftercall.errors import AftercallError, StorageFull

DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
OTHER_USERS = 0o077


def close_to_others(path: Path) -> bool:
    """Takes the access of other users of this machine away; returns whether they had it.

    Links are left alone: the file behind one may belong to another program.
    """
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode) or not mode & OTHER_USERS:
        return False
    path.chmod(stat.S_IMODE(mode) & ~OTHER_USERS)
    return True


def sync_folder(folder: Path) -> None:
    """Syncs the names in a folder. A synced file whose name is not synced may be lost."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def create_once(path: Path, data: bytes, mode: int = 0o600) -> bool:
    """Creates a file, whole and synced; returns False, and changes nothing, if it exists.

    A crash leaves the whole file, or at most a temporary one named `.*.tmp`.
    """
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    is_created = False
    try:
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            append_synced(file, data)
        finally:
            os.close(file)
        with suppress(FileExistsError):
            os.link(temporary, path)
            is_created = True
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return is_created


def replace_synced(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Writes a file, whole and synced, in place of the one that may be there."""
    temporary = path.with_name(f".{path.name}.tmp")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        append_synced(file, data)
    finally:
        os.close(file)
    temporary.replace(path)
    sync_folder(path.parent)


def create_from_blocks(path: Path, blocks: Iterable[bytes], mtime: float) -> None:
    """Creates a file, and its folders, with this time; the caller syncs it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
    ) as file:
        for block in blocks:
            file.write(block)
    os.utime(path, (mtime, mtime))


def append_synced(file: int, data: bytes) -> None:
    """Appends all the data and syncs it, or leaves the file as it was."""
    end = os.fstat(file).st_size
    written = 0
    try:
        while written < len(data):
            written += os.pwrite(file, data[written:], end + written)
        os.fsync(file)
    except OSError:
        os.ftruncate(file, end)
        raise


@contextmanager
def translated_errors(
    name: str, folder: str, error_type: type[AftercallError]
) -> Iterator[None]:
    """Raises StorageFull for a full disk, and `error_type` for any other fault of the disk."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL_ERRNOS:
            raise StorageFull(
                f"no room to write {name} in the {folder}; free some space, "
                "nothing written is harmed"
            ) from error
        raise error_type(
            f"{name} cannot be written in the {folder} ({error.strerror})"
        ) from error


def lock_file(file: int, *, wait: bool = True) -> bool:
    """Locks an open file against everyone else who opens it, threads of this process included.

    The lock ends when the file is closed or the process ends. Without `wait`, returns False if
    the file is locked.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def open_locked(path: Path, mode: int = 0o600) -> int:
    """Opens or creates a file and waits for its lock."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, mode)
    lock_file(file)
    return file


def create_locked(path: Path) -> int:
    """Creates a file that is locked before it has its name: no process can find it unlocked."""
    starting = path.with_suffix(".starting")
    file = open_locked(starting)
    starting.rename(path)
    sync_folder(path.parent)
    return file


@contextmanager
def try_locked(path: Path) -> Iterator[bool]:
    """Whether the file exists and is now locked by us."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        yield lock_file(file, wait=False) and path.exists()
    finally:
        os.close(file)


@contextmanager
def open_work_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A hidden folder that goes at the end. What a crash left of others is removed.

    Its lock ends with the process, so that others see whether it is still in use.
    """
    for left in parent.glob(f".{prefix}*"):
        with try_locked(left / "lock") as is_ours:
            if is_ours:
                shutil.rmtree(left, ignore_errors=True)
    work = parent / f".{prefix}{os.getpid()}"
    work.mkdir(mode=0o700)
    lock = open_locked(work / "lock")
    try:
        yield work
    finally:
        os.close(lock)
        shutil.rmtree(work, ignore_errors=True)
