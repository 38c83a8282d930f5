"""The archive of sealed calls: one JSON file each, created once and never changed.

Words that arrive after the seal go into addenda beside the file. A hash chain links all files,
over their bytes as stored. New files are encrypted if `archive.encrypt` is set; an archive may
hold both kinds. The files lie in a folder of the home, or in a bucket (`archive_bucket.py`).
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from time import time
from typing import Protocol

from aftercall.clock import format_instant
from aftercall.disk import (
    append_synced,
    create_once,
    open_locked,
    sync_folder,
    translated_errors,
)
from aftercall.encryption import CHAIN_FILE, KEY_FILE, FileCipher, is_encrypted
from aftercall.errors import (
    ArchiveError,
    ChainBroken,
    ConfigError,
    FileUnreadable,
    NotFound,
)
from aftercall.faults import fault_point
from aftercall.model.calls import (
    Call,
    Event,
    LiveCall,
    Turn,
    dump_items,
    encode_call,
    format_json,
)
from aftercall.model.json_fields import Json

KEY_CHECK_FILE = "key.check"
GENESIS_HASH = "0" * 64
_MAX_SID_CHARS = 100
_MAX_FILES_PER_NAME = 1_000
_STALE_FILE_AGE_S = 3600


class ArchivePlace(Protocol):
    """Where the files of the archive lie, and the lines of its chain.

    Names are the same in every place, and so are lines: a file keeps its proof when it is moved.
    """

    @property
    def cipher(self) -> FileCipher: ...

    def add(self, name: str, stored: bytes, call_id: str) -> bool:
        """Creates a file and its line; returns False if the name is taken."""
        ...

    def link_once(self, name: str, file_hash: str, call_id: str) -> None:
        """Adds the line of a file whose writer crashed before it could."""
        ...

    def bury(self, link: "ChainLink") -> None:
        """Adds a tombstone."""
        ...

    def read(self, name: str) -> bytes:
        """The bytes as stored. Raises NotFound."""
        ...

    def find_hash(self, name: str) -> str | None:
        """The hash that a file was sealed with; None if the chain has no such file."""
        ...

    def remove(self, name: str) -> None:
        """Removes a file; one that is gone is no error."""
        ...

    def list_names(self, prefix: str = "") -> list[str]:
        """The sealed files, sorted."""
        ...

    def hash_files(self) -> dict[str, str]:
        """The hash of every file that is really there."""
        ...

    def read_chain(self) -> list[bytes]: ...

    def find_copy_faults(self) -> list[tuple[str, str]]:
        """What is wrong with the copy of the chain, and where; none without a copy."""
        ...

    def list_out_of_reach(self) -> tuple[str, ...]:
        """What an erasure could not remove."""
        ...

    def count_waiting(self) -> int:
        """Files that have not been uploaded."""
        ...

    def upload_waiting(self, *, takes_all: bool = False) -> datetime | None:
        """Uploads what waits; returns when more is due."""
        ...


class ArchiveFolder:
    """The archive in a folder of the home."""

    def __init__(self, path: Path, cipher: FileCipher) -> None:
        self.path = path
        self.cipher = cipher
        self._seals = SealIndex(path / CHAIN_FILE)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def check_key(self) -> None:
        """Refuses a key that is not the one of the encrypted files: two keys in one archive
        are one too many to keep.

        The check is on disk before the first encrypted file.
        """
        check = self.path / KEY_CHECK_FILE
        with _disk_errors(KEY_CHECK_FILE):
            if self.cipher.is_on:
                create_once(check, self.cipher.encrypt(b"the key fits\n"))
            stored = check.read_bytes() if check.exists() else b""
        try:
            self.cipher.decode(stored)
        except FileUnreadable:
            raise ConfigError(
                f"{check}: the archive was encrypted with another key; set "
                f"AFTERCALL_SECRET_KEY, or restore {KEY_FILE} from your copy of it"
            ) from None

    def create(self, name: str, stored: bytes) -> bool:
        """Creates a file, whole and synced; returns False if the name is taken."""
        with _disk_errors(name):
            return create_once(self.path / name, stored)

    def add(self, name: str, stored: bytes, call_id: str) -> bool:
        if not self.create(name, stored):
            return False
        fault_point("archive.after_file")
        self._link(name, hash_bytes(stored), call_id)
        return True

    def link_once(self, name: str, file_hash: str, call_id: str) -> None:
        if not any(parse_link(line).name == name for line in self.read_chain()):
            self._link(name, file_hash, call_id)

    def bury(self, link: "ChainLink") -> None:
        self._link(link.name, link.sha256, link.call, erased=True)

    def read(self, name: str) -> bytes:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"the archive has no file {name}") from None

    def find_hash(self, name: str) -> str | None:
        return self._seals.get(name)

    def remove(self, name: str) -> None:
        with _disk_errors(name):
            (self.path / name).unlink(missing_ok=True)
            sync_folder(self.path)

    def list_names(self, prefix: str = "") -> list[str]:
        names = (entry.name for entry in os.scandir(self.path))
        return sorted(
            name
            for name in names
            if name.endswith(".json")
            and not name.startswith(".")
            and name.startswith(prefix)
        )

    def hash_files(self) -> dict[str, str]:
        hashes = {}
        for name in self.list_names():
            with suppress(NotFound):  # erased meanwhile
                hashes[name] = hash_bytes(self.read(name))
        return hashes

    def find_copy_faults(self) -> list[tuple[str, str]]:
        return []

    def list_out_of_reach(self) -> tuple[str, ...]:
        return ()

    def count_waiting(self) -> int:
        return 0

    def upload_waiting(self, *, takes_all: bool = False) -> None:
        """A folder has everything."""

    def append_link(self, make_line: Callable[[bytes], bytes]) -> None:
        """Appends a line to the chain; `make_line` gets the last one (empty at first)."""
        with _disk_errors(CHAIN_FILE):
            chain = open_locked(self.path / CHAIN_FILE)
            try:
                end = os.fstat(chain).st_size
                if end == 0:
                    # the name of the chain must survive a crash, too
                    sync_folder(self.path)
                last, whole = _read_last_line(chain, end)
                if whole != end:
                    # a line cut off by a crash: its seal never returned
                    os.ftruncate(chain, whole)
                append_synced(chain, make_line(last) + b"\n")
            finally:
                os.close(chain)

    def read_chain(self) -> list[bytes]:
        """The whole lines of the chain."""
        try:
            whole, _, _ = (self.path / CHAIN_FILE).read_bytes().rpartition(b"\n")
        except FileNotFoundError:
            return []
        return whole.split(b"\n") if whole else []

    def _link(
        self, name: str, file_hash: str, call_id: str, *, erased: bool = False
    ) -> None:
        values: Json = {"name": name, "file_hash": file_hash, "call": call_id}
        self.append_link(partial(make_next_line, **values, erased=erased))

    def remove_stale_files(self) -> None:
        """Removes temporary files that crashed writers left."""
        for leftover in self.path.glob(".*.tmp"):
            try:
                if leftover.stat().st_mtime < time() - _STALE_FILE_AGE_S:
                    leftover.unlink()
            except FileNotFoundError:
                continue


class SealIndex:
    """The hash that each file was sealed with, read from the chain as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, str] = {}
        self._read_bytes = 0
        self._lock = Lock()

    def get(self, name: str) -> str | None:
        """None if the chain has no such file."""
        with self._lock:
            self._read_new_lines()
            return self._known.get(name)

    def _read_new_lines(self) -> None:
        try:
            with self._path.open("rb") as chain:
                chain.seek(self._read_bytes)
                whole, newline, _ = chain.read().rpartition(b"\n")
        except FileNotFoundError:
            return
        self._read_bytes += len(whole + newline)
        for line in whole.splitlines():
            with suppress(ChainBroken):  # `verify` reports it
                link = parse_link(line)
                self._known.setdefault(link.name, link.sha256)


