"""The SQL of the ledger: requests and promises, their history, and deliveries to sinks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    ScalarSelect,
    and_,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from aftercall.db.audit_log import Deed, write_audit
from aftercall.db.briefing_cache import invalidate_briefing
from aftercall.db.connect import Database
from aftercall.db.conversations import (
    may_belong_to,
    select_last_end,
    select_standing,
    stands_alone,
)
from aftercall.db.corrections import FOLLOWUPS
from aftercall.db.event_log import write_followup_events
from aftercall.db.statements import upsert
from aftercall.db.tables import calls, deliveries, followup_history, followups
from aftercall.errors import NotFound
from aftercall.journal.handover import Presence
from aftercall.model.followups import (
    Delivery,
    FollowUp,
    FollowUpChange,
    FollowUpState,
    SinkReceipt,
    SinkWork,
    Standing,
    describe_state,
    to_state,
)
from aftercall.model.json_fields import Json
from aftercall.model.people import split_party
from aftercall.work.sinks import Sink


@dataclass(frozen=True)
class FollowUpTransition:
    state: FollowUpState
    who: str
    reason: str = ""
    note: str = ""
    values: tuple[tuple[str, Any], ...] = ()
    deed: Deed | None = None  # what a person did, for the audit log


class FollowUpStore:
    """The rows of follow-ups: what was asked for, what it waits for, what became of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(
        self,
        new_rows: Sequence[FollowUp],
        changes: Sequence[tuple[str, FollowUpTransition]],
        reminders: set[str],
        now: datetime,
        *,
        who: str = "follow-up",
        seen: Sequence[FollowUp] = (),
        writes_events: bool = True,
        write: Callable[[Connection], None] = lambda connection: None,
    ) -> bool:
        """Adds rows and applies changes in one transaction. A row with a known key stays.

        False if a row to be changed is no longer as it was `seen`.
        """
        with self._database.write() as connection:
            by_id = {row.id: row for row in seen}
            if not all(_is_as_seen(connection, by_id.get(row)) for row, _ in changes):
                return False
            known = _known_keys(connection, [row.key for row in new_rows])
            for row in new_rows:
                if row.key in known:
                    continue
                reminder = {"reminder": "due"} if row.id in reminders else {}
                asked = {"asked_at": _select_start(row.call_id)}
                new = insert(followups).values(_columns(row) | reminder | asked)
                connection.execute(new)
                invalidate_briefing(connection, row.agent_id, row.caller)
                _write_history(connection, row.id, now, who, row.state, row.reason)
                if writes_events:
                    write_followup_events(connection, row, now, is_new=True)
            for followup_id, transition in changes:
                _apply(connection, followup_id, transition, now)
            write(connection)
            return True

    def change_state(
        self,
        followup_id: str,
        transition: FollowUpTransition,
        now: datetime,
        *,
        only_from: tuple[FollowUpState, ...],
        only_soon: bool = False,
    ) -> bool:
        """Changes the state if it is one of `only_from`; returns whether it was.

        `only_soon`: only while an approval can still be undone.
        """
        is_allowed: list[ColumnElement[bool]] = [followups.c.state.in_(only_from)]
        if only_soon:
            is_allowed.append(followups.c.queued == "soon")
        with self._database.write() as connection:
            return _apply(connection, followup_id, transition, now, and_(*is_allowed))

    def get(self, followup_id: str) -> FollowUp:
        found = self._select(followups.c.id == followup_id)
        if not found:
            raise NotFound(
                f"there is no follow-up {followup_id!r}; `aftercall followups list` shows all"
            )
        return found[0]

    def find(self, key: str) -> FollowUp | None:
        return next(iter(self._select(followups.c.key == key)), None)

    def of_conversation(self, conversation: str) -> list[FollowUp]:
        return self._select(
            followups.c.conversation == conversation, order=followups.c.id
        )

    def page(
        self,
        *,
        limit: int,
        state: str | Sequence[str] | None = None,
        caller: str | None = None,
        party: str | None = None,
        before: str | None = None,
        standings: Sequence[Standing] = (),
        title: str = "",
        only_alone: bool = False,
    ) -> list[FollowUp]:
        """Newest first: ids sort by time. `caller` is a number, `party` one person behind it."""
        wanted: list[ColumnElement[bool]] = [stands_alone()] if only_alone else []
        if state:
            states = (state,) if isinstance(state, str) else tuple(state)
            wanted.append(followups.c.state.in_(states))
        if standings:
            wanted.append(followups.c.state.in_(map(to_state, standings)))
            wanted.append(select_standing().in_(standings))
        if title:
            wanted.append(followups.c.title.icontains(title, autoescape=True))
        if caller:
            wanted.append(followups.c.caller == caller)
        if party:
            is_theirs = and_(calls.c.id == followups.c.call_id, calls.c.whose == party)
            wanted.append(exists().where(is_theirs))
        if before:
            wanted.append(followups.c.id < before)
        return self._select(and_(True, *wanted), limit=limit)

    def history(self, followup_id: str) -> list[FollowUpChange]:
        query = (
            select(followup_history)
            .where(followup_history.c.followup_id == followup_id)
            .order_by(followup_history.c.n)
        )
        return [
            FollowUpChange(row.at, row.who, row.what, row.note)
            for row in self._database.fetch(query)
        ]

    def count_since(
        self, caller: str | None, since: datetime, *, apart_from: str
    ) -> int:
        """Requests of a caller in other conversations. Withheld numbers count as one caller."""
        own = followups.c.caller == caller if caller else followups.c.caller.is_(None)
        query = select(func.count()).where(
            own,
            followups.c.kind == "request",
            followups.c.state != "unclear",
            followups.c.created_at >= since,
            followups.c.conversation != apart_from,
        )
        return self._database.fetch_value(query) or 0

    def queued(self, approved_before: datetime, limit: int = 50) -> list[FollowUp]:
        """Requests that are to be tried again, or were approved and not undone in time."""
        due = self._select(
            followups.c.queued == "due", order=followups.c.id, limit=limit
        )
        is_over = and_(_is_soon(), followups.c.changed_at <= approved_before)
        return due + self._select(is_over, order=followups.c.id, limit=limit)

    def next_approved(self) -> datetime | None:
        """When the first approval that can still be undone was made."""
        first = self._select(_is_soon(), order=followups.c.changed_at, limit=1)
        return first[0].changed_at if first else None

    def mark_queued_started(self, followup_id: str, round_: int) -> None:
        with self._database.write() as connection:
            key = and_(followups.c.id == followup_id, followups.c.round == round_)
            connection.execute(update(followups).where(key).values(queued="started"))

    def reminders_due(self, now: datetime, limit: int = 50) -> list[FollowUp]:
        is_due = and_(_is_to_remind(), followups.c.remind_at <= now)
        return self._select(is_due, order=followups.c.remind_at, limit=limit)

    def next_reminder(self) -> datetime | None:
        first = self._select(_is_to_remind(), order=followups.c.remind_at, limit=1)
        return first[0].remind_at if first else None

    def mark_reminder_started(self, followup_id: str) -> None:
        query = update(followups).where(followups.c.id == followup_id)
        self._database.execute(query.values(reminder="started"))

    def held_before(self, moment: datetime) -> list[FollowUp]:
        return self._select(
            and_(followups.c.state == "held", followups.c.changed_at < moment)
        )

    def unknown_before(self, day: date) -> list[FollowUp]:
        """Promises of unknown outcome whose day is earlier."""
        return self._select(
            and_(followups.c.state == "unknown", followups.c.due < day.isoformat())
        )

    def list_news(
        self,
        agent_id: str,
        party: str | None,
        *,
        limit: int,
        with_withheld: bool = False,
    ) -> list[FollowUp]:
        """Requests for a party's next call: those that ended since the last one, and held ones.

        Without a party: those of all callers. `with_withheld` includes calls of withheld numbers
        that the passcode assigned to the party.
        """
        asked = []
        if party:
            caller = followups.c.caller
            from_phone = caller == split_party(party)[0]
            asked = [or_(from_phone, caller.is_(None)) if with_withheld else from_phone]
            asked.append(
                exists().where(calls.c.id == followups.c.call_id, may_belong_to(party))
            )
        own = and_(
            followups.c.agent_id == agent_id, followups.c.kind == "request", *asked
        )
        since = select_last_end(agent_id, party).scalar_subquery()
        is_news = and_(
            followups.c.state.in_(("done", "failed", "refused", "expired")),
            followups.c.changed_at >= since,
        )
        return self._select(
            and_(own, or_(is_news, followups.c.state == "held")), limit=limit
        )[::-1]

    def _select(
        self, wanted: Any, *, limit: int = 1000, order: Any = None
    ) -> list[FollowUp]:
        order = followups.c.id.desc() if order is None else order
        query = select(followups).where(wanted).order_by(order).limit(limit)
        return [to_followup(row) for row in self._database.fetch(query)]


