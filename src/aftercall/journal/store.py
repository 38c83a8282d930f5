"""The SQL of calls, journal rows and resume states."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Row,
    Text,
    and_,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.pool import PoolProxiedConnection

from aftercall.db.connect import Database, translate_error
from aftercall.db.conversations import join_conversation
from aftercall.db.stale_briefings import invalidate_briefing, request_briefing
from aftercall.db.statements import upsert
from aftercall.db.tables import calls, followup_runs, journal, processes, resume_states, tombstones
from aftercall.errors import CallErased, DatabaseUnreachable, NotFound
from aftercall.ids import hash_caller
from aftercall.model.calls import IMPORTED, Call, LiveCall

CallEnd = tuple[datetime, str]
"""When a call ended, and why."""

_RESUME_EXISTS_SQL = "SELECT 1 FROM resume_states WHERE agent_id = ? AND caller_hash = ?"


class JournalEntry(NamedTuple):
    """One row of the journal: a turn or an event, encoded."""

    call_id: str
    kind: str
    seq: int
    body: str


@dataclass(frozen=True)
class CallRow:
    """What the database knows of a call."""

    live: LiveCall
    state: str
    owner: str
    ended_at: datetime | None
    end_reason: str | None
    turn_count: int
    addenda: int
    archive_name: str | None
    archive_sha256: str | None
    whose: str | None
    is_silent: bool

    @property
    def party(self) -> str | None:
        """Whose call it is; as long as that is not decided, its number's."""
        return self.whose or self.live.caller


@dataclass(frozen=True)
class ProcessRow:
    """What a process last said of itself."""

    id: str
    beat_at: datetime
    failures: list[dict[str, str]] | None
    """None for a process that does no upkeep."""


@dataclass(frozen=True)
class ResumeState:
    """A call that its caller may still pick up."""

    agent_id: str
    caller_hash: str
    call_id: str
    conversation: str
    ended_at: datetime


