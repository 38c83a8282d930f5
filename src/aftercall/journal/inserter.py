"""The statement that every turn of every live call passes through, written for the driver."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    bindparam,
    insert,
)
from sqlalchemy.pool import PoolProxiedConnection

from aftercall.db.connect import Database, translated_errors
from aftercall.db.tables import journal
from aftercall.errors import DatabaseUnreachable
from aftercall.journal.replay import JournalEntry


class JournalInserter:
    """Writes entries on a driver connection that it keeps, for one thread at a time.

    Live calls wait for these writes. SQLAlchemy's execution would double their time, and a
    connection from the pool may have to be waited for.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_sqlite = database.dialect == "sqlite"
        columns: dict[str, Any] = {
            name: bindparam(name) for name in JournalEntry._fields
        }
        self._sql = str(insert(journal).values(columns).compile(database.engine))
        self._connection: PoolProxiedConnection | None = None

    def write(self, entries: Sequence[JournalEntry]) -> None:
        is_kept = self._connection is not None
        try:
            self._write(entries)
        except DatabaseUnreachable:
            if not is_kept or self._is_sqlite:
                raise
            # The server dropped the idle connection. Replay ignores an entry that is there twice.
            self._write(entries)

    def is_ready(self) -> bool:
        return self._database.is_ready()

    def close(self) -> None:
        """Drops the connection and what is uncommitted; the next write opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()

    def _write(self, entries: Sequence[JournalEntry]) -> None:
        with translated_errors(self._database.driver_error):
            try:
                self._insert(entries)
            except Exception:
                self.close()
                raise

    def _insert(self, entries: Sequence[JournalEntry]) -> None:
        if self._connection is None:
            self._connection = self._database.engine.raw_connection()
        cursor = self._connection.cursor()
        if not self._is_sqlite:
            cursor.executemany(self._sql, [entry._asdict() for entry in entries])
            self._connection.commit()
            return
        with self._database.write_lock():
            cursor.execute("BEGIN IMMEDIATE")
            cursor.executemany(self._sql, entries)
            cursor.execute("COMMIT")
