"""The SQL of calls and of their journal entries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Text,
    and_,
    bindparam,
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

from aftercall.db.briefing_cache import invalidate_briefing, request_briefing
from aftercall.db.connect import Database
from aftercall.db.conversations import (
    NEWEST_FIRST,
    join_conversation,
    join_same_call,
    make_followup_due,
    set_followup_timer,
    share_caller,
    write_answer_delays,
)
from aftercall.db.event_log import LoggedEvent, write_events
from aftercall.db.statements import PreparedStatement, upsert
from aftercall.db.tables import (
    calls,
    handovers,
    journal,
    resume_states,
    steps,
    tombstones,
)
from aftercall.errors import CallErased, NotFound
from aftercall.ids import hash_caller
from aftercall.journal.archive import make_base_name
from aftercall.journal.replay import JournalEntry
from aftercall.model.calls import (
    IMPORTED,
    SENDER,
    Call,
    Event,
    LiveCall,
    Turn,
    has_caller_words,
)
from aftercall.model.json_fields import Json

ERASED_CALLER = "erased caller"  # in the place of a source
ERASED_FILE = "erased file"  # … of a call that a rebuild knows by its file only
CallEnd = tuple[datetime, str]  # when a call ended, and why

_SELECT_PARTY = PreparedStatement(
    select(calls.c.whose).where(calls.c.id == bindparam("call"))
)


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
        """Whose call it is; while that is undecided, its number."""
        return self.whose or self.live.caller


class CallStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, call: LiveCall, owner: str) -> bool:
        """Inserts a live call; returns False if its source and sid are known. Raises CallErased."""
        try:
            with self._database.write() as connection:
                _refuse_erased(connection, call)
                row = to_columns(call) | {"state": "live", "owner": owner}
                connection.execute(insert(calls), row)
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
        """Inserts a finished call with its entries, ready for sealing. Raises CallErased.

        With a window, another system answered the call, and it joins its caller's calls within
        the window. Returns the call with its conversation; None if it is known.
        """
        ended = {
            "state": "sealing",
            "owner": owner,
            "ended_at": call.ended_at,
            "end_reason": call.end_reason,
            "is_handed_in": reconnect_window is not None,
        }
        try:
            with self._database.write() as connection:
                _refuse_erased(connection, call)
                if reconnect_window is not None:
                    call = join_conversation(connection, call, reconnect_window)
                connection.execute(insert(calls), to_columns(call) | ended)
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
        """Inserts a spilled call and its missing entries; may be repeated. Raises CallErased.

        Recovery seals it, unless it is live. If another call has its sid by now, it becomes a leg
        of that one's conversation. A live call that another process owns is not changed.
        """
        with self._database.write() as connection:
            if erased_at := _find_erasure(connection, call, is_spilled=True):
                # also what other processes have of the call: it may not name the caller
                add_tombstone(connection, call.source, call.sid, call.id, erased_at)
            else:
                own = select(calls).where(calls.c.id == call.id)
                locked = own.with_for_update()  # nobody takes it meanwhile
                known = connection.execute(locked).first()
                if known is None:
                    leg = join_same_call(connection, call)
                    row = {"state": "live" if is_live else "sealing", "owner": owner}
                    connection.execute(insert(calls), to_columns(leg) | row)
                    _make_due(connection, share_caller(connection, leg))
                is_ours = known is None or known.owner == owner or not is_live
                if is_ours and (known is None or known.state != "sealed"):
                    _insert_missing_entries(connection, call.id, entries)
                    if not is_live:
                        end = _make_end(*(ended or (None, None)))
                        ending = update(calls).where(calls.c.id == call.id)
                        connection.execute(ending.values(end))
                return to_call_row(connection.execute(own).one())
        raise _make_refusal(call)

    def claim(
        self,
        call_id: str,
        *,
        held_by: str,
        sealer: str,
        ended_at: datetime,
        end_reason: str,
    ) -> bool:
        """Takes the right to seal a call; one process gets it. A stored end is kept."""
        values = _make_end(ended_at, end_reason) | {"owner": sealer}
        claimable = and_(
            calls.c.id == call_id, calls.c.state != "sealed", calls.c.owner == held_by
        )
        with self._database.write() as connection:
            claimed = connection.execute(update(calls).where(claimable).values(values))
        return claimed.rowcount == 1

    def finish(
        self, call: Call, *, archive_name: str, sha256: str, sealed_at: datetime
    ) -> None:
        """Marks an archived call as sealed, starts its post-call work, deletes its entries."""
        sealed = {
            "state": "sealed",
            "postcall": "due",
            "turn_count": len(call.turns),
            "archive_name": archive_name,
            "archive_sha256": sha256,
            "sealed_at": sealed_at,
            "is_silent": call.is_silent,
        }
        with self._database.write() as connection:
            connection.execute(
                update(calls).where(calls.c.id == call.id).values(sealed)
            )
            connection.execute(delete(journal).where(journal.c.call_id == call.id))
            connection.execute(delete(handovers).where(handovers.c.call_id == call.id))
            write_answer_delays(connection, call)
            _save_resume_state(connection, call)
            set_followup_timer(connection, call, sealed_at)
            _refresh_briefing(connection, call)
            if call.source != IMPORTED:
                of = (sealed_at, call.agent_id, call.caller, call.id)
                write_events(connection, [LoggedEvent("call.sealed", call.id, *of)])

    def set_addenda_count(
        self, call: LiveCall, addenda: int, late: Sequence[Turn | Event], now: datetime
    ) -> None:
        """Late words are read too: the work of the call and its conversation is due again."""
        values: Json = {"addenda": addenda}
        turns = [entry.seq for entry in late if isinstance(entry, Turn)]
        if turns:
            values |= {"turn_count": turns[-1], "postcall": "due"}
        if has_caller_words(late):
            values["is_silent"] = False
        is_older = and_(calls.c.id == call.id, calls.c.addenda < addenda)
        with self._database.write() as connection:
            counted = connection.execute(update(calls).where(is_older).values(values))
            if turns and counted.rowcount:
                make_followup_due(connection, call.conversation, now)

    def get(self, call_id: str) -> CallRow:
        row = self._fetch_first(select(calls).where(calls.c.id == call_id))
        if row is None:
            raise NotFound(
                f"there is no call {call_id!r}; `aftercall calls list` shows all calls"
            )
        return row

    def find_unsealed(self, call_id: str) -> CallRow | None:
        is_unsealed = and_(calls.c.id == call_id, calls.c.state != "sealed")
        return self._fetch_first(select(calls).where(is_unsealed))

    def find_last_spoken_leg(self, conversation: str) -> CallRow | None:
        """The newest sealed call of a conversation that has caller words."""
        legs = and_(
            calls.c.conversation == conversation, calls.c.archive_name.is_not(None)
        )
        query = select(calls).where(legs, ~calls.c.is_silent).order_by(*NEWEST_FIRST)
        return self._fetch_first(query)

    def find(self, source: str, sid: str) -> CallRow | None:
        return self._fetch_first(
            select(calls).where(calls.c.source == source, calls.c.sid == sid)
        )

    def find_by_ids(
        self, source: str, ids: Sequence[str], *, since: datetime
    ) -> CallRow | None:
        """The first call since then with one of these ids as its sid or in its metadata."""
        named = or_(
            calls.c.sid.in_(ids),
            *(
                cast(calls.c.metadata, Text).contains(f'"{one}"', autoescape=True)
                for one in ids
            ),
        )
        is_recent = and_(calls.c.source == source, calls.c.started_at >= since)
        found = select(calls).where(is_recent, named)
        return self._fetch_first(found.order_by(calls.c.started_at))

    def list_page(
        self,
        *,
        limit: int,
        before: tuple[datetime, str] | None = None,
        caller: str | None = None,
    ) -> list[CallRow]:
        """Newest first; `before` is the start and id of the last call on the previous page."""
        query = select(calls).order_by(*NEWEST_FIRST).limit(limit)
        if caller is not None:
            query = query.where(calls.c.caller == caller)
        if before is not None:
            started_at, call_id = before
            same_start = and_(calls.c.started_at == started_at, calls.c.id < call_id)
            query = query.where(or_(calls.c.started_at < started_at, same_start))
        return self._fetch_all(query)

    def list_summaries(self, call_ids: Sequence[str]) -> dict[str, str]:
        """The summary of each call that has one."""
        query = select(steps.c.call_id, steps.c.result).where(
            steps.c.call_id.in_(call_ids),
            steps.c.name == "summary",
            steps.c.state == "done",
        )
        return {row.call_id: row.result for row in self._database.fetch(query)}

    def is_handed_in(self, call_id: str) -> bool:
        """Whether another system answered the call."""
        query = select(calls.c.is_handed_in).where(calls.c.id == call_id)
        return bool(self._database.fetch_value(query))

    def get_decided_party(self, call_id: str) -> str | None:
        """Whose memory the call belongs to; empty for no party, None while undecided."""
        with self._database.read() as connection:
            rows = _SELECT_PARTY.fetch(connection, {"call": call_id})
        return rows[0][0] if rows else None

    def decide_parties(self, decided: Mapping[str, str]) -> dict[str, str | None]:
        """Stores whose each call is, unless that is decided; returns what is stored."""
        is_undecided = and_(calls.c.id == bindparam("call"), calls.c.whose.is_(None))
        statement = update(calls).where(is_undecided).values(whose=bindparam("party"))
        rows = [
            {"call": call_id, "party": party}
            for call_id, party in sorted(decided.items())
        ]
        with self._database.write() as connection:
            connection.execute(statement, rows)
            return _fetch_parties(connection, list(decided))

    def list_unsealed(self) -> list[CallRow]:
        return self._fetch_all(
            select(calls).where(calls.c.state != "sealed").order_by(calls.c.id)
        )

    def list_sealed_files(
        self, since: datetime | None = None
    ) -> dict[str, tuple[str, str, int]]:
        """Call id to archive name, hash and number of addenda; expired calls have no file."""
        query = select(
            calls.c.id, calls.c.archive_name, calls.c.archive_sha256, calls.c.addenda
        ).where(calls.c.state == "sealed", calls.c.archive_name.is_not(None))
        query = query.where(calls.c.started_at >= since) if since else query
        rows = self._database.fetch(query)
        return {row[0]: (row[1], row[2], row[3]) for row in rows}

    def list_entries(self, call_id: str) -> list[JournalEntry]:
        columns = [journal.c[name] for name in JournalEntry._fields]
        query = (
            select(*columns).where(journal.c.call_id == call_id).order_by(journal.c.n)
        )
        return [JournalEntry(*row) for row in self._database.fetch(query)]

    def delete_entries(self, call_id: str, count: int) -> None:
        """Deletes the oldest entries of a call; one written since they were counted stays."""
        entries = select(journal.c.n).where(journal.c.call_id == call_id)
        oldest = entries.order_by(journal.c.n).limit(count).subquery()
        self._database.execute(
            delete(journal).where(journal.c.n.in_(select(oldest.c.n)))
        )

    def list_late_calls(self) -> list[str]:
        """Sealed calls with entries: another process wrote them after the seal."""
        query = (
            select(journal.c.call_id)
            .join(calls, calls.c.id == journal.c.call_id)
            .where(calls.c.state == "sealed")
            .distinct()
        )
        return [str(row.call_id) for row in self._database.fetch(query)]

    def _fetch_first(self, query: Select[Any]) -> CallRow | None:
        row = self._database.fetch_first(query.limit(1))
        return None if row is None else to_call_row(row)

    def _fetch_all(self, query: Select[Any]) -> list[CallRow]:
        return [to_call_row(row) for row in self._database.fetch(query)]


def _make_end(ended_at: datetime | None, reason: str | None) -> Json:
    """Column values of a call that has ended; an end that is stored already is kept."""
    return {
        "state": "sealing",
        "ended_at": func.coalesce(
            calls.c.ended_at, literal(ended_at, calls.c.ended_at.type)
        ),
        "end_reason": func.coalesce(calls.c.end_reason, literal(reason, Text)),
    }


def _make_due(connection: Connection, call_ids: Sequence[str]) -> None:
    """What was made of sealed calls before their caller was known is made again."""
    is_sealed = and_(calls.c.id.in_(call_ids), calls.c.state == "sealed")
    connection.execute(update(calls).where(is_sealed).values(postcall="due"))


def _insert_missing_entries(
    connection: Connection, call_id: str, entries: Iterable[JournalEntry]
) -> None:
    query = select(journal.c.kind, journal.c.seq).where(journal.c.call_id == call_id)
    known = {(row.kind, row.seq) for row in connection.execute(query)}
    if rows := [
        entry._asdict() for entry in entries if (entry.kind, entry.seq) not in known
    ]:
        connection.execute(insert(journal), rows)


def _fetch_parties(
    connection: Connection, call_ids: Sequence[str]
) -> dict[str, str | None]:
    query = select(calls.c.id, calls.c.whose).where(calls.c.id.in_(call_ids))
    return {row.id: row.whose for row in connection.execute(query)}


def _save_resume_state(connection: Connection, call: Call) -> None:
    """Makes this the call to resume, unless the stored one is newer.

    A silent call only replaces a call of its conversation.
    """
    if call.caller is None or call.source == IMPORTED:
        return
    key = {"agent_id": call.agent_id, "caller_hash": hash_caller(call.caller)}
    state = {
        "call_id": call.id,
        "conversation": call.conversation,
        "ended_at": call.ended_at,
    }
    ended_at = literal(call.ended_at, resume_states.c.ended_at.type)
    is_replaced: ColumnElement[bool] = resume_states.c.ended_at <= ended_at
    if call.is_silent:
        is_replaced = and_(
            is_replaced, resume_states.c.conversation == call.conversation
        )
    upsert(connection, resume_states, key, state, only_where=is_replaced)


def _refresh_briefing(connection: Connection, call: Call) -> None:
    """The caller may call again, and their news has changed."""
    if (
        call.caller is not None
        and call.direction == "inbound"
        and call.source != IMPORTED
    ):
        request_briefing(connection, call.agent_id, call.caller)
    else:
        invalidate_briefing(connection, call.agent_id, call.caller)


def add_tombstone(
    connection: Connection, source: str, sid: str, call_id: str, now: datetime
) -> None:
    """Marks an erased call, which is not accepted again."""
    key = {"key": _tombstone_key(source, sid)}
    upsert(connection, tombstones, key, {"call_id": call_id, "erased_at": now})


def _refuse_erased(connection: Connection, call: LiveCall) -> None:
    if _find_erasure(connection, call) is not None:
        raise _make_refusal(call)


def _make_refusal(call: LiveCall) -> CallErased:
    return CallErased(f"this {call.source} call was erased, and is not accepted again")


def _find_erasure(
    connection: Connection, call: LiveCall, *, is_spilled: bool = False
) -> datetime | None:
    """A call that one machine alone knew is erased, too, if its caller was erased since."""
    own = (call.source, call.sid), (ERASED_FILE, make_base_name(call))
    keys = [_tombstone_key(*names) for names in own]
    is_erased: ColumnElement[bool] = tombstones.c.key.in_(keys)
    if is_spilled and call.caller:
        is_caller = tombstones.c.key == _tombstone_key(ERASED_CALLER, call.caller)
        is_later = tombstones.c.erased_at >= call.started_at
        is_erased = or_(is_erased, and_(is_caller, is_later))
    return connection.execute(select(tombstones.c.erased_at).where(is_erased)).scalar()


def _tombstone_key(source: str, sid: str) -> str:
    return sha256(f"{source}\0{sid}".encode()).hexdigest()


def to_columns(call: LiveCall) -> Json:
    """Another agent answers a call that has a sender."""
    columns = {name: getattr(call, name) for name in LiveCall.model_fields}
    return columns | {"is_handed_in": SENDER in call.metadata}


def to_call_row(row: Row[Any]) -> CallRow:
    live = LiveCall.model_construct(
        **{name: row._mapping[name] for name in LiveCall.model_fields}
    )
    rest = {
        name: row._mapping[name]
        for name in CallRow.__dataclass_fields__
        if name != "live"
    }
    return CallRow(live=live, **rest)
