"""The rows of pins and of the topics of calls. Functions work inside a given transaction."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, delete, select, update

from aftercall.db.briefing_cache import invalidate_briefing
from aftercall.db.statements import lock_name, upsert
from aftercall.db.tables import call_topics, followups, pins
from aftercall.errors import NotFound
from aftercall.model.facts import (
    SHARED_CALLER,
    MemoryKey,
    Pin,
    PinItem,
    PinMention,
    PinPage,
    PinState,
    Sentence,
    SpokenTopic,
)
from aftercall.model.followups import describe_state
from aftercall.model.json_fields import pick_fields

MAX_CALLS = 100  # calls of one memory, newest first
SAMPLE_CALLS = 400  # calls of others that a topic is compared with
MAX_ITEMS = 100
BATCH_SIZE = 500
_HISTORY = TypeAdapter(tuple[PinMention, ...])
_SAID = TypeAdapter(tuple[Sentence, ...])


def lock(connection: Connection, key: MemoryKey) -> None:
    """One writer at a time for the pins of a memory."""
    lock_name(connection, "pins", *key)


def save_spoken_topic(
    connection: Connection, key: MemoryKey, spoken: SpokenTopic
) -> None:
    """Add or replace the topics of a call."""
    values = {
        **key._asdict(),
        "conversation": spoken.conversation,
        "at": spoken.at,
        "said": _SAID.dump_python(spoken.said, mode="json"),
    }
    for name in ("terms", "central", "settled"):
        values[name] = " ".join(sorted(getattr(spoken, name)))
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
        left = [mention for mention in row.history if mention["call_id"] not in removed]
        if len(left) == len(row.history):
            continue
        connection.execute(update(pins).where(pins.c.id == row.id).values(history=left))
        if not left and row.note is None and not row.is_titled_by_hand:
            left_empty.append(row.id)
    return left_empty


def _columns(pin: Pin) -> dict[str, Any]:
    history = _HISTORY.dump_python(pin.history, mode="json")
    row = vars(pin) | {"terms": list(pin.terms), "history": history}
    row.update(row.pop("key")._asdict(), anchor=pin.anchor)
    return row


def _to_pin(row: Row[Any]) -> Pin:
    values = row._asdict()
    del values["anchor"]
    key = MemoryKey(values.pop("agent_id"), values.pop("caller"))
    history = _HISTORY.validate_python(row.history)
    return Pin(key=key, **values | {"terms": tuple(row.terms), "history": history})


def _to_spoken(row: Row[Any]) -> SpokenTopic:
    """What a call said of topics, from its row."""
    said = _SAID.validate_python(row.said)
    terms, central, settled = (
        frozenset(value.split()) for value in (row.terms, row.central, row.settled)
    )
    return SpokenTopic(
        row.call_id, row.conversation, row.at, terms, central, settled, said
    )


OPEN_STATES = ("open", "held", "doing", "failed", "unknown", "broken")
QUIET_PERIOD = timedelta(days=14)
"""Finished work settles a topic that was not mentioned for so long: the work may only have been
handed over.
"""
SETTLED_REASON = "the caller said that it is settled"
SPOKEN_OF_REASON = "spoken of in {} conversations"
STALE_REASON = "not spoken of since {:%d %B %Y}"
WORK_DONE_REASON = "what was asked for is done, and nobody came back to it"
COMMON_REASON = "many callers speak of it"
MAX_HISTORY_MENTIONS = 100
MAX_ABOUT_MENTIONS = 10  # the first mentions say what a topic is about


def is_about(call: SpokenTopic, pin: Pin) -> bool:
    """Whether the call has the anchor of the pin, or most of its other terms."""
    if pin.anchor in call.terms:
        return True
    others = set(pin.terms[1:])
    return len(others) > 1 and len(others & call.terms) * 2 > len(others)


def is_central(call: SpokenTopic, pin: Pin) -> bool:
    return is_about(call, pin) and bool(set(pin.terms) & call.central)


def is_settled(call: SpokenTopic, pin: Pin) -> bool:
    return is_about(call, pin) and bool(set(pin.terms) & call.settled)


def make_history(pin: Pin, spoken: Sequence[SpokenTopic]) -> tuple[PinMention, ...]:
    """The calls that mention it. Mentions too old to be in `spoken` stay."""
    spoken_ids = {call.call_id for call in spoken}
    mentions = [mention for mention in pin.history if mention.call_id not in spoken_ids]
    for call in spoken:
        if is_about(call, pin):
            words = _find_best_words(call, pin)
            mentions.append(PinMention(call.call_id, call.conversation, call.at, words))
    mentions.sort(key=lambda mention: (mention.at, mention.call_id))
    return tuple(mentions[-MAX_HISTORY_MENTIONS:])


def choose_state(
    pin: Pin,
    spoken: Sequence[SpokenTopic],
    items: Iterable[PinItem],
    now: datetime,
    stale_days: int,
) -> tuple[PinState, str]:
    """State and reason, from stored data alone: computing it again changes nothing."""
    telling = [
        call for call in spoken if is_central(call, pin) or is_settled(call, pin)
    ]
    last_at = pin.history[-1].at if pin.history else pin.last_at
    own = list_pin_items(pin, items)
    is_open = any(item.state in OPEN_STATES for item in own)
    if telling and is_settled(telling[-1], pin) and not is_open:
        return "unpinned", SETTLED_REASON
    if stale_days and now - last_at > timedelta(days=stale_days):
        return "unpinned", STALE_REASON.format(last_at)
    if own and not is_open:
        changed_at = max(last_at, *(item.changed_at for item in own))
        if now - changed_at > QUIET_PERIOD:
            return "unpinned", WORK_DONE_REASON
    conversations = {mention.conversation for mention in pin.history}
    return "pinned", SPOKEN_OF_REASON.format(len(conversations))


def list_pin_items(pin: Pin, items: Iterable[PinItem]) -> tuple[PinItem, ...]:
    return tuple(item for item in items if pin.anchor in item.terms)


def add_terms(items: Iterable[tuple[PinItem, str]]) -> list[PinItem]:
    """Add the terms that connect an item with a pin."""
    from aftercall.memory.pins.topics import iter_terms

    return [replace(item, terms=frozenset(iter_terms(words))) for item, words in items]


def make_page(pin: Pin, items: Iterable[PinItem], zone: tzinfo) -> PinPage:
    """What is shown of a pin: what it is about, how it stands, and its items."""
    from aftercall.memory.pins.topics import iter_terms

    own = list_pin_items(pin, items)
    open_items = tuple(item for item in own if item.state in OPEN_STATES)
    done_items = tuple(item for item in own if item.state == "done")
    about = max(
        pin.history[:MAX_ABOUT_MENTIONS],
        key=lambda mention: _count_terms(iter_terms(mention.words), pin),
        default=None,
    )
    status = _make_status(pin, open_items, done_items, zone)
    return PinPage(pin, about.words if about else "", status, open_items, done_items)


def _make_status(
    pin: Pin, open_items: Sequence[PinItem], done_items: Sequence[PinItem], zone: tzinfo
) -> str:
    """How a pin stands, in one line."""
    if pin.state == "unpinned":
        return pin.reason
    status = "not spoken of yet"
    if pin.history and pin.history[-1].words:
        last = pin.history[-1]
        status = f"last spoken of on {last.at.astimezone(zone):%d %B %Y}: {last.words}"
    done = Counter(item.standing or item.state for item in done_items)
    counts = [f"{count} {name}" for name, count in sorted(done.items())]
    if open_items:
        counts.insert(0, f"{len(open_items)} open")
    return f"{status} ({', '.join(counts)})" if counts else status


def _find_best_words(call: SpokenTopic, pin: Pin) -> str:
    """The sentence with most terms of the pin; the last one of several."""
    best = 1
    words = ""
    for sentence in call.said:
        count = _count_terms(sentence.terms, pin)
        if count >= best:
            best = count
            words = sentence.text
    return words


def _count_terms(terms: Iterable[str], pin: Pin) -> int:
    return len(set(pin.terms).intersection(terms))


def pin_json(shown: PinPage) -> dict[str, Any]:
    """For programs."""
    pin = shown.pin
    return {
        "id": pin.id,
        **pick_fields(pin.key, "agent_id caller"),
        **pick_fields(pin, "title state reason is_decided_by_hand note"),
        **pick_fields(shown, "about status"),
        "open_items": [_item_json(item) for item in shown.open_items],
        "done_items": [_item_json(item) for item in shown.done_items],
        "history": [
            {"call": each.call_id, **pick_fields(each, "at words")}
            for each in pin.history
        ],
        **pick_fields(pin, "terms since last_at changed_at"),
    }


def _item_json(item: PinItem) -> dict[str, Any]:
    standing = {"standing": item.standing or item.state}
    return pick_fields(item, "id title state") | standing | {"due": item.due}
