"""Tells programs elsewhere what happened: events as JSON, and webhooks that post them.

A delivery of an event is a row like any other delivery of a sink, so it is claimed, retried,
given up and sent again the same way. The durable engine tries it for more than a day.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx2
from sqlalchemy import Connection, and_, insert, select, update

from aftercall.carrier.media import (
    Resolve,
    is_public,
    pin_address,
    resolve_host,
    split_origin,
)
from aftercall.clock import Clock, format_instant
from aftercall.db.connect import Database
from aftercall.db.event_log import EventLog, LoggedEvent
from aftercall.db.tables import deliveries
from aftercall.errors import (
    AftercallError,
    NotFound,
    SinkRefused,
    SinkUnavailable,
)
from aftercall.journal.store import CallStore
from aftercall.journal.view import row_json
from aftercall.memory.fact_store import FactStore, fact_json
from aftercall.memory.visibility import mask_secrets, to_secrets
from aftercall.model.followups import SinkReceipt, SinkWork, followup_json
from aftercall.model.json_fields import Json
from aftercall.settings.providers import EventSettings
from aftercall.work.sinks.http import HttpRequest, read_secret, send, sign
from aftercall.work.store import FollowUpStore

SINK_PREFIX = "events."
# as Standard Webhooks suggest: quickly at first, then for more than a day
PAUSES_S = (2.0, 30.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 36_000.0)
GONE = frozenset({410})  # the only answer that ends the attempts
START_BATCH = 50
_SAID = ("title", "details", "words", "summary")


@dataclass(frozen=True)
class EventView:
    """Events as JSON, with what the database knows of their subject now."""

    calls: CallStore
    followups: FollowUpStore
    facts: FactStore

    def to_json(self, event: LoggedEvent) -> Json:
        try:
            data = self._describe(event)
        except NotFound:  # deleted since: there is nothing to tell but that
            data = {"id": event.subject, "is_deleted": True}
        return {
            "id": event.id,
            "type": event.type,
            "timestamp": format_instant(event.at),
            "data": data,
        }

    def _describe(self, event: LoggedEvent) -> Json:
        match event.type.partition(".")[0]:
            case "fact":
                return fact_json(self.facts.get(event.subject))
            case "call":
                data = row_json(self.calls.get(event.subject))
                if event.type == "call.summarised":
                    known = self.calls.list_summaries([event.subject])
                    data["summary"] = known.get(event.subject, "")
            case _:
                data = followup_json(self.followups.get(event.subject))
        return self._mask(data, event.call_id or "")

    def _mask(self, data: Json, call_id: str) -> Json:
        """Without what the caller confided, whether or not the call was redacted by now."""
        secrets = to_secrets(self.facts.list_confided_words(call_id))
        said = {
            name: mask_secrets(data[name], secrets) for name in _SAID if name in data
        }
        return data | said


class EventHook:
    """A sink that posts an event, signed as Standard Webhooks describe it."""

    leaves_machine = True
    can_repeat = True

    def __init__(
        self,
        settings: EventSettings,
        name: str,
        read: Callable[[str], Json],
        clock: Clock,
        resolve: Resolve = resolve_host,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        """`read` gives the JSON of an event by its id."""
        self.name = f"{SINK_PREFIX}{name}"
        secret = settings.secrets[name].get_secret_value()
        self._key = read_secret(f"events.secrets.{name}", secret)
        self._url = settings.webhooks[name].get_secret_value()
        only = settings.only.get(name)
        self._only = only.split("+") if only else None
        self._allow_private = settings.allow_private
        self._read = read
        self._clock = clock
        self._resolve = resolve
        self._transport = transport

    def wants(self, event: LoggedEvent) -> bool:
        return self._only is None or event.type in self._only

    def describe_dry_run(self, work: SinkWork) -> str:
        return f"would post a {work.title} event"

    def deliver(self, work: SinkWork) -> SinkReceipt:
        """The same event has the same id each time; the receiver knows it by that."""
        event = self._read(work.conversation)
        now = self._clock.now()
        body = json.dumps(event).encode()
        target = pin_address(self._url, self._find_address())
        headers = {
            "Host": target.netloc,
            "Content-Type": "application/json",
            "User-Agent": "aftercall",
            **sign(self._key, str(event["id"]), now, body),
        }
        tls_host = target.host if target.url.startswith("https:") else None
        request = HttpRequest(
            "POST", target.url, headers, content=body, tls_host=tls_host
        )
        answer = send(self.name, request, self._transport, final_statuses=GONE)
        return SinkReceipt(response=str(answer.status_code))

    def _find_address(self) -> str:
        """An address that was checked, so that a name cannot lead into our own network."""
        _, host, port = split_origin(self._url)
        found = self._resolve(host, port)
        if not found:
            raise SinkUnavailable(f"{self.name}: its host has no address; tried again")
        if not self._allow_private and not all(is_public(one) for one in found):
            raise SinkRefused(
                f"{self.name}: its host leads to an address that is not public; "
                "events.allow_private allows that"
            )
        return found[0]


@dataclass(frozen=True)
class Webhooks:
    """The deliveries of events: which are to be made, and which are due."""

    database: Database
    log: EventLog
    view: EventView
    hooks: Sequence[EventHook]
    clock: Clock

    def publish(self) -> int:
        """Publish new events and write a delivery for each webhook that wants one."""
        return self.log.publish(self.clock.now(), self._add_deliveries)

    def _add_deliveries(
        self, connection: Connection, published: Sequence[LoggedEvent]
    ) -> None:
        now = self.clock.now()
        rows = [
            {
                "key": f"{event.id}:{hook.name}",
                "conversation": event.id,
                "sink": hook.name,
                "purpose": "event",
                "state": "due",
                "reason": "",
                "created_at": now,
                "changed_at": now,
            }
            for event in published
            for hook in self.hooks
            if hook.wants(event)
        ]
        if rows:
            connection.execute(insert(deliveries), rows)

    def list_due(self) -> list[tuple[str, str, datetime]]:
        """Key, sink and time of deliveries that have no workflow yet, oldest first."""
        columns = (deliveries.c.key, deliveries.c.sink, deliveries.c.changed_at)
        query = (
            select(*columns)
            .where(deliveries.c.state == "due")
            .order_by(deliveries.c.key)
            .limit(START_BATCH)
        )
        return [tuple(row) for row in self.database.fetch(query)]

    def mark_started(self, key: str) -> None:
        is_due = and_(deliveries.c.key == key, deliveries.c.state == "due")
        self._update(is_due, state="waiting")

    def send_again(self, key: str) -> None:
        """The engine tries it from the beginning, as often as a new one."""
        is_over = deliveries.c.state.in_(("dead", "done", "waiting"))
        now = self.clock.now()
        self._update(
            and_(deliveries.c.key == key, is_over), state="due", changed_at=now
        )

    def fail_removed(self) -> int:
        """Give up deliveries to webhooks that are not in the settings any more."""
        is_open = and_(
            deliveries.c.purpose == "event",
            deliveries.c.state.in_(("due", "waiting")),
            deliveries.c.sink.not_in([hook.name for hook in self.hooks]),
        )
        return self._update(is_open, state="dead", reason="is not set up any more")

    def _update(self, where: Any, **values: Any) -> int:
        with self.database.write() as connection:
            changed = update(deliveries).where(where).values(values)
            return connection.execute(changed).rowcount


def make_webhooks(
    settings: EventSettings, database: Database, view: EventView, clock: Clock
) -> Webhooks:
    log = EventLog(database)

    def read(event_id: str) -> Json:
        return view.to_json(log.get(event_id))

    hooks = [EventHook(settings, name, read, clock) for name in settings.webhooks]
    return Webhooks(database, log, view, hooks, clock)


def event_work(key: str, event_id: str) -> SinkWork:
    return SinkWork(key, "event", "note", title=event_id, conversation=event_id)


def next_attempt_s(error: AftercallError, attempt: int) -> float | None:
    """The pause before the next attempt. None: give up."""
    if not error.retryable or attempt > len(PAUSES_S):
        return None
    return PAUSES_S[attempt - 1]
