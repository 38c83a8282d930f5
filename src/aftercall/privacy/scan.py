"""Looking for traces in the raw bytes of every file, deleted rows in the pages of a database
included.

It runs in a process of its own: whoever closes a database file drops all locks that SQLite
holds on it in the same process, and the next program on that home would delete the write-ahead
file (decision 30).
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aftercall.errors import ArchiveError

BLOCK_BYTES = 4 * 1024 * 1024
SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""What SQLite adds to the name of a database for the files it keeps beside it."""
DATABASE_SUFFIXES = tuple(f".db{suffix}" for suffix in SQLITE_SUFFIXES)


@dataclass(frozen=True)
class TraceScan:
    files: int
    bytes: int
    traces: tuple[str, ...]
    """Files that still hold something of the caller, by name below the folder that was searched."""
    others: tuple[str, ...] = ()
    """Files of other people that say the same words; they are theirs and stay."""


def scan_for_traces(
    folders: Iterable[Path],
    needles: frozenset[bytes],
    *,
    database: Path | None = None,
    others_files: frozenset[str] = frozenset(),
) -> TraceScan:
    """`database` is one that may lie elsewhere, under any name. `is_others` names files that are
    somebody else's: what stands there is no trace, in the database neither."""
    question = {
        "folders": [str(folder) for folder in folders],
        "needles": [needle.hex() for needle in needles],
        "database": str(database) if database else None,
        "is_others": sorted(others_files),
    }
    command = [sys.executable, "-m", "aftercall.privacy.scan"]
    child = subprocess.run(
        command, input=json.dumps(question).encode(), capture_output=True, check=False
    )
    if child.returncode != 0:
        raise ArchiveError(
            "the caller is erased, but the files could not be searched for traces; erase once "
            "more to have them searched"
        )
    answer = json.loads(child.stdout)
    return TraceScan(
        answer["files"], answer["bytes"], tuple(answer["traces"]), tuple(answer["others"])
    )


def _scan(question: dict[str, Any]) -> TraceScan:
    needles = frozenset(bytes.fromhex(needle) for needle in question["needles"])
    is_others = frozenset(question["is_others"])
    found = {
        path: path.name.endswith(DATABASE_SUFFIXES)
        for folder in question["folders"]
        for path in _files(Path(folder))
    }
    if question["database"]:
        beside = (Path(question["database"] + suffix).absolute() for suffix in SQLITE_SUFFIXES)
        found |= {path: True for path in beside if path.is_file()}
    paths = sorted(found)
    searched = {path: _search(path, needles) for path in paths}
    hits = {path: held for path, (held, _) in searched.items()}
    shared = frozenset().union(*(hits[path] for path in paths if path.name in is_others))
    traces = [
        path.name
        for path in paths
        if path.name not in is_others and hits[path] - (shared if found[path] else frozenset())
    ]
    others = [path.name for path in paths if path.name in is_others and hits[path]]
    return TraceScan(
        len(paths), sum(size for _, size in searched.values()), tuple(traces), tuple(others)
    )


def _files(folder: Path) -> Iterator[Path]:
    yield from (path.absolute() for path in folder.rglob("*") if path.is_file())


def _search(path: Path, needles: frozenset[bytes]) -> tuple[frozenset[bytes], int]:
    """Which needles are in the file, and how many bytes it has; blocks overlap, so that none
    hides on a border.
    """
    longest = max(map(len, needles), default=1)
    found: set[bytes] = set()
    size = 0
    with (
        suppress(FileNotFoundError),
        path.open("rb") as opened,
    ):  # one that is gone by now holds nothing
        tail = b""
        while block := opened.read(BLOCK_BYTES):
            data = tail + block
            found |= {needle for needle in needles - found if needle in data}
            tail = data[-longest:]
            size += len(block)
    return frozenset(found), size


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(_scan(json.load(sys.stdin)))))
