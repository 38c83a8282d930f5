"""Group commit: what several have to write at the same time becomes durable in one transaction.

Nobody waits for company: whoever comes while a transaction is going on is in the next one. Each
entry stands or falls by itself. An entry may be asked twice, when the transaction it was in
falls, and has no effect but on the connection it is given.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy import Connection

from aftercall.db.connect import Database

MAX_BATCH_ENTRIES = 32  # entries in one transaction: others wait for the database meanwhile
T = TypeVar("T")
Entry = Callable[[Connection], Any]
AfterCommit = Callable[[Any], Any]
EntryResult = tuple[Any, Exception | None]
"""What an entry returned, or what it raised."""


class GroupCommitter:
    """Writes for one event loop, in a thread of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="aftercall-clerk")
        self._waiting: list[tuple[Entry, AfterCommit | None, asyncio.Future[Any]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(
        self, entry: Callable[[Connection], T], after_commit: Callable[[T], T] | None = None
    ) -> T:
        """Return once it is on disk.

        What the entry raises is raised here, and nothing of it is written.

        `then` is a look at what others have written by the time it is on disk; the clerk takes
        it, being there already.
        """
        written: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, after_commit, written))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        return await written

    def close(self) -> None:
        self._thread.shutdown(wait=False)

    async def _write_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            some, self._waiting = (
                self._waiting[:MAX_BATCH_ENTRIES],
                self._waiting[MAX_BATCH_ENTRIES:],
            )
            try:
                ended = await loop.run_in_executor(
                    self._thread, self._write_batch, [(entry, then) for entry, then, _ in some]
                )
            except Exception as error:  # noqa: BLE001 - the edge of a transaction: whoever has an entry in it is told
                ended = [(None, error)] * len(some)
            for (_, _, written), (value, fault) in zip(some, ended, strict=True):
                _resolve(written, value, fault)

    def _write_batch(self, some: list[tuple[Entry, AfterCommit | None]]) -> list[EntryResult]:
        ended = self._commit([entry for entry, _ in some])
        return [
            _run_after_commit(then, value) if then and fault is None else (value, fault)
            for (_, then), (value, fault) in zip(some, ended, strict=True)
        ]

    def _commit(self, entries: list[Entry]) -> list[EntryResult]:
        try:
            with self._database.write() as connection:
                return [(entry(connection), None) for entry in entries]
        except Exception:
            if len(entries) == 1:
                raise
        # Something is wrong with one of them, or two transactions waited for each other. Each
        # is tried again by itself.
        return [self._write_alone(entry) for entry in entries]

    def _write_alone(self, entry: Entry) -> EntryResult:
        try:
            with self._database.write() as connection:
                return entry(connection), None
        except Exception as error:  # noqa: BLE001 - the edge of an entry: the others shall not fall with it
            return None, error


def _run_after_commit(then: AfterCommit, value: Any) -> EntryResult:
    try:
        return then(value), None
    except Exception as error:  # noqa: BLE001 - the edge of an entry, as above
        return None, error


def _resolve(written: asyncio.Future[Any], value: Any, fault: Exception | None) -> None:
    if written.done():  # whoever asked has been cancelled
        return
    if fault is None:
        written.set_result(value)
    else:
        written.set_exception(fault)
