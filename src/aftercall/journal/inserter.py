"""Writes the entries of live calls: many in one commit, by a statement written for the driver."""

import asyncio
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from sqlalchemy import (
    bindparam,
    insert,
)
from sqlalchemy.pool import PoolProxiedConnection

from aftercall.db.connect import Database, translated_errors
from aftercall.db.tables import journal
from aftercall.errors import DatabaseUnreachable, JournalClosed
from aftercall.journal.replay import JournalEntry

MAX_BATCH_ENTRIES = 1_000
T = TypeVar("T")
E = TypeVar("E")


class PendingWrite(asyncio.Future[None]):
    """Done when the entry is on disk. It cannot be cancelled: the entry is on its way."""

    def cancel(self, msg: object = None) -> bool:
        return False


class GroupCommit(Generic[E]):
    """Writes submitted entries in a thread, so that the event loop never waits for the disk.

    While one batch is written, the next one gathers. The entries of a batch that fails are
    written one by one: a bad entry fails alone.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[Sequence[E]], None],
        *,
        on_close: Callable[[], None] = lambda: None,
        max_batch: int = MAX_BATCH_ENTRIES,
    ) -> None:
        self._write = write
        self._on_close = on_close
        self._max_batch = max_batch
        self._queue: queue.SimpleQueue[tuple[E, PendingWrite] | None] = (
            queue.SimpleQueue()
        )
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, entry: E) -> PendingWrite:
        if self._is_closed:
            raise JournalClosed("the journal has been shut down")
        pending = PendingWrite(loop=asyncio.get_running_loop())
        self._queue.put((entry, pending))
        return pending

    def close(self) -> None:
        """Writes what is queued, then stops."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
            self._thread.join()
            self._on_close()

    def _run(self) -> None:
        while batch := self._next_batch():
            self._commit(batch)

    def _next_batch(self) -> list[tuple[E, PendingWrite]]:
        """Waits for one entry and takes those that are queued behind it; empty when closed."""
        batch = []
        item = self._queue.get()
        while item is not None:
            batch.append(item)
            if len(batch) == self._max_batch:
                return batch
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch
        if batch:
            self._queue.put(None)  # closed: stop at the next batch
        return batch

    def _commit(self, batch: list[tuple[E, PendingWrite]]) -> None:
        try:
            self._write([entry for entry, _ in batch])
        except Exception as error:  # noqa: BLE001 - the edge of the thread: reported to the tasks
            if len(batch) == 1:
                _notify(batch, error)
            else:
                for item in batch:
                    self._commit([item])
        else:
            _notify(batch, None)


def _notify(batch: list[tuple[E, PendingWrite]], error: Exception | None) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[PendingWrite]] = defaultdict(list)
    for _, pending in batch:
        by_loop[pending.get_loop()].append(pending)
    for loop, ours in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed: no task waits
            loop.call_soon_threadsafe(_resolve, ours, error)


def _resolve(pending: list[PendingWrite], error: Exception | None) -> None:
    for one in pending:
        if one.done():
            continue
        if error is None:
            one.set_result(None)
        else:
            one.set_exception(error)


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
