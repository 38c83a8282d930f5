"""The event log: what happened to calls, requests, promises and facts, for programs elsewhere.

An event is written in the transaction of what it tells. It holds ids and a number, nothing that
was said; who reads it adds what the database knows by then (`work/events.py`).

An event has no id until it is published, after its transaction. Publishing is done by one
process at a time, so ids are given in the order in which readers come to see them: a reader that
asks for what follows an id misses nothing (decision 63).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from aftercall.db.connect import Database
from aftercall.db.statements import InstantColumn, Number, PreparedStatement, lock_name
from aftercall.db.tables import calls, deliveries, metadata, steps
from aftercall.errors import NotFound, RefusedInput
from aftercall.model.calls import IMPORTED
from aftercall.model.reading import OPEN_STATES
from aftercall.settings.providers import EventType

PREFIX = "evt_"
ID_DIGITS = 16  # microseconds, until the year 2286
PUBLISH_BATCH = 500

events = Table(
    "events",
    metadata,
    Column("n", Number, primary_key=True, autoincrement=True),
    Column("id", Number),  # none until it is published
    Column("type", Text, nullable=False),
    Column("subject", Text, nullable=False),  # a call, a follow-up or a fact
    Column("call_id", Text),
    Column("agent_id", Text, nullable=False),
    Column("caller", Text),
    Column("at", InstantColumn, nullable=False),
)
_WRITTEN = ("type", "subject", "call_id", "agent_id", "caller", "at")
_INSERT = PreparedStatement(
    insert(events)
    .values({name: bindparam(name, type_=events.c[name].type) for name in _WRITTEN})
    .inline()
)
_PUBLISH = PreparedStatement(
    update(events).where(events.c.n == bindparam("row")).values(id=bindparam("new_id"))
)


@dataclass(frozen=True)
class LoggedEvent:
    """An event as it is written; `id` is set once it is published."""

    type: EventType
    subject: str
    at: datetime
    agent_id: str
    caller: str | None = field(repr=False)
    call_id: str | None = None
    id: str = ""


def write_events(connection: Connection, written: Iterable[LoggedEvent]) -> None:
    rows = [{name: getattr(event, name) for name in _WRITTEN} for event in written]
    if rows:
        _INSERT.execute_many(connection, rows)


def write_call_event(
    connection: Connection, type_: EventType, call_id: str, at: datetime
) -> None:
    """Says nothing of an imported call: it is old."""
    columns = (calls.c.source, calls.c.agent_id, calls.c.caller)
    row = connection.execute(select(*columns).where(calls.c.id == call_id)).one()
    if row.source != IMPORTED:
        event = LoggedEvent(type_, call_id, at, row.agent_id, row.caller, call_id)
        write_events(connection, [event])


_TOLD_STATES: dict[tuple[str, str], EventType] = {
    ("request", "held"): "request.held",
    ("request", "done"): "request.done",
    ("promise", "broken"): "promise.broken",
}


def write_followup_events(
    connection: Connection, row: Any, at: datetime, *, is_new: bool = False
) -> None:
    """What is told of a row of the ledger that was added, or whose state has changed."""
    types: list[EventType] = []
    if is_new and row.kind == "request":
        types.append("request.created")
    if told := _TOLD_STATES.get((row.kind, row.state)):
        types.append(told)
    write_events(
        connection,
        [
            LoggedEvent(type_, row.id, at, row.agent_id, row.caller, row.call_id)
            for type_ in types
        ],
    )


Fan = Callable[[Connection, Sequence[LoggedEvent]], None]
"""Writes what follows from events, in the transaction that publishes them."""


class EventLog:
    """What other programs are told, in an order that no reader can skip."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def publish(self, now: datetime, fan_out: Fan) -> int:
        """Give ids to new events; returns how many. A crash publishes all of a batch or none.

        An id is the time in microseconds, or one more than the last id. It also goes on after
        the log was emptied, or a backup restored.
        """
        new = select(events).where(events.c.id.is_(None), ~_is_early())
        batch = new.order_by(events.c.n).limit(PUBLISH_BATCH)
        if self._database.fetch_first(batch.limit(1)) is None:
            return 0
        with self._database.write() as connection:
            lock_name(connection, "aftercall.events")
            rows = connection.execute(batch).all()
            last = connection.execute(select(func.max(events.c.id))).scalar() or 0
            first = max(last + 1, int(now.timestamp() * 1_000_000))
            ids = [{"row": row.n, "new_id": first + at} for at, row in enumerate(rows)]
            if ids:
                _PUBLISH.execute_many(connection, ids)
                published = [_to_event(row, first + at) for at, row in enumerate(rows)]
                fan_out(connection, published)
            return len(rows)

    def page(self, *, after: str = "", limit: int = 100) -> list[LoggedEvent]:
        """Published events, oldest first."""
        query = (
            select(events)
            .where(events.c.id > _parse_id(after))
            .order_by(events.c.id)
            .limit(limit)
        )
        return [_to_event(row, row.id) for row in self._database.fetch(query)]

    def get(self, event_id: str) -> LoggedEvent:
        query = select(events).where(events.c.id == _parse_id(event_id))
        row = self._database.fetch_first(query)
        if row is None:
            raise NotFound(f"there is no event {event_id}; events are kept for a time")
        return _to_event(row, row.id)

    def delete_before(self, moment: datetime) -> int:
        """Delete old events, and the deliveries of old events."""
        is_old = and_(deliveries.c.purpose == "event", deliveries.c.created_at < moment)
        with self._database.write() as connection:
            connection.execute(delete(deliveries).where(is_old))
            return connection.execute(
                delete(events).where(events.c.at < moment)
            ).rowcount


def format_event_id(number: int) -> str:
    return f"{PREFIX}{number:0{ID_DIGITS}d}"


def _is_early() -> Any:
    """A summary is told once the facts of its call are known: they tell what is a secret."""
    is_open = and_(
        steps.c.call_id == events.c.call_id,
        steps.c.name == "facts",
        steps.c.state.in_(OPEN_STATES),
    )
    return and_(events.c.type == "call.summarised", exists().where(is_open))


def _parse_id(event_id: str) -> int:
    if not event_id:
        return 0
    digits = event_id.removeprefix(PREFIX)
    if not (digits.isascii() and digits.isdigit() and len(digits) == ID_DIGITS):
        raise RefusedInput("after", f"is not the id of an event ({PREFIX}…)")
    return int(digits)


def _to_event(row: Any, number: int) -> LoggedEvent:
    values = {name: row._mapping[name] for name in _WRITTEN}
    return LoggedEvent(**values, id=format_event_id(number))
