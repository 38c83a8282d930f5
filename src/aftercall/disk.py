"""Files that survive a power cut: their bytes are synced, and so is the folder that holds their
name.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path


def sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def create_if_missing(file: Path, text: str) -> None:
    """Make a small file, for its owner only, unless it is there.

    Nobody ever sees half of it or replaces it.
    """
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(opened, "w", encoding="ascii") as writing:
            writing.write(text)
            writing.flush()
            os.fsync(writing.fileno())
        with suppress(FileExistsError):
            os.link(fresh, file)
    finally:
        fresh.unlink()
    sync_folder(file.parent)
