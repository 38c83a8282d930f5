"""The SQL of the ledger: requests and promises, what became of them, and their history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from aftercall.db.audit_log import Deed, write_audit
from aftercall.db.connect import Database
from aftercall.db.stale_briefings import invalidate_briefing
from aftercall.db.statements import may_belong_to, select_last_end
from aftercall.db.tables import calls, followup_history, followups
from aftercall.errors import NotFound
from aftercall.model.followups import FollowUp, FollowUpChange, FollowUpState
from aftercall.model.people import split_party


@dataclass(frozen=True)
class FollowUpTransition:
    """A follow-up's new state, and who brought it about."""

    state: FollowUpState
    who: str
    reason: str = ""
    note: str = ""
    values: tuple[tuple[str, Any], ...] = ()
    deed: Deed | None = None
    """What a person did, for the audit log."""


class FollowUpStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def record(
        self,
        new_rows: Sequence[FollowUp],
        changes: Sequence[tuple[str, FollowUpTransition]],
        reminders: set[str],
        now: datetime,
    ) -> None:
        """New rows and changes of known ones in one transaction.

        A row whose key is known by now stays as it is.
        """
        with self._database.write() as connection:
            known = _known_keys(connection, [row.key for row in new_rows])
            for row in new_rows:
                if row.key in known:
                    continue
                reminder = {"reminder": "due"} if row.id in reminders else {}
                connection.execute(insert(followups), _columns(row) | reminder)
                invalidate_briefing(connection, row.agent_id, row.caller)
                _write_history(connection, row.id, now, "follow-up", row.state, row.reason)
            for followup_id, transition in changes:
                _apply(connection, followup_id, transition, now)

    def change_state(
        self,
        followup_id: str,
        transition: FollowUpTransition,
        now: datetime,
        *,
        only_from: tuple[FollowUpState, ...],
    ) -> bool:
        """Change the state, if it is one of `only_from`; says whether it was."""
        with self._database.write() as connection:
            return _apply(connection, followup_id, transition, now, only_from)

    def get(self, followup_id: str) -> FollowUp:
        with self._database.read() as connection:
            row = connection.execute(select(followups).where(followups.c.id == followup_id)).first()
        if row is None:
            raise NotFound(
                f"there is no follow-up {followup_id!r}; `aftercall followups list` shows "
                "those there are"
            )
        return _to_followup(row)

    def of_conversation(self, conversation: str) -> list[FollowUp]:
        return self._select(followups.c.conversation == conversation, order=followups.c.id)

    def page(
        self,
        *,
        limit: int,
        state: str | None = None,
        caller: str | None = None,
        party: str | None = None,
        before: str | None = None,
    ) -> list[FollowUp]:
        """Newest first; ids sort by the time they were made.

        `caller` is a number, `party` one of those who speak from it.
        """
        wanted = [followups.c.state == state] if state else []
        wanted += [followups.c.caller == caller] if caller else []
        wanted += (
            [exists().where(calls.c.id == followups.c.call_id, calls.c.whose == party)]
            if party
            else []
        )
        wanted += [followups.c.id < before] if before else []
        return self._select(and_(True, *wanted), limit=limit)

    def history(self, followup_id: str) -> list[FollowUpChange]:
        query = (
            select(followup_history)
            .where(followup_history.c.followup_id == followup_id)
            .order_by(followup_history.c.n)
        )
        with self._database.read() as connection:
            return [
                FollowUpChange(row.at, row.who, row.what, row.note)
                for row in connection.execute(query)
            ]

    def count_since(self, caller: str | None, since: datetime, *, apart_from: str) -> int:
        """Requests of this caller in other conversations; all withheld numbers count as one
        caller.
        """
        own = followups.c.caller == caller if caller else followups.c.caller.is_(None)
        query = select(func.count()).where(
            own,
            followups.c.kind == "request",
            followups.c.created_at >= since,
            followups.c.conversation != apart_from,
        )
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def queued(self, limit: int = 50) -> list[FollowUp]:
        """Approved, or to be tried again."""
        return self._select(followups.c.queued == "due", order=followups.c.id, limit=limit)

    def mark_queued_started(self, followup_id: str, round_: int) -> None:
        with self._database.write() as connection:
            key = and_(followups.c.id == followup_id, followups.c.round == round_)
            connection.execute(update(followups).where(key).values(queued="started"))

    def reminders_due(self, now: datetime, limit: int = 50) -> list[FollowUp]:
        """A held or failed request is not reminded of until it is settled; a withdrawn one
        never.
        """
        return self._select(
            and_(_is_to_remind(), followups.c.remind_at <= now),
            order=followups.c.remind_at,
            limit=limit,
        )

    def next_reminder(self) -> datetime | None:
        with self._database.read() as connection:
            moment: datetime | None = connection.execute(
                select(func.min(followups.c.remind_at)).where(_is_to_remind())
            ).scalar()
        return moment

    def mark_reminder_started(self, followup_id: str) -> None:
        with self._database.write() as connection:
            connection.execute(
                update(followups).where(followups.c.id == followup_id).values(reminder="started")
            )

    def held_before(self, moment: datetime) -> list[FollowUp]:
        return self._select(and_(followups.c.state == "held", followups.c.changed_at < moment))

    def unknown_before(self, day: date) -> list[FollowUp]:
        """Promises of unknown outcome that name an earlier day."""
        return self._select(and_(followups.c.state == "unknown", followups.c.due < day.isoformat()))

    def list_news(
        self, agent_id: str, party: str | None, *, limit: int, with_withheld: bool = False
    ) -> list[FollowUp]:
        """What this party's next call is told: what ended since their last call, and what still
        waits. None: everybody's.

        `with_withheld` looks among the calls of withheld numbers, too; those that the passcode
        made theirs are.
        """
        asked = []
        if party:
            caller = followups.c.caller
            from_phone = caller == split_party(party)[0]
            asked = [or_(from_phone, caller.is_(None)) if with_withheld else from_phone]
            asked.append(exists().where(calls.c.id == followups.c.call_id, may_belong_to(party)))
        own = and_(followups.c.agent_id == agent_id, followups.c.kind == "request", *asked)
        since = select_last_end(agent_id, party).scalar_subquery()
        is_news = and_(
            followups.c.state.in_(("done", "failed", "refused", "expired")),
            followups.c.changed_at >= since,
        )
        return self._select(and_(own, or_(is_news, followups.c.state == "held")), limit=limit)[::-1]

    def _select(self, wanted: Any, *, limit: int = 1000, order: Any = None) -> list[FollowUp]:
        order = followups.c.id.desc() if order is None else order
        with self._database.read() as connection:
            return [
                _to_followup(row)
                for row in connection.execute(
                    select(followups).where(wanted).order_by(order).limit(limit)
                )
            ]


