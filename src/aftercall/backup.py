"""Backups: one file with the database, the archive, recordings, pages and the key of a home.

A backup is a tar file. Its first member says what it is; its last member lists every file with
its hash, so a backup that was cut or changed does not open. The database is copied as of one
moment, and the chain of the archive is cut to what that copy knows. A restored home is therefore
what a power cut at that moment would have left, and starts the way it does after one.
"""

import hashlib
import io
import json
import os
import shutil
import tarfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from sqlalchemy import Connection, func, select

from aftercall import __version__
from aftercall.clock import format_instant
from aftercall.db.connect import Database
from aftercall.db.dump import (
    OWN_DATABASE_FILE,
    dump_database,
    forget_processes,
    load_postgres,
    refuse_filled_postgres,
)
from aftercall.db.tables import archive_chain, calls, recordings
from aftercall.db.upgrade import (
    HOME_ID_FILE,
    current_revision,
    finish_restore,
    refuse_newer,
)
from aftercall.disk import (
    create_from_blocks,
    open_work_folder,
    sync_folder,
    translated_errors,
)
from aftercall.durable import (
    ENGINE_DATABASE_FILE,
    ENGINE_SCHEMA,
    create_engine_tables,
)
from aftercall.encryption import CHAIN_FILE, KEY_FILE, derive_key, load_key
from aftercall.errors import BackupFailed, BackupRefused, ChainBroken
from aftercall.faults import fault_point
from aftercall.journal.archive import (
    KEY_CHECK_FILE,
    ChainLink,
    make_addendum_name,
    parse_link,
)
from aftercall.model.json_fields import Json
from aftercall.settings import Settings

FORMAT = 1
HEADER_NAME = "aftercall-backup.json"
LIST_NAME = "files.json"
MAX_HEADER_BYTES = 10_000
MAX_ATTEMPTS = 3
ATTEMPT_PAUSE_S = 2.0
_BLOCK_BYTES = 1 << 20
_PREFIX = "aftercall-"
_SUFFIX = ".tar"
_ADDED_APART = ("run", "archive", "workspace", "spill")
_DATABASE_SUFFIXES = (".db", ".db-wal", ".db-shm", ".db-journal")


@dataclass(frozen=True)
class BackupHeader:
    """What a backup is of."""

    format: int
    version: str
    made_at: str
    database: str  # sqlite, postgresql
    revision: str
    home_id: str
    key: str  # a fingerprint: the key itself may be set in the environment


@dataclass(frozen=True)
class BackupReport:
    path: str
    calls: int
    files: int
    bytes: int
    has_key: bool
    faults: tuple[str, ...]
    """What was wrong in the home already; everything else is in the backup."""


class _CallerErased(Exception):
    """A caller was erased meanwhile: the backup must not keep what is gone."""


@dataclass
class _BackupWriter:
    """Adds files to the tar and remembers their hashes."""

    tar: tarfile.TarFile
    hashes: dict[str, str] = field(default_factory=dict)

    def add_bytes(self, name: str, data: bytes, mtime: float = 0.0) -> None:
        self._add(name, io.BytesIO(data), len(data), mtime)

    def add_file(self, name: str, path: Path) -> None:
        """Adds what the file holds now; leaves out links and what was just removed."""
        try:
            opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return
        with os.fdopen(opened, "rb") as file:
            stat = os.fstat(opened)
            if stat.st_size <= _BLOCK_BYTES:  # a page may shrink: read it first
                self.add_bytes(name, file.read(), stat.st_mtime)
            else:
                self._add(name, file, stat.st_size, stat.st_mtime)

    def add_folder(
        self, name: str, folder: Path, without: tuple[str, ...] = ()
    ) -> None:
        """Without files that are being written and without databases, which are dumped."""
        for parent, folders, files in os.walk(folder):
            if Path(parent) == folder:
                folders[:] = [name for name in folders if name not in without]
            place = PurePosixPath(name, *Path(parent).relative_to(folder).parts)
            for file in sorted(files):
                is_passing = file.startswith(".") and file.endswith(".tmp")
                if not is_passing and not file.endswith(_DATABASE_SUFFIXES):
                    self.add_file(str(place / file), Path(parent, file))

    def _add(self, name: str, file: IO[bytes], size: int, mtime: float) -> None:
        member = tarfile.TarInfo(name)
        member.size = size
        member.mtime = int(mtime)
        member.mode = 0o600
        reader = _HashingReader(file)
        self.tar.addfile(member, reader)
        self.hashes[name] = reader.hash.hexdigest()
        fault_point("backup.after_file")


