"""Whose a call is, which conversation it belongs to, and how fast its answers came."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    ForeignKey,
    Integer,
    Select,
    Table,
    Text,
    and_,
    case,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    update,
)

from aftercall.db.statements import InstantColumn, lock_name, upsert
from aftercall.db.tables import (
    call_topics,
    calls,
    followup_runs,
    followups,
    metadata,
    resume_states,
)
from aftercall.model.calls import IMPORTED, SENDER, Call, LiveCall
from aftercall.model.followups import EFFECT_ORDER, EFFECTS, PERSON, TO_DO
from aftercall.model.json_fields import Json

NEWEST_FIRST = (calls.c.started_at.desc(), calls.c.id.desc())
PARTIES = ("caller", "callee", "direction", "verified")


def belongs_to(party: str) -> ColumnElement[bool]:
    """Calls of a party; an index has them in order of time."""
    return calls.c.whose == party


def may_belong_to(party: str | None) -> ColumnElement[bool]:
    """Calls of a party, and undecided ones from its number. None: all calls."""
    if not party:
        return true()
    return or_(
        belongs_to(party), and_(calls.c.whose.is_(None), calls.c.caller == party)
    )


def select_last_end(agent_id: str, party: str | None) -> Select[tuple[datetime]]:
    """When the last call with caller words ended.

    The few calls of one party are scanned for the latest end; of all calls the newest is found by
    the index of starts. Each query would be slow for the other case.
    """
    spoken = and_(
        calls.c.agent_id == agent_id,
        calls.c.state == "sealed",
        ~calls.c.is_silent,
        may_belong_to(party),
    )
    if party:
        return select(func.max(calls.c.ended_at)).where(spoken)
    return (
        select(calls.c.ended_at)
        .where(spoken)
        .order_by(calls.c.started_at.desc())
        .limit(1)
    )


def join_same_call(connection: Connection, call: LiveCall) -> LiveCall:
    """Two processes may have answered the same call while they could not know of each other.

    The second record gets a sid of its own and belongs to the conversation of the first. Records
    that name two callers, or come from two senders, have their sid by chance: they stay apart.
    """
    same_sid = and_(calls.c.source == call.source, calls.c.sid == call.sid)
    first = connection.execute(select(calls).where(same_sid)).first()
    if first is None:
        return call
    metadata = {**call.metadata, "call_sid": call.sid}
    leg = call.model_copy(update={"sid": f"{call.sid}.{call.id}", "metadata": metadata})
    is_chance = len({first.caller, call.caller} - {None}) > 1
    if (
        is_chance
        or _record_key(first) != _record_key(leg)
        or call.conversation != call.id
    ):
        return leg
    joined = {"conversation": first.conversation, "resumes": first.id}
    return leg.model_copy(update=joined)


def share_caller(connection: Connection, call: LiveCall) -> list[str]:
    """What one record of a call was told of the caller holds for the others of its conversation.

    Returns those that were told now. Whose they are is to be decided anew.
    """
    legs = select(calls).where(calls.c.conversation == call.conversation)
    records = [
        row for row in connection.execute(legs) if _record_key(row) == _record_key(call)
    ]
    told = [row for row in records if row.caller]
    untold = [row.id for row in records if not row.caller]
    if not told or not untold:
        return []
    changes: Json = {name: getattr(told[0], name) for name in PARTIES}
    changes["whose"] = func.nullif(calls.c.whose, "")
    connection.execute(update(calls).where(calls.c.id.in_(untold)).values(changes))
    return untold


def _record_key(call: Any) -> tuple[str | None, ...]:
    """The same for all records of a call."""
    sid = str(call.metadata.get("call_sid", call.sid))
    return call.source, call.agent_id, call.metadata.get(SENDER), sid


def join_conversation(connection: Connection, call: Call, window: timedelta) -> Call:
    """Joins a finished call to its caller's calls within the window before and after it.

    A conversation that the sender names is kept. Runs in the transaction that inserts the call.
    """
    if call.resumes and call.conversation == call.id:
        query = select(calls.c.conversation).where(calls.c.id == call.resumes)
        resumed = connection.execute(query).scalar()
        return call.model_copy(update={"conversation": resumed or call.id})
    if call.resumes or call.conversation != call.id:
        return call
    if call.caller is None or call.direction != "inbound" or call.source == IMPORTED:
        return call
    # Two legs that arrive at once must see each other.
    lock_name(connection, "conversation", call.agent_id, call.caller)
    own = and_(
        calls.c.agent_id == call.agent_id,
        calls.c.caller == call.caller,
        calls.c.direction == "inbound",
        calls.c.source != IMPORTED,
    )
    leg = select(calls.c.id, calls.c.conversation).where(own).limit(1)
    is_before = calls.c.ended_at.between(call.started_at - window, call.started_at)
    is_after = calls.c.started_at.between(call.ended_at, call.ended_at + window)
    earlier = connection.execute(
        leg.where(is_before).order_by(calls.c.ended_at.desc())
    ).first()
    later = connection.execute(leg.where(is_after).order_by(calls.c.started_at)).first()
    joined = {"conversation": later.conversation} if later else {}
    if earlier is not None:
        if later is not None and later.conversation != earlier.conversation:
            _merge_conversation(connection, later.conversation, earlier.conversation)
        joined = {"conversation": earlier.conversation, "resumes": earlier.id}
    return call.model_copy(update=joined)


def _merge_conversation(connection: Connection, old: str, new: str) -> None:
    """Moves the calls of a conversation into another, unless its follow-up work has begun."""
    query = select(followup_runs.c.run).where(followup_runs.c.conversation == old)
    if connection.execute(query.with_for_update()).scalar():
        return
    connection.execute(delete(followup_runs).where(followup_runs.c.conversation == old))
    for table in (calls, call_topics, resume_states):
        connection.execute(
            update(table).where(table.c.conversation == old).values(conversation=new)
        )


def set_followup_timer(connection: Connection, call: Call, now: datetime) -> None:
    """Follow-up work waits for the last leg of a conversation: a later leg asks for a new run."""
    due = {"state": "due", "reason": "", "changed_at": now}
    row = {
        "agent_id": call.agent_id,
        "caller": call.caller,
        "ended_at": call.ended_at,
        **due,
    }
    ended_at = literal(call.ended_at, followup_runs.c.ended_at.type)
    latest = case(
        (followup_runs.c.ended_at > ended_at, followup_runs.c.ended_at), else_=ended_at
    )
    key = {"conversation": call.conversation}
    upsert(connection, followup_runs, key, row, changes={"ended_at": latest, **due})


def make_followup_due(connection: Connection, conversation: str, now: datetime) -> None:
    """So do words that arrived late. A run that goes on is followed by another."""
    of_conversation = followup_runs.c.conversation == conversation
    due = {"state": "due", "reason": "", "changed_at": now}
    connection.execute(update(followup_runs).where(of_conversation).values(due))


DELAY_STEP_MS = 50
SHORT_DELAY_STEP_MS = 10
# How fast a call's answers came: one row for each rounded delay.
answer_delays = Table(
    "answer_delays",
    metadata,
    Column("call_id", Text, ForeignKey("calls.id"), primary_key=True),
    Column("ms", Integer, primary_key=True),
    Column("answers", Integer, nullable=False),
    Column("at", InstantColumn, nullable=False),  # the call's start
    Column("agent_id", Text, nullable=False),
)


def _round_delay(ms: int) -> int:
    step = SHORT_DELAY_STEP_MS if ms < 2 * DELAY_STEP_MS else DELAY_STEP_MS
    return max(SHORT_DELAY_STEP_MS, round(ms / step) * step)


def write_answer_delays(connection: Connection, call: Call) -> None:
    """Rounded, so that many answers are few rows; a seal that is repeated writes the same."""
    delays = Counter(
        _round_delay(turn.delay_ms) for turn in call.turns if turn.delay_ms is not None
    )
    shared = {"call_id": call.id, "at": call.started_at, "agent_id": call.agent_id}
    if rows := [shared | {"ms": ms, "answers": times} for ms, times in delays.items()]:
        connection.execute(
            delete(answer_delays).where(answer_delays.c.call_id == call.id)
        )
        connection.execute(insert(answer_delays), rows)


def asked_at() -> ColumnElement[datetime]:
    """When a follow-up was asked for: when its call began, which may be long before it was read."""
    return func.coalesce(followups.c.asked_at, followups.c.created_at)


def select_standing() -> ColumnElement[str]:
    """How people see a follow-up: `describe_state` as SQL.

    No index has it. Whoever asks for it names the states, too, which an index has.
    """
    row = followups.c
    sinks: dict[str, list[ColumnElement[bool]]] = {
        effect: [] for effect in EFFECT_ORDER
    }
    for name, effect in EFFECTS.items():
        if name != "github":
            sinks[effect].append(row.sink.contains(name))
    is_task = and_(row.kind == "request", row.request_kind != "issue")
    is_issue = and_(row.sink.contains("github"), ~is_task)
    return case(
        (row.state != "done", row.state),
        (or_(row.sink == "", is_issue, *sinks["done"]), "done"),
        (or_(*sinks["passed on"]), "passed on"),
        else_="noted",
    )


def stands_alone() -> ColumnElement[bool]:
    """Not a promise that stands as the request that keeps it does: the request is counted."""
    row = followups.c
    is_own = or_(row.fulfilled_by.is_(None), row.sink == PERSON)
    is_other = row.state.not_in(("done", "held", "open"))
    return or_(row.kind == "request", is_own, is_other)


def is_to_do() -> ColumnElement[bool]:
    """The one answer to what is to do, for every list and count of it.

    Names no state: SQLite would take the index of states, which nearly all rows share.
    """
    return and_(select_standing().in_(TO_DO), stands_alone())
