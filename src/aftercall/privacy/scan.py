"""Searches the raw bytes and the names of every file for traces of a caller.

Deleted database rows are bytes too. Encrypted files are searched in clear. The search runs in a
child process. Closing a database file drops all locks that SQLite holds on it in the same process,
and the next program on that home would delete the write-ahead file (decision 30).
"""

import json
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from aftercall.encryption import FileCipher, read_decrypted
from aftercall.errors import ArchiveError, FileUnreadable
from aftercall.model.json_fields import Json

SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Suffixes of a database file and of the files that SQLite keeps beside it."""
DATABASE_SUFFIXES = tuple(f".db{suffix}" for suffix in SQLITE_SUFFIXES)
IN_A_NAME = "(in the name of a file or folder)"
_NOT_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class TraceScan:
    files: int
    bytes: int
    traces: tuple[str, ...]
    """Names of files that still hold a trace; where the name is the trace, its folder."""
    others: tuple[str, ...] = ()
    """Names of other people's files that hold the same words; these stay."""
    unreadable: tuple[str, ...] = ()
    """Names of encrypted files that the key does not open, and of pages that are no text."""

    @property
    def is_clean(self) -> bool:
        return not self.traces and not self.unreadable


def scan_for_traces(
    folders: Iterable[Path],
    needles: frozenset[bytes],
    *,
    name_parts: frozenset[bytes] = frozenset(),
    names: frozenset[str] = frozenset(),
    key: bytes = b"",
    database: Path | None = None,
    others_files: frozenset[str] = frozenset(),
    own_folder: str = "",
) -> TraceScan:
    """`needles` are searched for in the bytes of files, `names` in their names as whole words.

    `name_parts` are needles, too. Names and their parts are no trace if they are another's, too.
    `database` may lie outside the folders and have any name. `key` opens encrypted files.
    `others_files` names files of other people: their words are no trace, in the database neither.
    `own_folder` is the folder of the caller; names on pages in other folders are other people's.
    """
    question = {
        "folders": [str(folder) for folder in folders],
        "needles": [needle.hex() for needle in needles],
        "name_parts": [part.hex() for part in name_parts],
        "names": sorted(names),
        "key": key.hex(),
        "database": str(database) if database else None,
        "others_files": sorted(others_files),
        "own_folder": own_folder,
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
        *(tuple(answer[kind]) for kind in ("traces", "others", "unreadable")),
    )


def _scan(question: Json) -> TraceScan:
    """Traces in files and names. Words that others said, too, are no trace of this caller."""
    needles = _read_needles(question["needles"])
    name_parts = _read_needles(question["name_parts"])
    cipher = FileCipher(bytes.fromhex(question["key"]))
    others_files = frozenset(question["others_files"])
    found = _find_files(question["folders"], question["database"])
    named = _search_names(question["folders"], question["names"])
    size = 0
    hits: dict[Path, frozenset[bytes]] = {}
    unreadable = []
    for path in sorted(found):
        try:
            held, length = _search(path, needles | name_parts, cipher)
        except FileUnreadable:
            unreadable.append(path.name)
            continue
        size += length
        if held:
            hits[path] = held
    others = [path for path in hits if path.name in others_files]
    spoken_names = name_parts | {name.lower().encode() for name in question["names"]}
    said_by_others = frozenset().union(*(hits[path] for path in others))
    said_by_others |= spoken_names & _words_of_others(hits, question["own_folder"])
    traces = [f"{folder} {IN_A_NAME}" for folder in sorted(set(named.values()))]
    for path, held in hits.items():
        is_database = found[path]
        left = held - (said_by_others if is_database else said_by_others & spoken_names)
        if left and path not in others and path not in named:
            traces.append(path.name)
    names = tuple(path.name for path in others)
    return TraceScan(len(found), size, tuple(traces), names, tuple(unreadable))


def _read_needles(texts: Iterable[str]) -> frozenset[bytes]:
    """Bytes to look for, which were sent as hexadecimal digits."""
    return frozenset(bytes.fromhex(needle).lower() for needle in texts)


def _words_of_others(
    hits: dict[Path, frozenset[bytes]], own_folder: str
) -> frozenset[bytes]:
    """What the pages of other people hold."""
    theirs = [held for path, held in hits.items() if _is_of_another(path, own_folder)]
    return frozenset().union(*theirs)


def _is_of_another(path: Path, own_folder: str) -> bool:
    """Whether the page is in the folder of another person."""
    folders = path.parts[:-1]
    is_person = "people" in folders[:-1]
    return is_person and own_folder != folders[folders.index("people") + 1]


def _find_files(folders: Iterable[str], database: str | None) -> dict[Path, bool]:
    """Every file, and whether it belongs to a database."""
    found = {}
    for folder in folders:
        for path in _walk(Path(folder)):
            if path.is_file():
                found[path] = path.name.endswith(DATABASE_SUFFIXES)
    for suffix in SQLITE_SUFFIXES if database else ():
        path = Path(f"{database}{suffix}").absolute()
        if path.is_file():
            found[path] = True
    return found


def _walk(folder: Path) -> Iterator[Path]:
    """Every file and folder below. A folder that cannot be read is an error, not a blank."""
    for place, folders, files in os.walk(folder.absolute(), onerror=_raise):
        yield from (Path(place) / name for name in (*folders, *files))


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # a deleted folder holds nothing
        raise error


def _search_names(folders: Iterable[str], needles: Iterable[str]) -> dict[Path, str]:
    """Paths below the folders whose name holds a needle, with the folder that may be shown."""
    words = {plain for needle in needles if (plain := _to_plain(needle)) != "-"}
    found = {}
    for folder in map(Path, folders):
        root = folder.absolute()
        for path in _walk(root):
            parts = path.relative_to(root).parts
            for at, part in enumerate(parts):
                name = _to_plain(part)
                if any(word in name for word in words):
                    found[path] = "/".join((root.name, *parts[:at]))
                    break
    return found


def _to_plain(text: str) -> str:
    """Words in lower case between hyphens, as the names of tasks are made."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return f"-{_NOT_WORDS.sub('-', folded).strip('-')}-".replace("--", "-")


def _search(
    path: Path, needles: frozenset[bytes], cipher: FileCipher
) -> tuple[frozenset[bytes], int]:
    """The needles in the file, and its size. Blocks overlap, so a border hides no needle."""
    longest = max(map(len, needles), default=1)
    found: set[bytes] = set()
    size = 0
    tail = b""
    try:
        for block in read_decrypted(path, cipher):
            data = tail + block.lower()
            found |= {needle for needle in needles - found if needle in data}
            tail = data[-longest:]
            size += len(block)
    except FileNotFoundError:
        pass  # a deleted file holds nothing
    return frozenset(found), size


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(_scan(json.load(sys.stdin)))))
