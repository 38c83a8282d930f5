"""The archive in a bucket, with its chain in the database.

A seal is one transaction: the line of the chain and the file itself, which waits in the database.
Any process may upload it; a process that dies, or a store that is away, delays the upload only.
The chain is published beside the objects in segments, which are created once like every object.
What is published stays: lines that are not are linked anew behind those of another writer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import md5
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.statements import chunked, lock_name
from aftercall.db.tables import archive_chain as chain
from aftercall.db.tables import calls
from aftercall.encryption import FileCipher
from aftercall.errors import (
    ArchiveError,
    ChainBroken,
    NotFound,
    ObjectStoreUnreachable,
)
from aftercall.faults import fault_point
from aftercall.journal.archive import (
    GENESIS_HASH,
    ArchiveFolder,
    ChainLink,
    hash_bytes,
    make_next_line,
    parse_link,
)
from aftercall.journal.bucket import Bucket
from aftercall.log import get_logger
from aftercall.model.json_fields import Json

FILES_FOLDER = "archive"
CHAIN_FOLDER = "chain"
BATCH_FILES = 200
MAX_SEGMENT_LINES = 1_000
PUBLISH_INTERVAL = timedelta(seconds=60)  # fewer, longer segments
OTHERS_AGE = timedelta(seconds=30)  # then any process uploads what one has sealed
VERSIONS_OUT_OF_REACH = (
    "older versions in the bucket, if it keeps versions: without AWS_SECRET_ACCESS_KEY we "
    "cannot remove them"
)

log = get_logger("archive")


class BucketChain:
    """The lines of the chain: rows in the database, segments in the bucket."""

    def __init__(self, bucket: Bucket, database: Database, clock: Clock) -> None:
        self._bucket = bucket
        self._database = database
        self._clock = clock

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that may append lines; one at a time has the end of the chain."""
        with self._database.write() as connection:
            lock_name(connection, "archive chain")
            yield connection

    def append(self, connection: Connection, link: ChainLink, **columns: Any) -> None:
        """Adds the line of a file; its number and the hash before it follow from the last."""
        query = select(chain.c.line).order_by(chain.c.n.desc()).limit(1)
        line = make_next_line(
            str(connection.execute(query).scalar() or "").encode(),
            name=link.name,
            file_hash=link.sha256,
            call=link.call,
            erased=link.erased,
        )
        connection.execute(insert(chain), self.make_row(line) | columns)

    def make_row(self, line: bytes) -> Json:
        link = parse_link(line)
        return {
            "n": link.n,
            "name": link.name,
            "line": line.decode(),
            "is_erased": link.erased,
            "stored": None,
            "is_uploaded": link.erased,  # a tombstone has no file
            "etag": None,
            "is_published": False,
            "sealed_at": self._clock.now(),
        }

    def read_lines(self) -> list[bytes]:
        query = select(chain.c.line).order_by(chain.c.n)
        return [line.encode() for line in self._database.fetch_column(query)]

    def publish(self, *, is_due: bool = False) -> datetime | None:
        """Writes the segments that are due; returns when the next one is."""
        query = _unpublished(select(chain.c.n, chain.c.line, chain.c.sealed_at))
        while True:
            rows = self._database.fetch(query.limit(MAX_SEGMENT_LINES))
            if not rows:
                return None
            due_at: datetime = rows[0].sealed_at + PUBLISH_INTERVAL
            is_full = len(rows) == MAX_SEGMENT_LINES
            if not (is_due or is_full or due_at <= self._clock.now()):
                return due_at
            segment = _join_lines([row.line.encode() for row in rows])
            if self._bucket.create(_segment_key(rows[0].n), segment) is None:
                self.adopt()  # written before a crash, or by another process
                continue
            fault_point("upload.after_segment")
            with self._database.write() as connection:
                _mark_published(connection, rows[-1].n)

    def adopt(self) -> None:
        """Takes over what is published and unknown here: an older or empty database was put in
        the place of the one that wrote it, or a process died before it could mark it.
        """
        with self._database.read() as connection:
            published = _count_published(connection)
        keys = self._bucket.list_tags(CHAIN_FOLDER, after=_segment_key(published))
        read = self._bucket.read
        lines = [line for key in sorted(keys) for line in read(key).splitlines()]
        if not lines:
            return
        objects = self._bucket.list_tags(FILES_FOLDER)
        with self.write() as connection:
            if _count_published(connection) != published:
                return  # another process did it
            ours = connection.execute(_unpublished(select(chain))).all()
            if [row.line.encode() for row in ours[: len(lines)]] != lines:
                _refuse_gap(connection, published, lines)
                connection.execute(delete(chain).where(chain.c.n > published))
                self._relink(connection, lines, ours, objects)
            _mark_published(connection, published + len(lines))

    def find_faults(self) -> list[tuple[str, str]]:
        """Compares the segments with our lines; fetches those whose tag does not tell."""
        lines = self.read_lines()
        with self._database.read() as connection:
            published = _count_published(connection)
        faults = []
        behind = 1
        tags = self._bucket.list_tags(CHAIN_FOLDER)
        firsts = [
            int(key[len(CHAIN_FOLDER) + 1 :].partition(".")[0]) for key in sorted(tags)
        ]
        for first, next_first in zip(
            firsts, [*firsts[1:], published + 1], strict=False
        ):
            key = _segment_key(first)
            found = _join_lines(lines[first - 1 : next_first - 1])
            if tags[key].strip('"') != md5(found, usedforsecurity=False).hexdigest():
                found = self._bucket.read(key)
            count = found.count(b"\n")
            if found != _join_lines(lines[first - 1 : first - 1 + count]):
                faults.append((key, "is not the chain that the database has"))
            elif first != behind:
                faults.append((key, "the segment before it is missing"))
            behind = first + count
        if behind <= published:
            faults.append((_segment_key(behind), "was published, and is missing"))
        return faults

    def _relink(
        self,
        connection: Connection,
        lines: Sequence[bytes],
        ours: Sequence[Any],
        objects: Mapping[str, str],
    ) -> None:
        """Puts the published lines in place, and ours behind them. A first seal stays."""
        before = {row.line: row._asdict() for row in ours}
        taken = set()
        for line in lines:
            link = parse_link(line)
            row = self.make_row(line)
            row["is_uploaded"] |= _key(link.name) in objects
            connection.execute(insert(chain), before.pop(line.decode(), row))
            taken.add((link.name, link.erased))
            sealed = {"archive_sha256": link.sha256}
            is_call = calls.c.archive_name == link.name
            connection.execute(update(calls).where(is_call).values(sealed))
        for old, row in before.items():
            link = parse_link(old.encode())
            if (link.name, link.erased) not in taken:
                kept = {key: row[key] for key in ("stored", "is_uploaded", "etag")}
                self.append(connection, link, **kept)