def _is_soon() -> ColumnElement[bool]:
    """Approved, and to be done when it was not undone in time."""
    return and_(followups.c.state == "open", followups.c.queued == "soon")


def _is_to_remind() -> ColumnElement[bool]:
    """Held and failed requests are reminded of once they are settled, withdrawn ones never."""
    # coalesce keeps the planner off the index by state, a value that nearly all rows share.
    state = func.coalesce(followups.c.state, "")
    return and_(followups.c.reminder == "due", state.in_(("open", "doing", "done")))


def _known_keys(connection: Connection, keys: Sequence[str]) -> set[str]:
    query = select(followups.c.key).where(followups.c.key.in_(keys))
    return {row.key for row in connection.execute(query)}


def _is_as_seen(connection: Connection, row: FollowUp | None) -> bool:
    """Whether nobody has changed what a plan rests on; locks the row."""
    if row is None:  # new in the same plan
        return True
    columns = ("state", *FOLLOWUPS.values())
    query = select(*(followups.c[name] for name in columns))
    is_row = followups.c.id == row.id
    now = connection.execute(query.where(is_row).with_for_update()).one()
    return tuple(now) == tuple(getattr(row, name) for name in columns)


def _apply(
    connection: Connection,
    followup_id: str,
    transition: FollowUpTransition,
    now: datetime,
    is_allowed: ColumnElement[bool] | None = None,
) -> bool:
    is_row = followups.c.id == followup_id
    where = is_row if is_allowed is None else and_(is_row, is_allowed)
    values = {"state": transition.state, "reason": transition.reason, "changed_at": now}
    values |= dict(transition.values)
    if connection.execute(update(followups).where(where).values(values)).rowcount != 1:
        return False
    row = connection.execute(select(followups).where(is_row)).one()
    invalidate_briefing(connection, row.agent_id, row.caller)
    write_followup_events(connection, row, now)
    note = transition.note or transition.reason
    seen = describe_state(row.state, row.kind, row.request_kind, row.sink)
    _write_history(connection, followup_id, now, transition.who, seen, note)
    if transition.deed:
        write_audit(connection, now, transition.who, transition.deed, followup_id)
    return True


