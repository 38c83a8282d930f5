"""`<home>/retired`: what is past its time and was to be kept all the same, out of search and of
every briefing.

One folder for each kind and number, so that erasing a caller finds all of theirs.
"""

import json
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from aftercall.disk import replace_synced
from aftercall.ids import hash_caller
from aftercall.model.facts import SHARED_CALLER
from aftercall.model.people import split_party

NOBODY_FOLDER = "nobody"


@dataclass(frozen=True)
class RetiredFolder:
    home: Path

    @property
    def root(self) -> Path:
        return self.home / "retired"

    def save(self, kind: str, whose: str, name: str, data: bytes) -> Path:
        """On disk when this returns; kept twice it is there once."""
        folder = self._folder(kind, whose)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_synced(folder / name, data)
        return folder / name

    def erase(self, number: str) -> int:
        """Everything of a number, whoever spoke from it; how many files."""
        folders = [
            folder for folder in self.root.glob(f"*/{hash_caller(number)}") if folder.is_dir()
        ]
        count = sum(1 for folder in folders for path in folder.rglob("*") if path.is_file())
        for folder in folders:
            shutil.rmtree(folder)
        return count

    def erase_shared(self, calls: Collection[str]) -> int:
        """What a memory that all share kept of these calls; how many files.

        A fact that others said too stays, without these.
        """
        places = (hash_caller(SHARED_CALLER), NOBODY_FOLDER)
        found = [
            file
            for kind in ("facts", "documents")
            for place in places
            for file in (self.root / kind / place).glob("*.json")
        ]
        return sum(self._remove_calls(file, frozenset(calls)) for file in found)

    def _remove_calls(self, file: Path, calls: frozenset[str]) -> bool:
        kept = json.loads(file.read_bytes())
        said = kept.get("occurrences", [])
        others = [each for each in said if each["call_id"] not in calls]
        if kept.get("call_id") in calls or (said and not others):
            file.unlink()
        elif len(others) < len(said):
            left = kept | {"occurrences": others, "occurrence_count": len(others)}
            replace_synced(file, (json.dumps(left, ensure_ascii=False, indent=1) + "\n").encode())
        else:
            return False
        return True

    def _folder(self, kind: str, whose: str) -> Path:
        return self.root / kind / (hash_caller(split_party(whose)[0]) if whose else NOBODY_FOLDER)