class ArchiveBucket:
    """The files of an archive: in the bucket, or in the database until they are uploaded.

    `folder` holds the files of before, until `aftercall archive move` has moved them.
    """

    def __init__(
        self,
        bucket: Bucket,
        database: Database,
        clock: Clock,
        folder: ArchiveFolder,
        prepare: Callable[[], None],
    ) -> None:
        self.bucket = bucket
        self._chain = BucketChain(bucket, database, clock)
        self._database = database
        self._clock = clock
        self._folder = folder
        self._prepare_bucket = prepare
        self._sealed_here: set[str] = set()
        self._is_ready = False

    @property
    def cipher(self) -> FileCipher:
        return self._folder.cipher

    def open(self) -> None:
        """Takes over the chain of the folder and the one in the bucket.

        While the store is away the process starts all the same, and does it later.
        """
        with self._chain.write() as connection:
            if connection.execute(select(chain.c.n).limit(1)).first() is None:
                for line in self._folder.read_chain():
                    connection.execute(insert(chain), self._chain.make_row(line))
        try:
            self._make_ready()
        except ObjectStoreUnreachable as error:
            log.warning("the object store is away", error=error.code)

    def add(self, name: str, stored: bytes, call_id: str) -> bool:
        with self._chain.write() as connection:
            if connection.execute(select(chain.c.n).where(_is_file(name))).first():
                return False
            link = ChainLink(0, name, hash_bytes(stored), call_id, "")
            self._chain.append(connection, link, stored=stored)
        self._sealed_here.add(name)
        return True

    def link_once(self, name: str, file_hash: str, call_id: str) -> None:
        """A file and its line are one transaction here."""

    def bury(self, link: ChainLink) -> None:
        with self._chain.write() as connection:
            self._chain.append(connection, replace(link, erased=True))

    def read(self, name: str) -> bytes:
        row = self._find_file(name)
        if row is None:
            raise NotFound(f"the archive has no file {name}")
        if row.stored is not None:
            return bytes(row.stored)
        if row.is_uploaded:
            return self.bucket.read(_key(name))
        return self._folder.read(name)

    def find_hash(self, name: str) -> str | None:
        row = self._find_file(name)
        return parse_link(row.line.encode()).sha256 if row else None

    def remove(self, name: str) -> None:
        """Its tombstone is there already, so that nobody uploads it any more."""
        with self._database.write() as connection:
            gone = {"stored": None, "etag": None, "is_uploaded": True}
            connection.execute(update(chain).where(_is_file(name)).values(gone))
        self.bucket.remove(_key(name))
        self._folder.remove(name)

    def list_names(self, prefix: str = "") -> list[str]:
        """From the database: whatever is sealed has a line."""
        query = select(chain.c.name).where(~chain.c.is_erased)
        erased = select(chain.c.name).where(chain.c.is_erased)
        query = query.where(chain.c.name.not_in(erased))
        if prefix:
            query = query.where(chain.c.name.startswith(prefix, autoescape=True))
        return sorted(self._database.fetch_column(query))

    def hash_files(self) -> dict[str, str]:
        """An object whose tag is the one of its last check is not fetched again."""
        columns = (chain.c.name, chain.c.line, chain.c.etag, chain.c.is_uploaded)
        rows = self._database.fetch(select(*columns).where(~chain.c.is_erased))
        sealed = {row.name: parse_link(row.line.encode()).sha256 for row in rows}
        checked = {row.name: row.etag for row in rows}
        tags = {
            _name(key): tag for key, tag in self.bucket.list_tags(FILES_FOLDER).items()
        }
        hashes = {
            name: sealed[name] for name in tags if checked.get(name) == tags[name]
        }
        fetched = self.bucket.hash_all(
            _key(name) for name in tags if name not in hashes
        )
        right = []
        for key, file_hash in fetched:
            name = _name(key)
            hashes[name] = file_hash
            if sealed.get(name) == file_hash:
                right.append({"file": name, "tag": tags[name]})
        if right:
            self._mark_uploaded(right)
        for row in rows:
            if not row.is_uploaded and row.name not in hashes:
                with suppress(NotFound):
                    hashes[row.name] = hash_bytes(self.read(row.name))
        return hashes

    def read_chain(self) -> list[bytes]:
        return self._chain.read_lines()

    def find_copy_faults(self) -> list[tuple[str, str]]:
        return self._chain.find_faults()

    def list_out_of_reach(self) -> tuple[str, ...]:
        kept = len(self.bucket.locked_keys)
        locked = f"{kept} objects that the bucket's lock keeps, hidden, until it ends"
        versions = () if self.bucket.removes_versions else (VERSIONS_OUT_OF_REACH,)
        return ((locked,) if kept else ()) + versions

    def count_waiting(self) -> int:
        query = select(func.count()).where(chain.c.stored.is_not(None))
        return self._database.fetch_value(query) or 0

    def upload_waiting(self, *, takes_all: bool = False) -> datetime | None:
        """Uploads what waits and publishes its lines; returns when the next ones are due.

        Leaves fresh files to the processes that sealed them, unless it `takes_all`.
        """
        self._make_ready()
        oldest = self._clock.now() - OTHERS_AGE
        names = [
            name
            for name, sealed_at in self._list_files(chain.c.stored.is_not(None))
            if takes_all or name in self._sealed_here or sealed_at < oldest
        ]
        done: set[str] = set()
        for batch in chunked(names, BATCH_FILES):
            done |= self._transfer(batch)
        due_at = self._chain.publish()
        if any(self._load(name) for name in names if name not in done):
            raise ArchiveError(
                "sealed files cannot be uploaded: the bucket refuses them, or holds other files "
                "of their names; nothing was overwritten"
            )
        return due_at

    def move_folder(self, on_progress: Callable[[int, int], None]) -> list[str]:
        """Moves the files of the folder; returns those that are gone or not as sealed.

        May be cut off and started again: a file leaves the folder once it is in the bucket.
        """
        self._make_ready()
        local = self._list_files(and_(~chain.c.is_uploaded, chain.c.stored.is_(None)))
        names = [name for name, _ in local]
        wrong: list[str] = []
        done = 0
        for batch in chunked(names, BATCH_FILES):
            moved = self._transfer(batch)
            for name in moved:
                self._folder.remove(name)
            wrong += [name for name in batch if name not in moved]
            done += len(batch)
            on_progress(done, len(names))
        self._chain.publish(is_due=True)
        return wrong

    def _make_ready(self) -> None:
        """What has to be looked at once, as soon as the store answers."""
        if not self._is_ready:
            self._prepare_bucket()
            self._chain.adopt()
            self._is_ready = True

    def _transfer(self, names: Sequence[str]) -> set[str]:
        """Uploads these files and marks them; returns which."""
        done: list[dict[str, str]] = []
        keys = [_key(name) for name in names]
        try:
            for key, tag in self.bucket.create_all(keys, self._load_key):
                done.append({"file": _name(key), "tag": tag})
        finally:
            if done:
                self._mark_uploaded(done)
                self._remove_erased([made["file"] for made in done])
        return {made["file"] for made in done}

    def _mark_uploaded(self, done: Sequence[Mapping[str, str]]) -> None:
        is_file = and_(chain.c.name == bindparam("file"), ~chain.c.is_erased)
        uploaded = (
            update(chain)
            .where(is_file)
            .values(stored=None, is_uploaded=True, etag=bindparam("tag"))
        )
        with self._database.write() as connection:
            connection.execute(uploaded, done)
        fault_point("upload.after_mark")
        self._sealed_here.difference_update(made["file"] for made in done)

    def _remove_erased(self, names: Sequence[str]) -> None:
        """What was erased while it was uploaded."""
        query = select(chain.c.name).where(chain.c.is_erased, chain.c.name.in_(names))
        erased = list(self._database.fetch_column(query))
        for name in erased:
            self.remove(name)

    def _list_files(self, condition: ColumnElement[bool]) -> list[tuple[str, datetime]]:
        query = (
            select(chain.c.name, chain.c.sealed_at)
            .where(condition, ~chain.c.is_erased)
            .order_by(chain.c.n)
        )
        return [(name, at) for name, at in self._database.fetch(query)]

    def _load_key(self, key: str) -> bytes | None:
        return self._load(_name(key))

    def _load(self, name: str) -> bytes | None:
        """A file that is not in the bucket; None if it is by now, or not as it was sealed."""
        row = self._find_file(name)
        if row is None or row.is_uploaded:
            return None
        with suppress(NotFound):
            stored = row.stored or self._folder.read(name)
            if hash_bytes(stored) == parse_link(row.line.encode()).sha256:
                return bytes(stored)
        return None

    def _find_file(self, name: str) -> Any:
        return self._database.fetch_first(select(chain).where(_is_file(name)))