def _write_history(
    connection: Connection,
    followup_id: str,
    at: datetime,
    who: str,
    what: str,
    note: str,
) -> None:
    connection.execute(
        insert(followup_history),
        {"followup_id": followup_id, "at": at, "who": who, "what": what, "note": note},
    )


def _select_start(call_id: str) -> ScalarSelect[Any]:
    """When the call began, as its own row has it."""
    return select(calls.c.started_at).where(calls.c.id == call_id).scalar_subquery()


def _columns(row: FollowUp) -> Json:
    columns = {name: getattr(row, name) for name in FollowUp.__dataclass_fields__}
    return columns | {"turns": [list(spot) for spot in row.turns]}


def to_followup(row: Row[Any]) -> FollowUp:
    fields = {name: row._mapping[name] for name in FollowUp.__dataclass_fields__}
    return FollowUp(**fields | {"turns": tuple((call, seq) for call, seq in row.turns)})


class DeliveryStore:
    """Deliveries: a row before the sink is asked, its outcome after.

    One process claims a delivery in one statement. Others may claim it once that process has
    released it or is dead.
    """

    def __init__(self, database: Database, presence: Presence) -> None:
        self._database = database
        self._presence = presence

    def find(self, key: str) -> Delivery | None:
        return next(iter(self._select(deliveries.c.key == key)), None)

    def get(self, key: str) -> Delivery:
        delivery = self.find(key)
        if delivery is None:
            raise NotFound(
                f"there is no delivery {key!r}; `aftercall followups show ID` lists them"
            )
        return delivery

    def claim(
        self, work: SinkWork, sink: Sink, followup_id: str | None, now: datetime
    ) -> bool:
        """Writes the intent before anything happens; False if it is done or not ours to do.

        A sink that cannot repeat never gets the same work twice.
        """
        return bool(self.claim_all([(followup_id, work)], sink, now))

    def claim_all(
        self, works: Sequence[tuple[str | None, SinkWork]], sink: Sink, now: datetime
    ) -> list[SinkWork]:
        """Claims several works in one transaction; returns those it could claim."""
        sending = {
            "state": "sending",
            "reason": "",
            "changed_at": now,
            "owner": self._presence.process,
        }
        over = ("done",) if sink.can_repeat else ("done", "sending")
        free = [
            and_(deliveries.c.state.not_in(over), self._is_free(work.key, now))
            for _, work in works
        ]
        claimed = []
        with self._database.write() as connection:
            for (followup_id, work), is_free in zip(works, free, strict=True):
                origin = {
                    "followup_id": followup_id,
                    "conversation": work.conversation,
                    "sink": sink.name,
                    "purpose": work.purpose,
                }
                if upsert(
                    connection,
                    deliveries,
                    {"key": work.key},
                    origin | sending | {"created_at": now, "attempts": 1},
                    changes=sending | {"attempts": deliveries.c.attempts + 1},
                    only_where=is_free,
                ):
                    claimed.append(work)
        return claimed

    def is_claimed_elsewhere(self, key: str, now: datetime) -> bool:
        """Whether another live process has claimed it."""
        owner = self._owner_of(key)
        if owner is None or owner == self._presence.process:
            return False
        return self._presence.is_alive(owner, now)

    def _is_free(self, key: str, now: datetime) -> ColumnElement[bool]:
        """Unclaimed, or claimed by this process or by one that is dead by now."""
        free = [self._presence.process]
        owner = self._owner_of(key)
        if owner and not self._presence.is_alive(owner, now):
            free.append(owner)
        return or_(deliveries.c.owner.is_(None), deliveries.c.owner.in_(free))

    def _owner_of(self, key: str) -> str | None:
        owner: str | None = self._database.fetch_value(
            select(deliveries.c.owner).where(deliveries.c.key == key)
        )
        return owner

    def finish(self, key: str, receipt: SinkReceipt, now: datetime) -> None:
        ended = {
            "state": "done",
            "reason": "",
            "link": receipt.link,
            "response": receipt.response,
            "changed_at": now,
            "owner": None,
        }
        self._database.execute(
            update(deliveries).where(deliveries.c.key == key).values(ended)
        )

    def fail(self, key: str, reason: str, now: datetime, *, is_final: bool) -> bool:
        """Records that it was not done; if final, it waits for a person.

        False if another process has claimed it.
        """
        failed = {
            "state": "dead" if is_final else "waiting",
            "reason": reason,
            "changed_at": now,
            "owner": None,
        }
        ours = and_(deliveries.c.key == key, self._is_free(key, now))
        return (
            self._database.execute(update(deliveries).where(ours).values(failed)) == 1
        )

    def of_followup(self, followup_id: str) -> list[Delivery]:
        return self._select(deliveries.c.followup_id == followup_id)

    def of_conversation(self, conversation: str) -> list[Delivery]:
        return self._select(deliveries.c.conversation == conversation)

    def dead(self, limit: int = 100) -> list[Delivery]:
        return self._select(deliveries.c.state == "dead", limit)

    def _select(self, wanted: Any, limit: int | None = None) -> list[Delivery]:
        query = (
            select(deliveries)
            .where(wanted)
            .order_by(deliveries.c.created_at, deliveries.c.key)
            .limit(limit)
        )
        return [_to_delivery(row) for row in self._database.fetch(query)]


def _to_delivery(row: Row[Any]) -> Delivery:
    return Delivery(
        **{name: row._mapping[name] for name in Delivery.__dataclass_fields__}
    )
