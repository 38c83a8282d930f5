"""Where recordings lie: `<home>/recordings/`. One is fetched into a part beside its name, and gets the name when it is whole."""

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import Any

from aftercall.disk import sync_folder
from aftercall.errors import RecordingError, StorageFull
from aftercall.faults import reach

FOLDER = "recordings"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Part:
    """A file that is still being fetched. What is there survives a crash, and the next attempt goes on behind it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def restart(self) -> None:
        self.path.unlink(missing_ok=True)

    def append(self, data: bytes) -> None:
        with explained(self.path.name), self.path.open("ab") as file:
            file.write(data)


class RecordingFolder:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = home / FOLDER

    def part(self, name: str) -> Part:
        with explained(name):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Part(self._folder / f"{name}.part")

    def find(self, name: str) -> Path | None:
        path = self._folder / name
        return path if path.is_file() else None

    def finish(self, part: Part, name: str) -> Path:
        """The whole file under its name, on disk."""
        path = self._folder / name
        with explained(name):
            with part.path.open("rb") as file:
                os.fsync(file.fileno())
            reach("recording.after_part")
            part.path.rename(path)
            sync_folder(self._folder)
        reach("recording.after_rename")
        return path

    def write_beside(self, path: Path, data: Mapping[str, Any]) -> Path:
        """The transcript of a recording, beside it; written whole."""
        beside = path.with_name(f"{path.name}.transcript.json")
        temporary = beside.with_name(f".{beside.name}.tmp")
        with explained(beside.name):
            with temporary.open("w", encoding="utf-8") as file:
                json.dump(data, file, ensure_ascii=False, indent=1)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(beside)
            sync_folder(self._folder)
        return beside

    def relative(self, path: Path) -> str:
        return str(path.relative_to(self._home))


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def explained(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise StorageFull(f"no room for {name} in the recordings; free some space, what is there stays") from error
        raise RecordingError(f"{name} cannot be written in the recordings ({error.strerror})") from error
