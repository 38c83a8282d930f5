"""The rows of pins and of the topics of calls. Functions work inside a given transaction."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, select, update

from aftercall.clock import format_instant, parse_instant
from aftercall.db.stale_briefings import invalidate_briefing
from aftercall.db.statements import lock_name, upsert
from aftercall.db.tables import call_topics, followups, pins
from aftercall.errors import NotFound
from aftercall.model.facts import (
    SHARED_CALLER,
    MemoryKey,
    Pin,
    PinItem,
    PinMention,
    Sentence,
    SpokenTopic,
)
from aftercall.model.followups import describe_state

MAX_CALLS = 100  # calls of one memory, newest first
SAMPLE_CALLS = 400  # calls of others that a topic is compared with
MAX_ITEMS = 100
BATCH_SIZE = 500
# fields of a pin that are not columns as they are
_NESTED = ("key", "terms", "history")


def lock(connection: Connection, key: MemoryKey) -> None:
    """One writer at a time for the pins of a memory."""
    lock_name(connection, "pins", *key)


def save_spoken_topic(
    connection: Connection, key: MemoryKey, spoken: SpokenTopic
) -> None:
    """Add or replace the topics of a call."""
    values = {
        "agent_id": key.agent_id,
        "caller": key.caller,
        "conversation": spoken.conversation,
        "at": spoken.at,
        "terms": " ".join(sorted(spoken.terms)),
        "central": " ".join(sorted(spoken.central)),
        "settled": " ".join(sorted(spoken.settled)),
        "said": [
            {"text": each.text, "terms": list(each.terms), "runs": list(each.runs)}
            for each in spoken.said
        ],
    }
    upsert(connection, call_topics, {"call_id": spoken.call_id}, values)
    invalidate_briefing(connection, *key)


def list_spoken_topics(connection: Connection, key: MemoryKey) -> list[SpokenTopic]:
    """The topics of the newest calls of a memory, oldest first."""
    mine = (call_topics.c.agent_id == key.agent_id, call_topics.c.caller == key.caller)
    query = (
        select(call_topics)
        .where(*mine)
        .order_by(call_topics.c.at.desc(), call_topics.c.call_id.desc())
        .limit(MAX_CALLS)
    )
    return [_to_spoken(row) for row in connection.execute(query)][::-1]


def sample_other_callers(
    connection: Connection, key: MemoryKey
) -> list[tuple[str, frozenset[str]]]:
    """Callers and terms of the newest calls of others. A shared memory has no other callers."""
    if key.caller == SHARED_CALLER:
        return []
    known = call_topics.c
    query = select(known.caller, known.terms).where(
        known.agent_id == key.agent_id, known.caller.not_in((key.caller, SHARED_CALLER))
    )
    return [
        (row.caller, frozenset(row.terms.split()))
        for row in connection.execute(
            query.order_by(known.at.desc()).limit(SAMPLE_CALLS)
        )
    ]


def list_items(connection: Connection, key: MemoryKey) -> list[tuple[PinItem, str]]:
    """The newest requests and promises of a memory, each with its words."""
    known = followups.c
    query = select(followups).where(known.agent_id == key.agent_id)
    if key.caller != SHARED_CALLER:
        query = query.where(known.caller == key.caller)
    rows = connection.execute(query.order_by(known.id.desc()).limit(MAX_ITEMS)).all()
    return [(_to_item(row), f"{row.title} {row.details}") for row in reversed(rows)]


def _to_item(row: Any) -> PinItem:
    standing = describe_state(row.state, row.kind, row.request_kind, row.sink)
    return PinItem(
        row.id, row.title, row.state, row.due, row.changed_at, standing=standing
    )


def list_pins(
    connection: Connection, key: MemoryKey, *, state: str | None = None
) -> list[Pin]:
    """Pinned ones first, then by their last mention, newest first."""
    query = select(pins).where(
        pins.c.agent_id == key.agent_id, pins.c.caller == key.caller
    )
    if state:
        query = query.where(pins.c.state == state)
    ordered = query.order_by(pins.c.state, pins.c.last_at.desc(), pins.c.id)
    return [_to_pin(row) for row in connection.execute(ordered)]


def get_pin(connection: Connection, pin_id: str) -> Pin:
    row = connection.execute(select(pins).where(pins.c.id == pin_id)).first()
    if row is None:
        raise NotFound(
            f"there is no pin {pin_id}; `aftercall memory pins CALLER` lists the pins of a caller"
        )
    return _to_pin(row)


def save_pin(connection: Connection, pin: Pin) -> None:
    """Add or change a pin."""
    values = _columns(pin)
    upsert(connection, pins, {"id": values.pop("id")}, values)
    invalidate_briefing(connection, *pin.key)


def list_quiet_memories(
    connection: Connection, before: datetime, after: tuple[str, str]
) -> list[MemoryKey]:
    """A page of memories with a pin that was not mentioned since `before`, ordered by key."""
    known = pins.c
    query = select(known.agent_id, known.caller).where(
        known.state == "pinned", known.last_at < before, ~known.is_decided_by_hand
    )
    later = (known.agent_id > after[0]) | (
        (known.agent_id == after[0]) & (known.caller > after[1])
    )
    rows = connection.execute(
        query.where(later)
        .distinct()
        .order_by(known.agent_id, known.caller)
        .limit(BATCH_SIZE)
    )
    return [MemoryKey(row.agent_id, row.caller) for row in rows]


def clear_pins(connection: Connection) -> None:
    """Delete what can be made again from the archive; what a person wrote or decided stays."""
    connection.execute(delete(call_topics))
    is_ours = (
        ~pins.c.is_titled_by_hand & ~pins.c.is_decided_by_hand & pins.c.note.is_(None)
    )
    connection.execute(delete(pins).where(is_ours))
    connection.execute(update(pins).values(history=[]))


def strip_calls(connection: Connection, call_ids: Iterable[str]) -> list[str]:
    """Remove calls from the histories of shared pins; returns the ids of pins left without any.

    A pin with a note or a title from a person is not among them.
    """
    removed = set(call_ids)
    left_empty = []
    for row in connection.execute(
        select(pins).where(pins.c.caller == SHARED_CALLER)
    ).all():
        left = [mention for mention in row.history if mention["call"] not in removed]
        if len(left) == len(row.history):
            continue
        connection.execute(update(pins).where(pins.c.id == row.id).values(history=left))
        if not left and row.note is None and not row.is_titled_by_hand:
            left_empty.append(row.id)
    return left_empty


def _columns(pin: Pin) -> dict[str, Any]:
    plain = {
        name: getattr(pin, name)
        for name in Pin.__dataclass_fields__
        if name not in _NESTED
    }
    history = [
        {
            "call": each.call_id,
            "conversation": each.conversation,
            "at": format_instant(each.at),
            "words": each.words,
        }
        for each in pin.history
    ]
    return plain | {
        "agent_id": pin.key.agent_id,
        "caller": pin.key.caller,
        "anchor": pin.anchor,
        "terms": list(pin.terms),
        "history": history,
    }


def _to_pin(row: Row[Any]) -> Pin:
    fields = {
        name: row._mapping[name]
        for name in Pin.__dataclass_fields__
        if name not in _NESTED
    }
    history = tuple(
        PinMention(
            each["call"], each["conversation"], parse_instant(each["at"]), each["words"]
        )
        for each in row.history
    )
    return Pin(
        key=MemoryKey(row.agent_id, row.caller),
        terms=tuple(row.terms),
        history=history,
        **fields,
    )


def _to_spoken(row: Row[Any]) -> SpokenTopic:
    said = tuple(
        Sentence(each["text"], tuple(each["terms"]), tuple(each["runs"]))
        for each in row.said
    )
    terms, central, settled = (
        frozenset(value.split()) for value in (row.terms, row.central, row.settled)
    )
    return SpokenTopic(
        row.call_id, row.conversation, row.at, terms, central, settled, said
    )
