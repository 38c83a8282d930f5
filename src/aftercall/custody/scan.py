"""Looking for traces in the raw bytes of every file, deleted rows in the pages of a database included."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = 4 * 1024 * 1024
DATABASES = (".db", ".db-wal", ".db-shm")


@dataclass(frozen=True)
class Scan:
    files: int
    bytes: int
    traces: tuple[str, ...]
    """Files that still hold something of the caller, by name below the folder that was searched."""
    others: tuple[str, ...] = ()
    """Files of other people that say the same words; they are theirs and stay."""


def scan(folders: Iterable[Path], needles: frozenset[bytes], *, is_others: frozenset[str] = frozenset()) -> Scan:
    """`is_others` names files that are somebody else's: what stands there is no trace, in the database neither."""
    paths = sorted({path for folder in folders for path in _files(folder)})
    plain = [path for path in paths if not path.name.endswith(DATABASES)]
    found = {path: _holds(path, needles) for path in plain}
    shared = frozenset().union(*(hits for path, hits in found.items() if path.name in is_others))
    traces = [path.name for path, hits in found.items() if hits and path.name not in is_others]
    traces += [path.name for path in paths if path.name.endswith(DATABASES) and _holds(path, needles - shared)]
    others = [path.name for path, hits in found.items() if hits and path.name in is_others]
    return Scan(len(paths), sum(path.stat().st_size for path in paths), tuple(traces), tuple(others))


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in folder.rglob("*") if path.is_file())


def _holds(path: Path, needles: frozenset[bytes]) -> frozenset[bytes]:
    """Which needles are in the file; blocks overlap, so that none hides on a border."""
    longest = max(map(len, needles), default=1)
    found: set[bytes] = set()
    with path.open("rb") as opened:
        tail = b""
        while block := opened.read(BLOCK):
            data = tail + block
            found |= {needle for needle in needles - found if needle in data}
            tail = data[-longest:]
    return frozenset(found)
