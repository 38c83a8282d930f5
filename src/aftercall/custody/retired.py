"""`<home>/retired`: what is past its time and was to be kept all the same, out of search and of every briefing.

One folder for each kind and number, so that erasing a caller finds all of theirs.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from aftercall.disk import sync_folder
from aftercall.ids import hash_caller
from aftercall.model.people import split_party

NOBODY = "nobody"


@dataclass(frozen=True)
class Retired:
    home: Path

    @property
    def root(self) -> Path:
        return self.home / "retired"

    def keep(self, kind: str, whose: str, name: str, data: bytes) -> Path:
        """On disk when this returns; kept twice it is there once."""
        folder = self._folder(kind, whose)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        target, temporary = folder / name, folder / f".{name}.tmp"
        opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(opened, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        sync_folder(folder)
        return target

    def erase(self, number: str) -> int:
        """Everything of a number, whoever spoke from it; how many files."""
        folders = [folder for folder in self.root.glob(f"*/{hash_caller(number)}") if folder.is_dir()]
        count = sum(1 for folder in folders for path in folder.rglob("*") if path.is_file())
        for folder in folders:
            shutil.rmtree(folder)
        return count

    def _folder(self, kind: str, whose: str) -> Path:
        return self.root / kind / (hash_caller(split_party(whose)[0]) if whose else NOBODY)