class JournalInserter:
    """One driver connection kept for journal rows: written, on disk, and nothing in between.

    It bypasses SQLAlchemy's execution, which would cost more than the disk does. One thread at
    a time.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        mark = "?" if database.dialect == "sqlite" else "%s"
        self._sql = (
            f"INSERT INTO journal (call_id, kind, seq, body) VALUES ({mark}, {mark}, {mark}, "  # noqa: S608
            f"{mark})"
        )
        self._write = self._write_sqlite if database.dialect == "sqlite" else self._write_postgres
        self._pooled: PoolProxiedConnection | None = None
        self._driver: Any = None

    def write(self, entries: Sequence[JournalEntry]) -> None:
        is_kept = self._driver is not None
        try:
            self._write_once(entries)
        except DatabaseUnreachable:
            if not is_kept or self._database.dialect == "sqlite":
                raise
            self._write_once(
                entries
                # the server had dropped the connection while nobody wrote; a row written twice is
                # folded
            )

    def _write_once(self, entries: Sequence[JournalEntry]) -> None:
        try:
            if self._driver is None:
                self._pooled = self._database.engine.raw_connection()
                self._driver = self._pooled.driver_connection
            self._write(entries)
        except Exception as error:
            self.close()
            ours = translate_error(error)
            if ours is None:
                raise
            raise ours from error

    def is_ready(self) -> bool:
        """Whether the database can be written to again."""
        return self._database.is_ready()

    def close(self) -> None:
        """Rolls back what is half done; a fresh connection is made for the next entry."""
        pooled, self._pooled, self._driver = self._pooled, None, None
        if pooled is not None:
            pooled.invalidate()

    def _write_sqlite(self, entries: Sequence[JournalEntry]) -> None:
        with self._database.write_lock():
            if len(entries) == 1:
                self._driver.execute(
                    self._sql, entries[0]
                )  # one statement is a transaction by itself
                return
            self._driver.execute("BEGIN IMMEDIATE")
            self._driver.executemany(self._sql, entries)
            self._driver.execute("COMMIT")

    def _write_postgres(self, entries: Sequence[JournalEntry]) -> None:
        with self._driver.cursor() as cursor:
            cursor.executemany(self._sql, entries)
        self._driver.commit()


class CallStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, call: LiveCall, owner: str) -> bool:
        """Note a call as live; False if its source and sid are known already. Raises CallErased."""
        try:
            with self._database.write() as connection:
                _refuse_erased(connection, call)
                connection.execute(
                    insert(calls), to_columns(call) | {"state": "live", "owner": owner}
                )
        except IntegrityError:
            return False
        return True

    def add_finished(
        self,
        call: Call,
        entries: Iterable[JournalEntry],
        owner: str,
        reconnect_window: timedelta | None = None,
    ) -> Call | None:
        """Note a finished call with all its entries, ready to be sealed. Raises CallErased.

        With a window it was handed in, and is joined to its caller's calls within the window.
        Returns the call with its conversation; None if it is known already.
        """
        is_handed_in = reconnect_window is not None
        ended = {
            "state": "sealing",
            "owner": owner,
            "ended_at": call.ended_at,
            "end_reason": call.end_reason,
        }
        try:
            with self._database.write() as connection:
                _refuse_erased(connection, call)
                if reconnect_window is not None:
                    call = join_conversation(connection, call, reconnect_window)
                connection.execute(
                    insert(calls), to_columns(call) | ended | {"is_handed_in": is_handed_in}
                )
                if rows := [entry._asdict() for entry in entries]:
                    connection.execute(insert(journal), rows)
        except IntegrityError:
            return None
        return call

    def import_spilled(
        self,
        call: LiveCall,
        entries: Iterable[JournalEntry],
        owner: str,
        ended: CallEnd | None = None,
        *,
        is_live: bool = False,
    ) -> CallRow:
        """Note a call that was kept elsewhere, and those of its entries that are missing; again
        it changes nothing. Raises CallErased.

        Unless it goes on, it is left for recovery to seal. One whose sid is another call's by
        now gets a sid of its own.
        """
        with self._database.write() as connection:
            _refuse_erased(connection, call)
            state = connection.execute(select(calls.c.state).where(calls.c.id == call.id)).scalar()
            if state is None:
                kept = {"state": "live" if is_live else "sealing", "owner": owner}
                connection.execute(insert(calls), _spilled_call_columns(connection, call) | kept)
            if state != "sealed":
                _insert_missing_entries(connection, call.id, entries)
                if not is_live:
                    _set_end(connection, call, ended)
            return to_call_row(connection.execute(select(calls).where(calls.c.id == call.id)).one())

    def claim(
        self, call_id: str, *, held_by: str, sealer: str, ended_at: datetime, end_reason: str
    ) -> bool:
        """Take the right to seal a call; one process gets it. A stored end is kept."""
        with self._database.write() as connection:
            claimed = connection.execute(
                update(calls)
                .where(calls.c.id == call_id, calls.c.state != "sealed", calls.c.owner == held_by)
                .values(
                    state="sealing",
                    owner=sealer,
                    ended_at=func.coalesce(
                        calls.c.ended_at, literal(ended_at, calls.c.ended_at.type)
                    ),
                    end_reason=func.coalesce(calls.c.end_reason, end_reason),
                )
            )
        return claimed.rowcount == 1

    def finish(self, call: Call, *, archive_name: str, sha256: str, sealed_at: datetime) -> None:
        """The call is in the archive: mark it, set what comes after it going, keep its resume
        state, let go of its rows.
        """
        with self._database.write() as connection:
            sealed = {
                "state": "sealed",
                "postcall": "due",
                "turn_count": len(call.turns),
                "archive_name": archive_name,
            }
            sealed["is_silent"] = call.is_silent
            connection.execute(
                update(calls)
                .where(calls.c.id == call.id)
                .values(**sealed, archive_sha256=sha256, sealed_at=sealed_at),
            )
            connection.execute(delete(journal).where(journal.c.call_id == call.id))
            _save_resume_state(connection, call)
            _set_followup_timer(connection, call, sealed_at)
            _refresh_briefing(connection, call)

    def set_addenda_count(
        self, call_id: str, addenda: int, *, has_caller_words: bool = False
    ) -> None:
        known = {"addenda": addenda} | ({"is_silent": False} if has_caller_words else {})
        with self._database.write() as connection:
            connection.execute(
                update(calls).where(calls.c.id == call_id, calls.c.addenda < addenda).values(known)
            )

    def get(self, call_id: str) -> CallRow:
        with self._database.read() as connection:
            row = connection.execute(select(calls).where(calls.c.id == call_id)).first()
        if row is None:
            raise NotFound(
                f"there is no call {call_id!r}; `aftercall calls list` shows those there are"
            )
        return to_call_row(row)

    def find_last_spoken_leg(self, conversation: str) -> CallRow | None:
        """The newest sealed call of a conversation in which its caller said something."""
        legs = and_(calls.c.conversation == conversation, calls.c.archive_name.is_not(None))
        query = select(calls).where(legs, ~calls.c.is_silent).order_by(calls.c.started_at.desc())
        with self._database.read() as connection:
            row = connection.execute(query.limit(1)).first()
        return None if row is None else to_call_row(row)

    def find(self, source: str, sid: str) -> CallRow | None:
        with self._database.read() as connection:
            row = connection.execute(
                select(calls).where(calls.c.source == source, calls.c.sid == sid)
            ).first()
        return None if row is None else to_call_row(row)

    def find_by_ids(self, source: str, ids: Sequence[str], *, since: datetime) -> CallRow | None:
        """The call that goes by one of these ids, its sid or one of those in its metadata; the
        first of them since then.
        """
        named = or_(
            calls.c.sid.in_(ids),
            *(cast(calls.c.metadata, Text).contains(f'"{one}"', autoescape=True) for one in ids),
        )
        query = (
            select(calls)
            .where(calls.c.source == source, calls.c.started_at >= since, named)
            .order_by(calls.c.started_at)
            .limit(1)
        )
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else to_call_row(row)

    def list_page(
        self, *, limit: int, before: tuple[datetime, str] | None = None, caller: str | None = None
    ) -> list[CallRow]:
        """Newest first; `before` is the start and id of the last call of the page before."""
        query = select(calls).order_by(calls.c.started_at.desc(), calls.c.id.desc()).limit(limit)
        if caller is not None:
            query = query.where(calls.c.caller == caller)
        if before is not None:
            started_at, call_id = before
            query = query.where(
                or_(
                    calls.c.started_at < started_at,
                    and_(calls.c.started_at == started_at, calls.c.id < call_id),
                )
            )
        with self._database.read() as connection:
            return [to_call_row(row) for row in connection.execute(query)]

    def is_handed_in(self, call_id: str) -> bool:
        """Whether it was answered elsewhere, not by an agent of ours."""
        with self._database.read() as connection:
            return bool(
                connection.execute(
                    select(calls.c.is_handed_in).where(calls.c.id == call_id)
                ).scalar()
            )

    def get_decided_party(self, call_id: str) -> str | None:
        """Whose memory the call belongs to; empty for nobody's, None as long as that is not
        decided.
        """
        with self._database.raw_query() as query:
            rows = query("SELECT whose FROM calls WHERE id = ?", (call_id,))
        return rows[0][0] if rows else None

    def get_decided_parties(self, call_ids: Sequence[str]) -> dict[str, str | None]:
        with self._database.read() as connection:
            return {
                row.id: row.whose
                for row in connection.execute(
                    select(calls.c.id, calls.c.whose).where(calls.c.id.in_(call_ids))
                )
            }

    def decide_parties(self, decided: Mapping[str, str]) -> dict[str, str | None]:
        """Note whose each of these calls is, once and in the order of their ids; returns what
        stands.
        """
        note = (
            update(calls)
            .where(calls.c.id == bindparam("call"), calls.c.whose.is_(None))
            .values(whose=bindparam("party"))
        )
        with self._database.write() as connection:
            connection.execute(
                note,
                [{"call": call_id, "party": whose} for call_id, whose in sorted(decided.items())],
            )
        return self.get_decided_parties(list(decided))

    def list_unsealed(self) -> list[CallRow]:
        with self._database.read() as connection:
            return [
                to_call_row(row)
                for row in connection.execute(
                    select(calls).where(calls.c.state != "sealed").order_by(calls.c.id)
                )
            ]

    def list_sealed_files(self) -> dict[str, tuple[str, str, int]]:
        """Call id → archive name, hash, number of addenda."""
        kept = and_(
            calls.c.state == "sealed", calls.c.archive_name.is_not(None)
        )  # the words of others went when their time was up
        query = select(
            calls.c.id, calls.c.archive_name, calls.c.archive_sha256, calls.c.addenda
        ).where(kept)
        with self._database.read() as connection:
            return {
                row.id: (row.archive_name, row.archive_sha256, row.addenda)
                for row in connection.execute(query)
            }

    def list_entries(self, call_id: str) -> list[JournalEntry]:
        query = select(journal).where(journal.c.call_id == call_id).order_by(journal.c.n)
        with self._database.read() as connection:
            return [
                JournalEntry(row.call_id, row.kind, row.seq, row.body)
                for row in connection.execute(query)
            ]

    def delete_entries(self, call_id: str, count: int) -> None:
        """Let go of a call's oldest `count` journal rows; one written since they were read
        stays.
        """
        oldest = (
            select(journal.c.n)
            .where(journal.c.call_id == call_id)
            .order_by(journal.c.n)
            .limit(count)
            .subquery()
        )
        with self._database.write() as connection:
            connection.execute(delete(journal).where(journal.c.n.in_(select(oldest.c.n))))

    def list_late_calls(self) -> list[str]:
        """Sealed calls that have journal rows all the same: somebody wrote after the seal."""
        query = (
            select(journal.c.call_id)
            .join(calls, calls.c.id == journal.c.call_id)
            .where(calls.c.state == "sealed")
            .distinct()
        )
        with self._database.read() as connection:
            return [str(row.call_id) for row in connection.execute(query)]

    # Resume states

    def peek_resume(
        self, agent_id: str, caller: str, *, not_before: datetime
    ) -> ResumeState | None:
        with self._database.raw_query() as query:
            if not query(_RESUME_EXISTS_SQL, (agent_id, hash_caller(caller))):
                return None
        key = and_(
            resume_states.c.agent_id == agent_id, resume_states.c.caller_hash == hash_caller(caller)
        )
        with self._database.read() as connection:
            row = connection.execute(
                select(resume_states).where(key, resume_states.c.ended_at >= not_before)
            ).first()
        return None if row is None else ResumeState(**row._asdict())

    def consume_resume(self, state: ResumeState, *, into: str) -> bool:
        """Join the live call `into` to the conversation; one winner, the others start afresh."""
        key = and_(
            resume_states.c.agent_id == state.agent_id,
            resume_states.c.caller_hash == state.caller_hash,
        )
        with self._database.write() as connection:
            taken = connection.execute(
                delete(resume_states).where(key, resume_states.c.call_id == state.call_id)
            )
            if taken.rowcount != 1:
                return False
            joined = {"resumes": state.call_id, "conversation": state.conversation}
            connection.execute(
                update(calls).where(calls.c.id == into, calls.c.state == "live").values(joined)
            )
        return True

    def delete_expired_resumes(self, *, ended_before: datetime) -> int:
        with self._database.write() as connection:
            return connection.execute(
                delete(resume_states).where(resume_states.c.ended_at < ended_before)
            ).rowcount

    # Processes

    def record_heartbeat(
        self, process: str, now: datetime, failures: Sequence[dict[str, str]] | None = None
    ) -> None:
        told = {"beat_at": now, "failures": failures}
        with self._database.write() as connection:
            upsert(
                connection, processes, {"id": process}, {"started_at": now, **told}, changes=told
            )

    def list_processes(self) -> list[ProcessRow]:
        with self._database.read() as connection:
            return [
                ProcessRow(row.id, row.beat_at, row.failures)
                for row in connection.execute(select(processes))
            ]

    def get_last_heartbeat(self, process: str) -> datetime | None:
        with self._database.read() as connection:
            return connection.execute(
                select(processes.c.beat_at).where(processes.c.id == process)
            ).scalar()

    def delete_process(self, process: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(processes).where(processes.c.id == process))

    def list_silent_processes(self, *, since: datetime) -> list[str]:
        with self._database.read() as connection:
            return [
                str(row.id)
                for row in connection.execute(
                    select(processes.c.id).where(processes.c.beat_at < since)
                )
            ]


def _spilled_call_columns(connection: Connection, call: LiveCall) -> dict[str, Any]:
    is_taken = connection.execute(
        select(calls.c.id).where(calls.c.source == call.source, calls.c.sid == call.sid)
    ).first()
    own = (
        {"sid": f"{call.sid}.{call.id}", "metadata": {**call.metadata, "call_sid": call.sid}}
        if is_taken
        else {}
    )
    return to_columns(call) | own


def _set_end(connection: Connection, call: LiveCall, ended: CallEnd | None) -> None:
    ended_at, reason = ended or (None, None)
    end: dict[str, Any] = {
        "state": "sealing",
        "ended_at": func.coalesce(calls.c.ended_at, literal(ended_at, calls.c.ended_at.type)),
        "end_reason": func.coalesce(calls.c.end_reason, literal(reason, Text)),
    }
    connection.execute(update(calls).where(calls.c.id == call.id).values(end))


def _insert_missing_entries(
    connection: Connection, call_id: str, entries: Iterable[JournalEntry]
) -> None:
    query = select(journal.c.kind, journal.c.seq).where(journal.c.call_id == call_id)
    there = {(row.kind, row.seq) for row in connection.execute(query)}
    if rows := [entry._asdict() for entry in entries if (entry.kind, entry.seq) not in there]:
        connection.execute(insert(journal), rows)


def _save_resume_state(connection: Connection, call: Call) -> None:
    """The newest call of a caller is the one to pick up; an older one that is sealed late does
    not replace it.

    Nor does a silent one that has nothing to do with it.
    """
    if call.caller is None or call.source == IMPORTED:
        return
    key = {"agent_id": call.agent_id, "caller_hash": hash_caller(call.caller)}
    state = {"call_id": call.id, "conversation": call.conversation, "ended_at": call.ended_at}
    is_newer = resume_states.c.ended_at <= literal(call.ended_at, resume_states.c.ended_at.type)
    same = resume_states.c.conversation == call.conversation
    upsert(
        connection,
        resume_states,
        key,
        state,
        only_where=and_(is_newer, same) if call.is_silent else is_newer,
    )


def _refresh_briefing(connection: Connection, call: Call) -> None:
    """Whoever called may call again, and what is news to them has changed."""
    if call.caller is not None and call.direction == "inbound" and call.source != IMPORTED:
        request_briefing(connection, call.agent_id, call.caller)
    else:
        invalidate_briefing(connection, call.agent_id, call.caller)


def add_tombstone(
    connection: Connection, source: str, sid: str, call_id: str, now: datetime
) -> None:
    """Leave a tombstone."""
    upsert(
        connection,
        tombstones,
        {"key": _tombstone_key(source, sid)},
        {"call_id": call_id, "erased_at": now},
        changes={},
    )


def _refuse_erased(connection: Connection, call: LiveCall) -> None:
    erased = select(tombstones.c.call_id).where(
        tombstones.c.key == _tombstone_key(call.source, call.sid)
    )
    if connection.execute(erased).first():
        raise CallErased(f"this {call.source} call was erased, and is not taken in again")


def _tombstone_key(source: str, sid: str) -> str:
    return sha256(f"{source}\0{sid}".encode()).hexdigest()


def _set_followup_timer(connection: Connection, call: Call, now: datetime) -> None:
    """Follow-up work waits for the conversation's last leg; a later leg pushes the timer and
    asks for another run.
    """
    state = {
        "agent_id": call.agent_id,
        "caller": call.caller,
        "ended_at": call.ended_at,
        "state": "due",
        "reason": "",
        "changed_at": now,
    }
    ended_at = literal(call.ended_at, followup_runs.c.ended_at.type)
    latest = case((followup_runs.c.ended_at > ended_at, followup_runs.c.ended_at), else_=ended_at)
    changes = {"ended_at": latest, "state": "due", "reason": "", "changed_at": now}
    upsert(connection, followup_runs, {"conversation": call.conversation}, state, changes=changes)


def to_columns(call: LiveCall) -> dict[str, Any]:
    return {name: getattr(call, name) for name in LiveCall.model_fields}


def to_call_row(row: Row[Any]) -> CallRow:
    live = LiveCall.model_construct(**{name: row._mapping[name] for name in LiveCall.model_fields})
    rest = {name: row._mapping[name] for name in CallRow.__dataclass_fields__ if name != "live"}
    return CallRow(live=live, **rest)
