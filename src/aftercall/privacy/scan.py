"""Searches the raw bytes of every file for traces of a caller, deleted database rows included.

The search runs in a child process. Closing a database file drops all locks that SQLite holds on it
in the same process, and the next program on that home would delete the write-ahead file
(decision 30).
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aftercall.errors import ArchiveError

BLOCK_BYTES = 4 * 1024 * 1024
SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Suffixes of a database file and of the files that SQLite keeps beside it."""
DATABASE_SUFFIXES = tuple(f".db{suffix}" for suffix in SQLITE_SUFFIXES)


@dataclass(frozen=True)
class TraceScan:
    files: int
    bytes: int
    traces: tuple[str, ...]
    """Names of files that still hold a trace."""
    others: tuple[str, ...] = ()
    """Names of other people's files that hold the same words; these stay."""


def scan_for_traces(
    folders: Iterable[Path],
    needles: frozenset[bytes],
    *,
    database: Path | None = None,
    others_files: frozenset[str] = frozenset(),
) -> TraceScan:
    """`database` may lie outside the folders and have any name.

    `others_files` names files of other people: their words are no trace, in the database neither.
    """
    question = {
        "folders": [str(folder) for folder in folders],
        "needles": [needle.hex() for needle in needles],
        "database": str(database) if database else None,
        "others_files": sorted(others_files),
    }
    command = [sys.executable, "-m", "aftercall.privacy.scan"]
    child = subprocess.run(
        command, input=json.dumps(question).encode(), capture_output=True, check=False
    )
    if child.returncode != 0:
        raise ArchiveError(
            "the caller is erased, but the files could not be searched for traces; run the "
            "erasure again to search them"
        )
    answer = json.loads(child.stdout)
    return TraceScan(
        answer["files"],
        answer["bytes"],
        tuple(answer["traces"]),
        tuple(answer["others"]),
    )


def _scan(question: dict[str, Any]) -> TraceScan:
    needles = frozenset(bytes.fromhex(needle) for needle in question["needles"])
    others_files = frozenset(question["others_files"])
    found = _find_files(question["folders"], question["database"])
    size = 0
    hits: dict[Path, frozenset[bytes]] = {}
    for path in sorted(found):
        held, length = _search(path, needles)
        size += length
        if held:
            hits[path] = held
    others = [path for path in hits if path.name in others_files]
    said_by_others = frozenset().union(*(hits[path] for path in others))
    traces = []
    for path, held in hits.items():
        is_database = found[path]
        left = held - said_by_others if is_database else held
        if left and path not in others:
            traces.append(path.name)
    return TraceScan(
        len(found), size, tuple(traces), tuple(path.name for path in others)
    )


def _find_files(folders: Iterable[str], database: str | None) -> dict[Path, bool]:
    """Every file, and whether it belongs to a database."""
    found = {}
    for folder in folders:
        for path in Path(folder).rglob("*"):
            if path.is_file():
                found[path.absolute()] = path.name.endswith(DATABASE_SUFFIXES)
    for suffix in SQLITE_SUFFIXES if database else ():
        path = Path(f"{database}{suffix}").absolute()
        if path.is_file():
            found[path] = True
    return found


def _search(path: Path, needles: frozenset[bytes]) -> tuple[frozenset[bytes], int]:
    """The needles in the file, and its size. Blocks overlap, so a border hides no needle."""
    longest = max(map(len, needles), default=1)
    found: set[bytes] = set()
    size = 0
    with (
        suppress(FileNotFoundError),
        path.open("rb") as opened,
    ):
        # a deleted file holds nothing
        tail = b""
        while block := opened.read(BLOCK_BYTES):
            data = tail + block
            found |= {needle for needle in needles - found if needle in data}
            tail = data[-longest:]
            size += len(block)
    return frozenset(found), size


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(_scan(json.load(sys.stdin)))))