_disk_errors = partial(translated_errors, folder="archive", error_type=ArchiveError)


def _read_last_line(file: int, end: int) -> tuple[bytes, int]:
    """The last whole line, and where whole lines end."""
    size = 4096
    while True:
        start = max(0, end - size)
        tail = os.pread(file, end - start, start)
        whole, newline, _ = tail.rpartition(b"\n")
        if newline and (b"\n" in whole or start == 0):
            return whole.rpartition(b"\n")[2], start + len(whole) + 1
        if start == 0:
            return b"", 0
        size *= 4


@dataclass(frozen=True)
class ChainLink:
    """A line of the chain: a sealed file, and the hash of the line before.

    An edited file no longer has its hash; a removed file leaves its line; an edited or removed
    line breaks the next one. An erased file has a second line, its tombstone.
    """

    n: int
    name: str
    sha256: str
    call: str
    previous: str
    erased: bool = False


def hash_bytes(data: bytes) -> str:
    return sha256(data).hexdigest()


def make_next_line(
    last: bytes, *, name: str, file_hash: str, call: str, erased: bool = False
) -> bytes:
    n = parse_link(last).n + 1 if last else 1
    previous = hash_bytes(last) if last else GENESIS_HASH
    link = asdict(ChainLink(n, name, file_hash, call, previous, erased))
    if not erased:
        del link["erased"]
    return json.dumps(link, separators=(",", ":"), ensure_ascii=False).encode()


