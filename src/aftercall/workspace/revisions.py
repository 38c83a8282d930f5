"""The revisions of pages in the database: the newest one of a page is the page.

A note says which revision a machine wrote into a file.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath

from sqlalchemy import ColumnElement, Connection, delete, func, select, text

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import page_revisions
from aftercall.disk import replace_synced
from aftercall.errors import WorkspaceError
from aftercall.log import get_logger
from aftercall.workspace import files
from aftercall.workspace.paths import CONFLICT_SUFFIX

MAX_REVISIONS = 100  # of one page; CALLS.md gets one with every call
BATCH_SIZE = 1_000
MAX_DELETED = (
    5  # files that a hand deletes at once; more are lost, and are written again
)
LOSS_PERIOD = timedelta(minutes=10)  # in which no deletion counts

log = get_logger("workspace")


@dataclass(frozen=True)
class PageRevision:
    """One state of a page, without a body if it was removed. 0 is a page that never was."""

    key: str
    number: int
    path: str | None
    body: bytes | None
    author: str
    changed_at: datetime

    @property
    def is_erased(self) -> bool:
        return self.number > 0 and self.path is None

    @property
    def text(self) -> str:
        return (self.body or b"").decode("utf-8", "surrogateescape")

    def to_dated_text(self, path: Path) -> files.DatedText | None:
        """None for a page that was removed. Raises for what is no text."""
        text = files.decode(path, self.body)
        return (text, self.changed_at) if text is not None else None


@dataclass(frozen=True)
class PageChange:
    """A row that is the newest of its page."""

    n: int
    key: str
    number: int
    path: str | None


@dataclass(frozen=True)
class FileNote:
    """What this machine wrote into a file."""

    path: str
    revision: int
    sha256: str
    mtime_ns: int


@dataclass(frozen=True)
class PagePlace:
    """One page: its path in the workspace, the file behind any links, and the note of it."""

    path: str
    key: str
    file: Path
    note: Path

    def write_note(self, revision: PageRevision) -> bool:
        """False if the file is not as the revision says: a hand was quicker."""
        try:
            found = self.file.stat()  # before the body: a later change has a later time
        except FileNotFoundError:
            return False
        if files.load_bytes(self.file) != revision.body:
            return False
        sha256 = hashlib.sha256(revision.body or b"").hexdigest()
        note = FileNote(self.path, revision.number, sha256, found.st_mtime_ns)
        self.note.parent.mkdir(parents=True, exist_ok=True)
        replace_synced(self.note, json.dumps(asdict(note)).encode())
        return True

    def is_as_written(self) -> bool:
        """Whether no hand changed the file. A missing file is for the scan to judge."""
        try:
            found = self.file.stat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        note = read_note(self.note)
        if note is None:
            return False
        if note.mtime_ns == found.st_mtime_ns:
            return True
        return is_noted(files.load_bytes(self.file), note)


def read_note(file: Path) -> FileNote | None:
    try:
        return FileNote(**json.loads(file.read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def is_noted(body: bytes | None, note: FileNote | None) -> bool:
    """Whether a file is as it was written; one that is missing is for the scan to judge."""
    if body is None or note is None:
        return body is None
    return hashlib.sha256(body).hexdigest() == note.sha256


class MissingFiles:
    """Which missing files a hand deleted, and which were lost.

    A hand deletes a few files that this process has seen, and they stay away. All others are
    lost with a folder or a disk, or while no process ran: they are written again.
    """

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._seen: frozenset[str] = frozenset()
        self._waiting: frozenset[str] = frozenset()
        self._loss: tuple[datetime, WorkspaceError] | None = None

    def judge(
        self, found: Iterable[str], missing: Sequence[str], known: int
    ) -> tuple[list[str], list[str]]:
        """The paths of deleted and of lost files, after a look at all files.

        One that is missing for the first time waits: more may be vanishing at this moment.
        """
        if len(missing) > MAX_DELETED or 2 * len(missing) > known:
            self._note_loss(len(missing), known)
        trusted = frozenset() if self.find_loss() else self._seen
        deleted = []
        lost = []
        waiting = []
        for path in missing:
            if path not in trusted:
                lost.append(path)
            elif path in self._waiting:
                deleted.append(path)
            else:
                waiting.append(path)
        if lost:
            log.warning("missing files are written again", files=len(lost))
        self._waiting = frozenset(waiting)
        self._seen = self._waiting.union(found)
        return deleted, lost

    def forget_files(self) -> None:
        """The notes are gone, and so may be any file: none was seen."""
        self._seen = frozenset()

    def find_loss(self) -> WorkspaceError | None:
        """The last time that many were missing at once, for a while."""
        if self._loss is None or self._clock.now() - self._loss[0] >= LOSS_PERIOD:
            return None
        return self._loss[1]

    def _note_loss(self, missing: int, known: int) -> None:
        reason = (
            f"{self._root}: {missing} of {known} files were missing and are written again; a "
            f"deletion by hand counts for at most {MAX_DELETED} files, or half of them, at once"
        )
        self._loss = (self._clock.now(), WorkspaceError(reason))


def make_key(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()


def is_superseded() -> ColumnElement[bool]:
    """Whether a row is history: its page has a newer revision."""
    newer = page_revisions.alias("newer")
    is_newer = newer.c.revision > page_revisions.c.revision
    query = select(newer.c.n).where(newer.c.key == page_revisions.c.key, is_newer)
    return query.exists()


class _RevisionTaken(Exception):
    """Another process was quicker."""


class RevisionStore:
    """The rows of all pages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find_newest(self, key: str, now: datetime) -> PageRevision:
        columns = page_revisions.c
        query = (
            select(
                columns.key,
                columns.revision,
                columns.path,
                columns.body,
                columns.author,
                columns.changed_at,
            )
            .where(columns.key == key)
            .order_by(columns.revision.desc())
            .limit(1)
        )
        row = self._database.fetch_first(query)
        return PageRevision(*row) if row else PageRevision(key, 0, None, None, "", now)

    def find_body(self, key: str, number: int) -> bytes | None:
        """None if the revision is past its time."""
        query = select(page_revisions.c.body).where(
            page_revisions.c.key == key, page_revisions.c.revision == number
        )
        return self._database.fetch_value(query)

    def find_last_body(self, key: str) -> bytes | None:
        """The body before the page was removed, if it was; None if none is kept."""
        query = select(page_revisions.c.body).where(
            page_revisions.c.key == key, page_revisions.c.body.is_not(None)
        )
        newest_first = query.order_by(page_revisions.c.revision.desc())
        return self._database.fetch_value(newest_first.limit(1))

    def add(self, *revisions: PageRevision) -> bool:
        """Adds all or, if one of these numbers is taken, none."""
        try:
            with self._database.write() as connection:
                for revision in revisions:
                    _insert(connection, revision)
                    oldest = revision.number - MAX_REVISIONS
                    is_old = page_revisions.c.revision <= oldest
                    _delete(connection, revision.key, is_old)
        except _RevisionTaken:
            return False
        return True

    def delete_history(self, key: str) -> None:
        with self._database.write() as connection:
            _delete(connection, key, is_superseded())

    def erase(
        self, key: str, author: str, now: datetime, *, is_folder: bool = False
    ) -> bool:
        """Removes all revisions; what stays is the number of the removal, without a path.

        The key of a folder, which has no revisions, tells machines to remove what they have in it.
        """
        while True:
            newest = self.find_newest(key, now)
            if newest.path is None and not is_folder:
                return False
            gone = PageRevision(key, newest.number + 1, None, None, author, now)
            with suppress(_RevisionTaken), self._database.write() as connection:
                _insert(connection, gone)
                _delete(connection, key, page_revisions.c.revision < gone.number)
                return newest.body is not None

    def find_erasure(self, path: str) -> datetime | None:
        """When the page, or a folder that it is in, was erased the last time."""
        columns = page_revisions.c
        places = (path, *map(str, PurePosixPath(path).parents))
        is_part = columns.key.in_([make_key(place) for place in places])
        query = select(columns.changed_at).where(is_part, columns.path.is_(None))
        newest = query.order_by(columns.changed_at.desc()).limit(1)
        return self._database.fetch_value(newest)

    def list_paths(self, folder: str) -> list[str]:
        """Of every page that is or was below the folder."""
        is_below = page_revisions.c.path.startswith(f"{folder}/", autoescape=True)
        query = select(page_revisions.c.path).where(is_below).distinct()
        return [str(path) for path in self._database.fetch_column(query)]

    def list_changes(self, after: int) -> list[PageChange]:
        """The pages that were changed since, in the order of their rows."""
        columns = page_revisions.c
        query = (
            select(columns.n, columns.key, columns.revision, columns.path)
            .where(columns.n > after, ~is_superseded())
            .order_by(columns.n)
            .limit(BATCH_SIZE)
        )
        return [PageChange(*row) for row in self._database.fetch(query)]

    def list_conflicts(self) -> list[str]:
        """The paths of all pages that keep what could not be merged."""
        columns = page_revisions.c
        # as the partial index has it, which a bound value would not match
        is_conflict = text(f"page_revisions.path LIKE '%{CONFLICT_SUFFIX}'")
        query = (
            select(columns.path)
            .where(is_conflict, columns.body.is_not(None), ~is_superseded())
            .order_by(columns.path)
        )
        return [str(path) for path in self._database.fetch_column(query)]

    def find_last_row(self) -> int:
        query = select(func.max(page_revisions.c.n))
        return self._database.fetch_value(query) or 0


def _insert(connection: Connection, revision: PageRevision) -> None:
    values = {
        "path": revision.path,
        "body": revision.body,
        "author": revision.author,
        "changed_at": revision.changed_at,
    }
    key = {"key": revision.key, "revision": revision.number}
    if not upsert(connection, page_revisions, key, values, changes={}):
        raise _RevisionTaken


def _delete(connection: Connection, key: str, condition: ColumnElement[bool]) -> None:
    of_page = page_revisions.c.key == key
    connection.execute(delete(page_revisions).where(of_page, condition))