class _HashingReader:
    def __init__(self, file: IO[bytes], origin: Path | None = None) -> None:
        self._file = file
        self._origin = origin
        self.hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._file.read(size)
        except tarfile.TarError:
            raise BackupRefused(f"{self._origin} is cut off or damaged") from None
        self.hash.update(data)
        return data


@dataclass(frozen=True)
class _KnownFiles:
    """The files that the copy of the database knows."""

    calls: int
    sealed: frozenset[str]
    """Archive files of sealed calls, with their addenda."""
    recordings: tuple[str, ...]
    tombstones: int  # in the chain of a bucket

    @classmethod
    def read(cls, connection: Connection) -> "_KnownFiles":
        query = select(calls.c.archive_name, calls.c.addenda).where(
            calls.c.state == "sealed", calls.c.archive_name.is_not(None)
        )
        rows = connection.execute(query).all()
        names = {name for name, _ in rows}
        for name, addenda in rows:
            names |= {make_addendum_name(name, n) for n in range(1, addenda + 1)}
        here = select(recordings.c.path).where(recordings.c.state == "here")
        paths = tuple(path for (path,) in connection.execute(here) if path)
        erased = select(func.count()).where(archive_chain.c.is_erased)
        tombstones = connection.execute(erased).scalar() or 0
        return cls(len(rows), frozenset(names), paths, tombstones)


def make_backup(
    settings: Settings, database: Database, to: Path, now: datetime
) -> BackupReport:
    """Writes a backup into the folder, reads it again, and only then gives it its name."""
    if not to.is_dir():
        raise BackupRefused(f"{to}: there is no such folder")
    if to.resolve().is_relative_to(settings.home.resolve()):
        raise BackupRefused(f"{to}: lies in the home, and would be lost with it")
    name = f"{_PREFIX}{now:%Y%m%dT%H%M%SZ}{_SUFFIX}"
    with (
        translated_errors(name, f"folder {to}", BackupFailed),
        open_work_folder(to, _PREFIX) as work,
    ):
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                report = _write_backup(settings, database, work / name, now)
                break
            except _CallerErased:
                if attempt == MAX_ATTEMPTS:
                    raise BackupFailed(
                        "a caller is being erased; try again, or finish that erasure"
                    ) from None
                time.sleep(ATTEMPT_PAUSE_S)
        deque(read_backup(work / name), maxlen=0)
        fault_point("backup.before_rename")
        (work / name).rename(to / name)
        sync_folder(to)
    return report


def _write_backup(
    settings: Settings, database: Database, file: Path, now: datetime
) -> BackupReport:
    """The spill first, then the database, then the files that the database names."""
    home = settings.home
    dump = file.parent / "database"
    shutil.rmtree(dump, ignore_errors=True)
    dump.mkdir(mode=0o700)
    with file.open("wb") as raw, tarfile.open(fileobj=raw, mode="w") as tar:
        writer = _BackupWriter(tar)
        header = _make_header(settings, database, now)
        writer.add_bytes(HEADER_NAME, _to_json(asdict(header)))
        # Before the database: once spilled words are in it, their files are removed.
        writer.add_folder("home/spill", home / "spill")
        # Calls of lines that are in the chain by now are in the copy.
        lines_before = len(_read_chain(home))
        engine = home / ENGINE_DATABASE_FILE
        with dump_database(database, engine, ENGINE_SCHEMA, dump) as connection:
            known = _KnownFiles.read(connection)
        for copied in sorted(dump.iterdir()):
            writer.add_file(f"database/{copied.name}", copied)
        kept, faults = _add_archive(writer, settings, lines_before, known)
        writer.add_folder("home", home, without=_ADDED_APART)
        pages = settings.workspace or home / "workspace"
        writer.add_folder("home/workspace", pages.resolve())
        faults += [
            f"{path}: the database lists this recording, but it is not there"
            for path in known.recordings
            if f"home/{path}" not in writer.hashes and not settings.archive.url
        ]
        with database.read() as connection:
            is_erasing = _KnownFiles.read(connection).tombstones != known.tombstones
        newer = _parse(_read_chain(home)[kept:])
        if is_erasing or any(link and link.erased for link in newer):
            raise _CallerErased
        files = len(writer.hashes)
        has_key = f"home/{KEY_FILE}" in writer.hashes
        writer.add_bytes(LIST_NAME, _to_json(writer.hashes))
        tar.close()
        raw.flush()
        os.fsync(raw.fileno())
    path = file.parent.parent / file.name
    size = file.stat().st_size
    return BackupReport(str(path), known.calls, files, size, has_key, tuple(faults))