def parse_link(line: bytes) -> ChainLink:
    try:
        data: Json = json.loads(line)
        return ChainLink(**data)
    except (ValueError, TypeError):
        raise ChainBroken(
            "a line of the archive's chain cannot be read; run `aftercall verify`"
        ) from None


def check_chain(
    lines: list[bytes],
) -> Iterator[tuple[int, ChainLink | None, str | None]]:
    """Yields the number of each line, its link if readable, and its fault if it has one."""
    previous = GENESIS_HASH
    for number, line in enumerate(lines, 1):
        try:
            link = parse_link(line)
        except ChainBroken:
            yield number, None, "cannot be read"
        else:
            fault = None
            if link.previous != previous:
                fault = (
                    "does not follow the line before it: a line was changed or removed"
                )
            elif link.n != number:
                fault = f"calls itself number {link.n}"
            yield number, link, fault
        previous = hash_bytes(line)


@dataclass(frozen=True)
class SealedFile:
    name: str
    sha256: str


def read_clear(place: ArchivePlace, name: str) -> bytes:
    """The JSON of a file, encrypted or not. Raises NotFound, FileUnreadable.

    Where files are encrypted, a clear one must be the one that was sealed.
    """
    stored = place.read(name)
    is_odd = place.cipher.is_on and not is_encrypted(stored)
    if is_odd and place.find_hash(name) not in (None, hash_bytes(stored)):
        raise FileUnreadable(
            f"{name} is not the file that was sealed; `aftercall verify` looks"
        )
    return place.cipher.decode(stored)


