"""The revisions of pages in the database: the newest one of a page is the page."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import ColumnElement, Connection, delete, func, select, text

from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import page_revisions
from aftercall.workspace import files
from aftercall.workspace.paths import CONFLICT_SUFFIX

MAX_REVISIONS = 100  # of one page; CALLS.md gets one with every call
BATCH_SIZE = 1_000


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
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return PageRevision(*row) if row else PageRevision(key, 0, None, None, "", now)

    def find_body(self, key: str, number: int) -> bytes | None:
        """None if the revision is past its time."""
        query = select(page_revisions.c.body).where(
            page_revisions.c.key == key, page_revisions.c.revision == number
        )
        with self._database.read() as connection:
            return connection.execute(query).scalar()

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

    def erase(self, key: str, author: str, now: datetime) -> bool:
        """Removes all revisions; what stays is the number of the removal, without a path."""
        while True:
            newest = self.find_newest(key, now)
            if newest.path is None:
                return False
            gone = PageRevision(key, newest.number + 1, None, None, author, now)
            with suppress(_RevisionTaken), self._database.write() as connection:
                _insert(connection, gone)
                _delete(connection, key, page_revisions.c.revision < gone.number)
                return newest.body is not None

    def list_paths(self, folder: str) -> list[str]:
        """Of every page that is or was below the folder."""
        is_below = page_revisions.c.path.startswith(f"{folder}/", autoescape=True)
        query = select(page_revisions.c.path).where(is_below).distinct()
        with self._database.read() as connection:
            return [str(path) for path in connection.execute(query).scalars()]

    def list_changes(self, after: int) -> list[PageChange]:
        """The pages that were changed since, in the order of their rows."""
        columns = page_revisions.c
        query = (
            select(columns.n, columns.key, columns.revision, columns.path)
            .where(columns.n > after, ~is_superseded())
            .order_by(columns.n)
            .limit(BATCH_SIZE)
        )
        with self._database.read() as connection:
            return [PageChange(*row) for row in connection.execute(query)]

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
        with self._database.read() as connection:
            return [str(path) for path in connection.execute(query).scalars()]

    def find_last_row(self) -> int:
        query = select(func.max(page_revisions.c.n))
        with self._database.read() as connection:
            return connection.execute(query).scalar() or 0


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