def _make_header(settings: Settings, database: Database, now: datetime) -> BackupHeader:
    with database.read() as connection:
        revision = current_revision(connection)
    return BackupHeader(
        FORMAT,
        __version__,
        format_instant(now),
        database.dialect,
        revision or "",
        (settings.home / HOME_ID_FILE).read_text("ascii").strip(),
        _fingerprint(settings),
    )


def _fingerprint(settings: Settings) -> str:
    return hashlib.sha256(derive_key(load_key(settings), "backup")).hexdigest()[:32]


def _read_chain(home: Path) -> list[bytes]:
    try:
        data = (home / "archive" / CHAIN_FILE).read_bytes()
    except FileNotFoundError:
        return []
    return [line for line in data.splitlines(keepends=True) if line.endswith(b"\n")]


def _parse(lines: list[bytes]) -> Iterator[ChainLink | None]:
    for line in lines:
        try:
            yield parse_link(line.rstrip(b"\n"))
        except ChainBroken:  # `verify` reports it
            yield None


def _add_archive(
    writer: _BackupWriter, settings: Settings, lines_before: int, known: _KnownFiles
) -> tuple[int, list[str]]:
    """Adds the chain, cut behind the last line that the copied database needs, and the files of
    its lines; returns the number of lines, and the faults.
    """
    home = settings.home
    lines = _read_chain(home)
    if (
        settings.archive.url
    ):  # a bucket is no part of a home; this waits to be moved there
        writer.add_folder("home/archive", home / "archive")
        return len(lines), []
    links = list(_parse(lines))
    needed = (
        n for n, link in enumerate(links, 1) if link and link.name in known.sealed
    )
    count = max(lines_before, *needed, 0)
    kept = [link for link in links[:count] if link]
    erased = {link.name for link in kept if link.erased}
    if erased & known.sealed:
        raise _CallerErased
    faults = []
    for link in kept:
        if link.name in erased:
            continue
        name = f"home/archive/{link.name}"
        writer.add_file(name, home / "archive" / link.name)
        if writer.hashes.get(name) != link.sha256:
            faults.append(
                f"archive/{link.name}: is not the file that was sealed, or is gone; "
                "`aftercall verify` looks"
            )
    writer.add_bytes(f"home/archive/{CHAIN_FILE}", b"".join(lines[:count]))
    check = home / "archive" / KEY_CHECK_FILE
    writer.add_file(f"home/archive/{KEY_CHECK_FILE}", check)
    return count, faults


def _to_json(data: Json) -> bytes:
    return json.dumps(data, indent=1).encode() + b"\n"


def read_header(file: Path) -> BackupHeader:
    """Raises BackupRefused for a file that is no backup, or one of a newer form."""
    try:
        with tarfile.open(file) as tar:
            member = tar.next()
            opened = tar.extractfile(member) if member else None
            if not member or not opened or member.name != HEADER_NAME:
                raise BackupRefused(f"{file} is not a backup of Aftercall")
            data = json.loads(opened.read(MAX_HEADER_BYTES))
        if data["format"] != FORMAT:
            raise BackupRefused(
                f"{file} was made by Aftercall {data['version']}, whose backups this version does "
                "not know; install that version to restore it"
            )
        return BackupHeader(**data)
    except OSError as error:
        raise BackupRefused(f"{file} cannot be read ({error.strerror})") from None
    except (tarfile.TarError, ValueError, TypeError, KeyError):
        raise BackupRefused(f"{file} is not a backup of Aftercall") from None


def read_backup(file: Path) -> Iterator[tuple[str, float, Iterator[bytes]]]:
    """Name, time and blocks of each file; a file's blocks are read before the next file.

    Raises BackupRefused at the end, or before, unless every byte is as it was written.
    """
    found: dict[str, str] = {}
    listed: dict[str, str] | None = None
    try:
        with tarfile.open(file, mode="r|") as tar:
            for member in tar:
                opened = tar.extractfile(member) if member.isreg() else None
                if opened is None or listed is not None or not _is_safe(member.name):
                    raise BackupRefused(
                        f"{file} holds {member.name!r}, which no backup has"
                    )
                if member.name == LIST_NAME:
                    listed = json.loads(opened.read())
                    continue
                reader = _HashingReader(opened, file)
                blocks = iter(partial(reader.read, _BLOCK_BYTES), b"")
                yield member.name, member.mtime, blocks
                deque(blocks, maxlen=0)  # what the caller has not read
                found[member.name] = reader.hash.hexdigest()
    except (tarfile.TarError, EOFError, ValueError, OSError):
        listed = None
    if listed is None:
        raise BackupRefused(f"{file} is cut off or damaged")
    for name in found | listed:
        if found.get(name) != listed.get(name):
            raise BackupRefused(
                f"{file} is damaged: {name} in it is not what was backed up"
            )