class Archive:
    """Sealed calls, each linked to the one before by its hash. Nothing is overwritten."""

    def __init__(self, place: ArchivePlace) -> None:
        self.place = place

    def seal(self, call: Call) -> SealedFile:
        """Writes the call into the archive, once. Sealing it again returns the first seal."""
        fault_point("archive.before_file")
        stored = self.place.cipher.encode(encode_call(call))
        sealed = self._create(make_base_name(call), stored, owner=call.id)
        fault_point("archive.after_chain")
        return sealed

    def add_addendum(
        self,
        call_id: str,
        archive_name: str,
        late: Sequence[Turn | Event],
        added_at: datetime,
    ) -> int:
        """Writes what came after the seal; returns the number of addenda of the call."""
        new = {
            "turns": dump_items(item for item in late if isinstance(item, Turn)),
            "events": dump_items(item for item in late if isinstance(item, Event)),
        }
        header = {
            "schema": 1,
            "addendum_to": call_id,
            "added_at": format_instant(added_at),
        }
        stored = self.place.cipher.encode(format_json(header | new))
        for number in range(1, _MAX_FILES_PER_NAME):
            name = make_addendum_name(archive_name, number)
            if self.place.add(name, stored, call_id):
                return number
            if new.items() <= json.loads(read_clear(self.place, name)).items():
                file_hash = hash_bytes(self.place.read(name))
                self.place.link_once(name, file_hash, call_id)
                return number
        raise ArchiveError(f"{archive_name} has too many addenda")

    def read(self, name: str) -> tuple[Call, tuple[Turn, ...]]:
        """A sealed call, and the turns of its addenda. Raises FileUnreadable."""
        call = Call.model_validate(
            json.loads(read_clear(self.place, name)), context={"sealed": True}
        )
        if not name.startswith(make_base_name(call)):
            raise FileUnreadable(f"{name} holds another call; `aftercall verify` looks")
        return call, tuple(
            turn for addendum in self._addenda(name) for turn in addendum
        )

    def list_files(self, name: str) -> list[str]:
        """The file of a sealed call and its addenda in order, as far as they exist."""
        stem = name.removesuffix(".json")
        found = [
            other
            for other in self.place.list_names(stem)
            if other == name or other.startswith(f"{stem}.addendum-")
        ]
        return sorted(found, key=lambda other: (other != name, len(other), other))

    def erase(self, call_id: str) -> list[str]:
        return self.erase_all([call_id])

    def erase_all(self, call_ids: Sequence[str]) -> list[str]:
        """Deletes the files of these calls and adds a tombstone to the chain for each.

        May be repeated after a crash. The tombstone comes first: a missing file without one is a
        fault, a file that still exists is unfinished work.
        """
        links = [parse_link(line) for line in self.place.read_chain()]
        buried = {link.name for link in links if link.erased}
        erased_calls = set(call_ids)
        theirs = [link for link in links if link.call in erased_calls]
        for link in theirs:
            if link.name not in buried:
                self.place.bury(link)
                fault_point("erase.after_tombstone")
        names = [link.name for link in theirs if not link.erased]
        for name in names:
            self.place.remove(name)
        return names

    def _addenda(self, name: str) -> Iterator[list[Turn]]:
        for number in range(1, _MAX_FILES_PER_NAME):
            try:
                late = read_clear(self.place, make_addendum_name(name, number))
            except NotFound:
                return
            yield [Turn.model_validate(turn) for turn in json.loads(late)["turns"]]

    def _create(self, base: str, stored: bytes, *, owner: str) -> SealedFile:
        """A name that another call has gets a number."""
        for twin in range(1, _MAX_FILES_PER_NAME):
            name = f"{base}.json" if twin == 1 else f"{base}-{twin}.json"
            if self.place.add(name, stored, owner):
                return SealedFile(name, hash_bytes(stored))
            existing = self.place.read(name)
            if json.loads(self.place.cipher.decode(existing)).get("id") == owner:
                # sealed before, by a process that crashed
                sealed = SealedFile(name, hash_bytes(existing))
                self.place.link_once(name, sealed.sha256, owner)
                return sealed
        raise ArchiveError(f"too many files are called {base}")


def make_addendum_name(archive_name: str, number: int) -> str:
    return f"{archive_name.removesuffix('.json')}.addendum-{number}.json"


def make_base_name(call: LiveCall) -> str:
    """`20260213T154112Z-120-twilio-CA…`: sorts by start, is safe on every file system."""
    start = call.started_at.astimezone(UTC)
    sid = "".join(
        char if char.isalnum() or char in "-_." else f"%{ord(char):02x}"
        for char in call.sid
    )
    if len(sid) > _MAX_SID_CHARS:
        sid = (
            f"{sid[: _MAX_SID_CHARS - 17]}~{sha256(call.sid.encode()).hexdigest()[:16]}"
        )
    return f"{start:%Y%m%dT%H%M%SZ}-{start.microsecond // 1000:03}-{call.source}-{sid}"
