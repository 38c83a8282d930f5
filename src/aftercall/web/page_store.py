"""The SQL of the pages: calls by filter, callers, live calls and new journal entries."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Select, and_, exists, func, or_, select, tuple_

from aftercall.db.connect import Database
from aftercall.db.conversations import belongs_to
from aftercall.db.tables import calls, journal, steps
from aftercall.journal.store import CallRow, to_call_row
from aftercall.model.steps import Step
from aftercall.postcall.store import to_step

S = TypeVar("S", bound=Select[Any])


@dataclass(frozen=True)
class CallFilter:
    """Which calls; None means all."""

    caller: str | None = None
    party: str | None = None
    source: str | None = None
    state: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    ids: tuple[str, ...] | None = None


@dataclass(frozen=True)
class PersonRow:
    caller: str
    calls: int
    last_at: datetime


class NumberedEntry(NamedTuple):
    n: int
    call_id: str
    kind: str
    body: str


class PageStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def list_calls(
        self,
        call_filter: CallFilter,
        *,
        limit: int,
        before: tuple[datetime, str] | None = None,
    ) -> list[CallRow]:
        """Newest first; `before` is the start and id of the previous page's last call."""
        query = (
            _apply_filter(select(calls), call_filter)
            .order_by(calls.c.started_at.desc(), calls.c.id.desc())
            .limit(limit)
        )
        if before is not None:
            query = query.where(tuple_(calls.c.started_at, calls.c.id) < before)
        with self._database.read() as connection:
            return [to_call_row(row) for row in connection.execute(query)]

    def list_steps(self, call_ids: list[str]) -> dict[str, list[Step]]:
        query = (
            select(steps).where(steps.c.call_id.in_(call_ids)).order_by(steps.c.name)
        )
        found: dict[str, list[Step]] = {call_id: [] for call_id in call_ids}
        with self._database.read() as connection:
            for row in connection.execute(query):
                found[row.call_id].append(to_step(row))
        return found

    def list_failed_steps(self, limit: int) -> list[tuple[str, Step]]:
        query = (
            select(steps)
            .where(steps.c.state == "failed")
            .order_by(steps.c.changed_at.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            return [
                (str(row.call_id), to_step(row)) for row in connection.execute(query)
            ]

    def list_legs(self, conversation: str) -> list[CallRow]:
        legs = select(calls).where(calls.c.conversation == conversation)
        query = legs.order_by(calls.c.started_at)
        with self._database.read() as connection:
            return [to_call_row(row) for row in connection.execute(query)]

    def list_people(self, *, limit: int, offset: int = 0) -> list[PersonRow]:
        """Callers by their last call, newest first; a silent call counts only if all are silent.

        The query finds last calls instead of grouping all calls, so the cost of a page does not
        grow with the number of callers.
        """
        newer = calls.alias()
        is_newer = or_(
            and_(calls.c.is_silent, ~newer.c.is_silent),
            and_(
                calls.c.is_silent == newer.c.is_silent,
                tuple_(newer.c.started_at, newer.c.id)
                > tuple_(calls.c.started_at, calls.c.id),
            ),
        )
        last = (
            select(calls.c.caller, calls.c.started_at)
            .where(
                calls.c.caller.is_not(None),
                ~exists().where(newer.c.caller == calls.c.caller, is_newer),
            )
            .order_by(calls.c.started_at.desc(), calls.c.id.desc())
            .limit(limit)
            .offset(offset)
        )
        with self._database.read() as connection:
            found = {
                str(row.caller): row.started_at for row in connection.execute(last)
            }
            counting = (
                select(calls.c.caller, func.count().label("calls"))
                .where(calls.c.caller.in_(found))
                .group_by(calls.c.caller)
            )
            counts = {
                row.caller: int(row.calls) for row in connection.execute(counting)
            }
        return [PersonRow(caller, counts[caller], at) for caller, at in found.items()]

    def list_sources(self) -> list[str]:
        """One index lookup per source: each finds the source after the previous one."""
        found: list[str] = []
        with self._database.read() as connection:
            while True:
                last = found[-1] if found else ""
                following = select(func.min(calls.c.source)).where(
                    calls.c.source > last
                )
                source = connection.execute(following).scalar()
                if source is None:
                    return found
                found.append(source)

    def list_live_ids(self) -> list[str]:
        query = _in_state(select(calls.c.id), "live")
        with self._database.read() as connection:
            return [str(row.id) for row in connection.execute(query)]

    def list_entries_after(self, n: int, limit: int) -> list[NumberedEntry]:
        query = (
            select(journal.c.n, journal.c.call_id, journal.c.kind, journal.c.body)
            .where(journal.c.n > n)
            .order_by(journal.c.n)
            .limit(limit)
        )
        with self._database.read() as connection:
            return [NumberedEntry(*row) for row in connection.execute(query)]

    def get_newest_entry_number(self) -> int:
        with self._database.read() as connection:
            return connection.execute(select(func.max(journal.c.n))).scalar() or 0


def _apply_filter(
    query: Select[tuple[object, ...]], call_filter: CallFilter
) -> Select[tuple[object, ...]]:
    if call_filter.caller is not None:
        query = query.where(calls.c.caller == call_filter.caller)
    if call_filter.party is not None:
        query = query.where(belongs_to(call_filter.party))
    if call_filter.source is not None:
        query = query.where(calls.c.source == call_filter.source)
    if call_filter.state is not None:
        query = _in_state(query, call_filter.state)
    if call_filter.since is not None:
        query = query.where(calls.c.started_at >= call_filter.since)
    if call_filter.until is not None:
        query = query.where(calls.c.started_at < call_filter.until)
    if call_filter.ids is not None:
        query = query.where(calls.c.id.in_(call_filter.ids))
    return query


def _in_state(query: S, state: str) -> S:
    """The second condition lets SQLite use the partial index of calls that are not sealed."""
    query = query.where(calls.c.state == state)
    return query if state == "sealed" else query.where(calls.c.state != "sealed")