def _key(name: str) -> str:
    return f"{FILES_FOLDER}/{name}"


def _name(key: str) -> str:
    return key.removeprefix(f"{FILES_FOLDER}/")


def _segment_key(first: int) -> str:
    return f"{CHAIN_FOLDER}/{first:012}.jsonl"


def _join_lines(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _is_file(name: str) -> ColumnElement[bool]:
    return and_(chain.c.name == name, ~chain.c.is_erased)


def _count_published(connection: Connection) -> int:
    """Lines are published in order: the number of the last one."""
    query = select(func.max(chain.c.n)).where(chain.c.is_published)
    return connection.execute(query).scalar() or 0


def _unpublished(query: Select[Any]) -> Select[Any]:
    return query.where(~chain.c.is_published).order_by(chain.c.n)


def _mark_published(connection: Connection, last: int) -> None:
    is_new = and_(chain.c.n <= last, ~chain.c.is_published)
    connection.execute(update(chain).where(is_new).values(is_published=True))


def _refuse_gap(connection: Connection, published: int, lines: Sequence[bytes]) -> None:
    """Published lines must follow those that we know."""
    query = select(chain.c.line).where(chain.c.n == published)
    last = connection.execute(query).scalar()
    previous = hash_bytes(last.encode()) if last else GENESIS_HASH
    for line in lines:
        if parse_link(line).previous != previous:
            raise ChainBroken(
                "the chain in the bucket does not follow the one in the database: another "
                "archive is there, or a segment was changed"
            )
        previous = hash_bytes(line)
