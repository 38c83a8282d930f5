"""The recorder of one live call numbers its entries; the inserter writes those of all calls, many
in one commit, by a statement written for the driver.

A dropped call leaves short-lived state, apart from the archive, that one call consumes. The new
call peeks while it connects and consumes when it is connected: a failed connect loses nothing.
"""

import asyncio
import queue
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from sqlalchemy import (
    ColumnElement,
    and_,
    bindparam,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.pool import PoolProxiedConnection

from aftercall import telemetry
from aftercall.db.connect import Database, translated_errors
from aftercall.db.statements import PreparedStatement
from aftercall.db.tables import calls, journal, resume_states
from aftercall.errors import (
    CallNotLive,
    DatabaseUnreachable,
    JournalClosed,
    JournalConflict,
    JournalGap,
)
from aftercall.faults import fault_point
from aftercall.ids import hash_caller
from aftercall.journal.replay import (
    JournalEntry,
    to_entry,
)
from aftercall.model.briefing import Briefing
from aftercall.model.calls import Event, LiveCall, Turn
from aftercall.model.json_fields import Json

MAX_BATCH_ENTRIES = 1_000
T = TypeVar("T")
E = TypeVar("E")


class PendingWrite(asyncio.Future[None]):
    """Done when the entry is on disk. It cannot be cancelled: the entry is on its way."""

    def cancel(self, msg: object = None) -> bool:
        return False


def time_out_write(
    written: PendingWrite, timeout_s: float, alarm: "asyncio.Future[None]"
) -> None:
    """An entry that is written later all the same is there twice; replay ignores the second."""
    if not alarm.cancelled() and not written.done():
        written.set_exception(
            DatabaseUnreachable(f"not written within {timeout_s:g} s")
        )


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
        columns: Json = {name: bindparam(name) for name in JournalEntry._fields}
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


class CallRecorder:
    """One live call's numbered entries.

    The caller keeps their order; a gap is refused. The lock only keeps an append apart from the
    seal and from the move back to the database.
    """

    def __init__(
        self,
        call: LiveCall,
        write: Callable[["CallRecorder", JournalEntry], Awaitable[None]],
    ) -> None:
        self.call = call
        self.is_open = True
        self.is_spilling = False
        """Its entries go to a file until the database is back."""
        self.is_second = False
        """Another process recorded the same call too; this is a leg of its conversation."""
        self.lock = asyncio.Lock()
        self._write = write
        self._written: dict[str, list[JournalEntry]] = {"turn": [], "event": []}

    @property
    def next_turn_seq(self) -> int:
        return len(self._written["turn"]) + 1

    @property
    def next_event_seq(self) -> int:
        return len(self._written["event"]) + 1

    @property
    def entries(self) -> list[JournalEntry]:
        return [*self._written["turn"], *self._written["event"]]

    def get_entry(self, kind: str, seq: int) -> JournalEntry:
        """An entry that is on disk."""
        return self._written[kind][seq - 1]

    async def append(self, item: Turn | Event) -> None:
        """Returns when the item is on disk.

        Repeating an item changes nothing; a gap or another version is refused.
        """
        entry = to_entry(self.call.id, item)
        async with self.lock:
            if not self.is_open:
                raise CallNotLive(
                    f"call {self.call.id} has ended; add an addendum instead"
                )
            if self._is_written(entry):
                return
            fault_point("journal.before_append")
            with telemetry.timed("turn", self.call.id):
                await self._write(self, entry)
            fault_point("journal.after_append")

    def restore(self, entries: Sequence[JournalEntry]) -> None:
        """What another process wrote before. An entry may be there twice."""
        for entry in sorted(entries, key=lambda entry: entry.seq):
            if entry.seq == len(self._written[entry.kind]) + 1:
                self.mark_written(entry)

    def mark_written(self, entry: JournalEntry) -> None:
        """The entry is on disk."""
        self._written[entry.kind].append(entry)

    async def close(self) -> None:
        """Waits for a running append and refuses others."""
        async with self.lock:
            self.is_open = False

    async def let_go(self) -> bool:
        """Leaves the call to another process; False while words of it are only on our disk."""
        async with self.lock:
            self.is_open &= self.is_spilling
            return not self.is_spilling

    def _is_written(self, entry: JournalEntry) -> bool:
        kept = self._written[entry.kind]
        if entry.seq > len(kept) + 1:
            raise JournalGap(
                f"call {self.call.id}: {entry.kind} {entry.seq} came where {len(kept) + 1} is next"
            )
        if entry.seq == len(kept) + 1:
            return False
        if kept[entry.seq - 1].body != entry.body:
            raise JournalConflict(
                f"call {self.call.id}: {entry.kind} {entry.seq} is already written, with "
                "other contents"
            )
        return True


_PEEK = PreparedStatement(
    select(resume_states).where(
        resume_states.c.agent_id == bindparam("agent"),
        resume_states.c.caller_hash == bindparam("hash"),
        resume_states.c.ended_at
        >= bindparam("not_before", type_=resume_states.c.ended_at.type),
    )
)


@dataclass(frozen=True)
class ResumeState:
    """A sealed call that its caller may still resume."""

    agent_id: str
    caller_hash: str
    call_id: str
    conversation: str
    ended_at: datetime


PreparedBriefing = tuple[ResumeState | None, Briefing]
"""What a call that rings is told, and the call that it picks up again."""


class ResumeStates:
    """What a caller who rings again soon is resumed with."""

    def __init__(self, database: Database, window_s: float) -> None:
        self._database = database
        self._window = timedelta(seconds=window_s)

    def peek(self, call: LiveCall) -> ResumeState | None:
        """The call that this caller may be resuming; both ends of the window count."""
        if call.caller is None:
            return None
        values = {
            "agent": call.agent_id,
            "hash": hash_caller(call.caller),
            "not_before": call.started_at - self._window,
        }
        with self._database.read() as connection:
            rows = _PEEK.fetch(connection, values)
        return ResumeState(*rows[0]) if rows else None

    def consume(self, state: ResumeState, call: LiveCall) -> LiveCall | None:
        """Joins the live call to the conversation; returns None if another call was first."""
        joined = {"resumes": state.call_id, "conversation": state.conversation}
        with self._database.write() as connection:
            taken = connection.execute(delete(resume_states).where(_is_same(state)))
            if taken.rowcount != 1:
                return None
            is_live = and_(calls.c.id == call.id, calls.c.state == "live")
            connection.execute(update(calls).where(is_live).values(joined))
        return call.model_copy(update=joined)

    def delete_expired(self, now: datetime) -> int:
        expired = resume_states.c.ended_at < now - self._window
        return self._database.execute(delete(resume_states).where(expired))


def _is_same(state: ResumeState) -> ColumnElement[bool]:
    return and_(
        resume_states.c.agent_id == state.agent_id,
        resume_states.c.caller_hash == state.caller_hash,
        resume_states.c.call_id == state.call_id,
    )