def _is_to_remind() -> ColumnElement[bool]:
    state = func.coalesce(
        followups.c.state, ""
    )  # keeps the planner off the index by state, which nearly every row shares
    return and_(followups.c.reminder == "due", state.in_(("open", "doing", "done")))


def _known_keys(connection: Connection, keys: Sequence[str]) -> set[str]:
    return {
        row.key
        for row in connection.execute(select(followups.c.key).where(followups.c.key.in_(keys)))
    }


def _apply(
    connection: Connection,
    followup_id: str,
    transition: FollowUpTransition,
    now: datetime,
    only_from: tuple[FollowUpState, ...] | None = None,
) -> bool:
    where = (
        followups.c.id == followup_id
        if only_from is None
        else and_(followups.c.id == followup_id, followups.c.state.in_(only_from))
    )
    values = {"state": transition.state, "reason": transition.reason, "changed_at": now} | dict(
        transition.values
    )
    changed = connection.execute(update(followups).where(where).values(values)).rowcount == 1
    if changed:
        row = connection.execute(
            select(followups.c.agent_id, followups.c.caller).where(followups.c.id == followup_id)
        ).one()
        invalidate_briefing(connection, row.agent_id, row.caller)
        _write_history(
            connection,
            followup_id,
            now,
            transition.who,
            transition.state,
            transition.note or transition.reason,
        )
        if transition.deed:
            write_audit(connection, now, transition.who, transition.deed, followup_id)
    return changed


def _write_history(
    connection: Connection, followup_id: str, at: datetime, who: str, what: str, note: str
) -> None:
    connection.execute(
        insert(followup_history),
        {"followup_id": followup_id, "at": at, "who": who, "what": what, "note": note},
    )


def _columns(row: FollowUp) -> dict[str, Any]:
    return {name: getattr(row, name) for name in FollowUp.__dataclass_fields__} | {
        "turns": [list(spot) for spot in row.turns]
    }


def _to_followup(row: Row[Any]) -> FollowUp:
    fields = {name: row._mapping[name] for name in FollowUp.__dataclass_fields__}
    return FollowUp(**fields | {"turns": tuple((call, seq) for call, seq in row.turns)})