def _is_safe(name: str) -> bool:
    path = PurePosixPath(name)
    first = path.parts[0] if path.parts else ""
    places = ("home", "database", HEADER_NAME, LIST_NAME)
    return first in places and ".." not in path.parts


def restore_backup(settings: Settings, file: Path, now: datetime) -> BackupHeader:
    """Fills an empty home and an empty database, or changes neither.

    A restore that was cut off is simply started again.
    """
    header = read_header(file)
    refuse_newer(header.revision)
    if obstacle := _find_obstacle(settings, header):
        raise BackupRefused(obstacle)
    if header.database == "postgresql":
        with closing(Database(settings.database_url)) as database:
            refuse_filled_postgres(database)
    home = settings.home
    stage = home.with_name(f".{home.name}.restoring")
    with translated_errors(file.name, f"folder {home.parent}", BackupFailed):
        try:
            shutil.rmtree(stage, ignore_errors=True)
            (stage / "home").mkdir(mode=0o700, parents=True)
            for name, mtime, blocks in read_backup(file):
                create_from_blocks(stage / name, blocks, mtime)
                fault_point("restore.after_file")
            _refuse_key(settings, header, stage / "home")
            if header.database == "sqlite":
                _place_sqlite(stage, home)
            else:
                _load_postgres(settings, header, stage, format_instant(now))
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    return header


def _find_obstacle(settings: Settings, header: BackupHeader) -> str | None:
    home = settings.home
    url = settings.database_url
    if home.is_mount():
        return f"{home} is a mount point; set AFTERCALL_HOME to a folder below it"
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        return (
            f"{home} is not empty, and a restore never writes over a home; move it away, or set "
            "AFTERCALL_HOME to another folder"
        )
    if settings.workspace is not None:
        return (
            "pages are restored into the home; unset AFTERCALL_WORKSPACE, restore, and then move "
            f"{home / 'workspace'} to {settings.workspace}"
        )
    if header.database == "postgresql" and not url.startswith("postgresql"):
        return "the backup is of Postgres; name an empty one in AFTERCALL_DATABASE_URL"
    if header.database == "sqlite" and url != f"sqlite:///{home / OWN_DATABASE_FILE}":
        return "the backup is of SQLite, in the home; unset AFTERCALL_DATABASE_URL"
    return None


def _refuse_key(settings: Settings, header: BackupHeader, home: Path) -> None:
    """The key in the settings, or the one in the backup, must be the key of its secrets."""
    if settings.secret_key is None and not (home / KEY_FILE).exists():
        raise BackupRefused(
            "the backup has no key, because it was set in the environment; set "
            "AFTERCALL_SECRET_KEY to the same key"
        )
    if _fingerprint(settings.model_copy(update={"home": home})) != header.key:
        raise BackupRefused("AFTERCALL_SECRET_KEY is not the key of this backup")


def _place_sqlite(stage: Path, home: Path) -> None:
    for file in (stage / "database").iterdir():
        file.rename(stage / "home" / file.name)
    url = f"sqlite:///{stage / 'home' / OWN_DATABASE_FILE}"
    with closing(Database(url)) as database, database.write() as connection:
        forget_processes(connection)
    fault_point("restore.after_database")
    _place_home(stage, home)


def _load_postgres(
    settings: Settings, header: BackupHeader, stage: Path, at: str
) -> None:
    create_engine_tables(settings)
    with closing(Database(settings.database_url)) as database:
        load_postgres(database, header.revision, stage / "database", at)
        fault_point("restore.after_database")
        _place_home(stage, settings.home)
        finish_restore(database)


def _place_home(stage: Path, home: Path) -> None:
    os.sync()  # one sync is quicker than one for each of many thousand files
    (stage / "home").rename(home)
    sync_folder(home.parent)
    fault_point("restore.after_rename")
