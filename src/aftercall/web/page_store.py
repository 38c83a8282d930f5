"""What the pages read: query parameters, calls by filter, callers, live calls."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    exists,
    func,
    or_,
    select,
    text,
    tuple_,
)
from starlette.requests import Request

from aftercall.clock import format_instant, parse_instant
from aftercall.db.connect import Database
from aftercall.db.conversations import (
    NEWEST_FIRST,
    asked_at,
    belongs_to,
    is_to_do,
    select_standing,
    stands_alone,
)
from aftercall.db.tables import (
    calls,
    fact_occurrences,
    facts,
    followup_history,
    followups,
    journal,
    steps,
)
from aftercall.errors import NotFound, RefusedInput
from aftercall.journal.recording_files import RecordingFolder
from aftercall.journal.store import CallRow, to_call_row
from aftercall.model.followups import FollowUp, FollowUpState
from aftercall.model.json_fields import Json
from aftercall.model.people import read_caller, read_party, split_party
from aftercall.model.reading import Step
from aftercall.postcall.store import to_step
from aftercall.work.store import to_followup

if TYPE_CHECKING:
    from aftercall.app import App


def to_cursor(row: CallRow) -> str:
    return f"{format_instant(row.live.started_at)}~{row.live.id}"


def parse_cursor(cursor: str | None) -> tuple[datetime, str] | None:
    """Where a list goes on; refuses what this server did not make."""
    if cursor is None:
        return None
    instant, separator, call_id = cursor.partition("~")
    try:
        return parse_instant(instant), call_id if separator else ""
    except ValueError:
        raise RefusedInput("before", "is not the `next` of an earlier answer") from None


def parse_skip(cursor: str | None) -> int:
    """Where the list of what is to do goes on: how many rows are before it."""
    return min(int(cursor), MAX_SKIP) if cursor and cursor.isdecimal() else 0


def refuse_unknown_query(request: Request) -> None:
    """An ignored parameter would look as if it had been applied."""
    known = sorted(
        field.alias for field in request.scope["route"].dependant.query_params
    )
    for name in request.query_params:
        if name not in known:
            raise RefusedInput(
                name[:40], f"is not known here; known: {', '.join(known) or 'none'}"
            )


def parse_caller(caller: str | None) -> str | None:
    """The number to look for; None if none is given."""
    if caller is None:
        return None
    known = read_caller(_restore_plus(caller), "caller")
    if known is None:
        raise RefusedInput("caller", "is empty or withheld; nothing is kept under it")
    return known


def parse_party(party: str | None) -> str | None:
    return None if party is None else read_party(_restore_plus(party), "caller")


def require_party(party: str) -> str:
    """A number, or a person at one."""
    known = parse_party(party)
    if known is None:
        raise RefusedInput("caller", "is withheld; no memory is kept for it")
    return known


def require_number(caller: str) -> str:
    """Calls are stored by number, so export and erasure take a number, not a person at it."""
    known = require_party(caller)
    if split_party(known)[1]:
        raise RefusedInput(
            "caller",
            "is one of several persons at this number; export and erase work by number",
        )
    return known


def find_recording_file(app: "App", call_id: str, recording_id: str) -> Path:
    """Of this call only; a recording that was never fetched has no file."""
    for recording in app.recordings.list_for_call(call_id):
        if recording.id == recording_id and recording.path:
            file = app.settings.home / recording.path
            if RecordingFolder.from_settings(app.settings).has(file):
                return file
    raise NotFound("there is no such recording; `aftercall calls show` shows its state")


def _restore_plus(given: str) -> str:
    """The query decoder turned a leading `+` into a space."""
    return given.replace(" ", "+", 1) if given.startswith(" ") else given


S = TypeVar("S", bound=Select[Any])
WAITING_STATES: tuple[FollowUpState, ...] = ("held", "unclear")
"""Those in which a person has to decide."""
TROUBLE_STATES: tuple[FollowUpState, ...] = ("failed", "broken")
MAX_SKIP = 1_000_000
TURNS_NEAR = {"secret": 2, "private": 0}
DAY_CHARS = len("2026-02-13")  # of a due day; an instant is longer
MAX_WATCHED_ROWS = 12
_NEWEST_STEPS = text(
    f"""
    SELECT calls.id, calls.state, calls.whose, steps.name, steps.state
    FROM (
        SELECT id, state, whose, started_at FROM calls
        ORDER BY started_at DESC, id DESC
        LIMIT {MAX_WATCHED_ROWS}
    ) AS calls
    LEFT JOIN steps ON steps.call_id = calls.id
    ORDER BY calls.id, steps.name
    """  # noqa: S608 - a number of ours
)
_WAITING_FOLLOWUPS = text(
    f"""
    SELECT id, changed_at FROM followups
    WHERE state = :state
    ORDER BY id DESC
    LIMIT {MAX_WATCHED_ROWS}
    """  # noqa: S608
)


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
    last_call: str


class NumberedEntry(NamedTuple):
    n: int
    call_id: str
    kind: str
    body: str


class PageStore:
    """What the pages read of the database; it changes nothing."""

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
            .order_by(*NEWEST_FIRST)
            .limit(limit)
        )
        if before is not None:
            query = query.where(tuple_(calls.c.started_at, calls.c.id) < before)
        return [to_call_row(row) for row in self._database.fetch(query)]

    def list_steps(self, call_ids: list[str]) -> dict[str, list[Step]]:
        """The steps of some calls, by call."""
        query = (
            select(steps).where(steps.c.call_id.in_(call_ids)).order_by(steps.c.name)
        )
        found: dict[str, list[Step]] = {call_id: [] for call_id in call_ids}
        for row in self._database.fetch(query):
            found[row.call_id].append(to_step(row))
        return found

    def list_failed_steps(self, limit: int) -> list[tuple[str, Step]]:
        """The newest steps that failed, with their calls."""
        query = (
            select(steps)
            .where(steps.c.state == "failed")
            .order_by(steps.c.changed_at.desc())
            .limit(limit)
        )
        return [(str(row.call_id), to_step(row)) for row in self._database.fetch(query)]

    def list_call_times(self, call_ids: Iterable[str]) -> dict[str, datetime]:
        """When each call began."""
        query = select(calls.c.id, calls.c.started_at).where(calls.c.id.in_(call_ids))
        return {str(row.id): row.started_at for row in self._database.fetch(query)}

    def count_followups(self, caller: str | None = None) -> dict[str, int]:
        """How many follow-ups people see in each standing. Those without one are left out."""
        standing = select_standing().label("standing")
        query = select(standing, func.count()).group_by("standing")
        query = query.where(stands_alone())
        if caller:
            query = query.where(followups.c.caller == caller)
        return {str(name): int(n) for name, n in self._database.fetch(query)}

    def count_to_do(
        self, *, callers: Sequence[str] = (), conversations: Sequence[str] = ()
    ) -> Counter[str]:
        """What is to do for each of these callers, or from each call of these conversations."""
        row = followups.c
        by = row.caller if callers else row.call_id
        is_wanted = (
            row.caller.in_(callers) if callers else row.conversation.in_(conversations)
        )
        query = select(by, func.count()).where(is_wanted, is_to_do()).group_by(by)
        return Counter({str(name): int(n) for name, n in self._database.fetch(query)})

    def list_to_do(
        self, now: datetime, *, limit: int, caller: str | None = None, skip: int = 0
    ) -> list[FollowUp]:
        """What is in trouble, then today's, the days that have passed from the last one
        backwards, the days to come, and what has no day; `now` is in the zone of the days.
        """
        due = followups.c.due
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)

        def is_before(day: datetime) -> ColumnElement[bool]:
            is_instant = func.length(due) > DAY_CHARS
            return due < case(
                (is_instant, format_instant(day)), else_=f"{day:%Y-%m-%d}"
            )

        is_late = is_before(today)
        is_today = is_before(today + timedelta(days=1))
        in_trouble = followups.c.state.in_(TROUBLE_STATES)
        rank = case(
            (in_trouble, 0), (is_late, 2), (is_today, 1), (due.is_(None), 4), else_=3
        )
        order = rank, case((is_late, due)).desc(), due, followups.c.id
        query = select(followups).where(is_to_do())
        if caller:
            query = query.where(followups.c.caller == caller)
        query = query.order_by(*order).offset(skip).limit(limit)
        return [to_followup(row) for row in self._database.fetch(query)]

    def list_kept_promises(self, rows: Iterable[FollowUp]) -> list[FollowUp]:
        """The promises that stand as one of these requests does."""
        query = select(followups).where(
            followups.c.conversation.in_({row.conversation for row in rows}),
            ~stands_alone(),
        )
        found = self._database.fetch(query.order_by(followups.c.id))
        return [to_followup(row) for row in found]

    def list_guarded(self, rows: Sequence[FollowUp]) -> dict[str, dict[str, str]]:
        """For each follow-up the facts that lists do not show and that were told with it: the
        level of each by its id. A secret may be in a turn near it: the agent asked for it.
        """
        said = fact_occurrences.c
        query = select(said.call_id, said.first_turn, facts.c.visibility, facts.c.id)
        query = query.join(facts, facts.c.id == said.fact_id).where(
            said.call_id.in_({call for row in rows for call, _ in row.turns}),
            facts.c.visibility != "shared",
            facts.c.is_active,
        )
        found: dict[str, dict[str, str]] = {row.id: {} for row in rows}
        for call_id, seq, level, fact_id in self._database.fetch(query):
            for row in rows:
                near = (abs(turn - seq) for call, turn in row.turns if call == call_id)
                if any(turns <= TURNS_NEAR[level] for turns in near):
                    found[row.id][fact_id] = level
        return found

    def list_legs(self, conversation: str) -> list[CallRow]:
        legs = select(calls).where(calls.c.conversation == conversation)
        query = legs.order_by(calls.c.started_at)
        return [to_call_row(row) for row in self._database.fetch(query)]

    def list_people(
        self,
        *,
        limit: int,
        offset: int = 0,
        only: Collection[str] | None = None,
        digits: str = "",
    ) -> list[PersonRow]:
        """Callers by their last call, newest first; a silent call counts only if all are silent.

        `only` and `digits` narrow it to these numbers and to those that hold the digits.

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
            select(calls.c.caller, calls.c.started_at, calls.c.id)
            .where(
                calls.c.caller.is_not(None),
                ~exists().where(newer.c.caller == calls.c.caller, is_newer),
            )
            .order_by(*NEWEST_FIRST)
            .limit(limit)
            .offset(offset)
        )
        if only is not None:
            is_wanted: list[ColumnElement[bool]] = [calls.c.caller.in_(only)]
            if digits:
                is_wanted.append(calls.c.caller.contains(digits, autoescape=True))
            last = last.where(or_(*is_wanted))
        with self._database.read() as connection:
            found = {str(row.caller): row for row in connection.execute(last)}
            counting = (
                select(calls.c.caller, func.count().label("calls"))
                .where(calls.c.caller.in_(found))
                .group_by(calls.c.caller)
            )
            counts = {
                row.caller: int(row.calls) for row in connection.execute(counting)
            }
        return [
            PersonRow(caller, counts[caller], row.started_at, row.id)
            for caller, row in found.items()
        ]

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

    def has_call_from_outside(self) -> bool:
        """Whether a call has come that was not made here, in a browser or a terminal."""
        outside = select(calls.c.id).where(
            calls.c.source.not_in(("browser", "terminal"))
        )
        return self._database.fetch_first(outside.limit(1)) is not None

    def get_first_fact_at(self) -> datetime | None:
        first: datetime | None = self._database.fetch_value(
            select(func.min(facts.c.valid_from))
        )
        return first

    def count_since(self, since: datetime, zone: tzinfo) -> Json:
        """Reads each call of the span once; the follow-ups are those asked for in it."""
        columns = calls.c.started_at, calls.c.ended_at, calls.c.source
        query = select(*columns, calls.c.end_reason, calls.c.caller)
        days = Counter[str]()
        sources = Counter[str]()
        reasons = Counter[str]()
        callers = set()
        seconds = 0.0
        made = select(followups.c.state, func.count().label("count")).group_by(
            followups.c.state
        )
        with self._database.read() as connection:
            for row in connection.execute(query.where(calls.c.started_at >= since)):
                days[str(row.started_at.astimezone(zone).date())] += 1
                sources[row.source] += 1
                reasons[row.end_reason or "live"] += 1
                callers.add(row.caller)
                if row.ended_at:
                    seconds += (row.ended_at - row.started_at).total_seconds()
            made = made.where(asked_at() >= since)
            states = {row.state: row.count for row in connection.execute(made)}
        return {
            "since": format_instant(since),
            "calls": days.total(),
            "callers": len(callers - {None}),
            "minutes": round(seconds / 60, 1),
            "by_day": dict(sorted(days.items())),
            "by_source": dict(sources),
            "by_end_reason": dict(reasons),
            "followups": states,
            "to_do": self._database.fetch_value(select(func.count()).where(is_to_do())),
        }

    def list_live_ids(self) -> list[str]:
        query = _in_state(select(calls.c.id), "live")
        return [str(row.id) for row in self._database.fetch(query)]

    def list_entries_after(self, n: int, limit: int) -> list[NumberedEntry]:
        """Entries of the journal of live calls, oldest first."""
        query = (
            select(journal.c.n, journal.c.call_id, journal.c.kind, journal.c.body)
            .where(journal.c.n > n)
            .order_by(journal.c.n)
            .limit(limit)
        )
        return [NumberedEntry(*row) for row in self._database.fetch(query)]

    def read_list_state(self) -> object:
        """A value that changes with the lists and figures of the front page."""
        with self._database.read() as connection:
            newest = connection.execute(_NEWEST_STEPS).all()
            waiting = [
                connection.execute(_WAITING_FOLLOWUPS, {"state": state}).all()
                for state in WAITING_STATES
            ]
        return newest, self.get_newest_change(), waiting

    def get_newest_change(self) -> int:
        """The number of the last change of a follow-up."""
        return self._database.fetch_value(select(func.max(followup_history.c.n))) or 0

    def get_newest_entry_number(self) -> int:
        return self._database.fetch_value(select(func.max(journal.c.n))) or 0


def _apply_filter(
    query: Select[tuple[object, ...]], call_filter: CallFilter
) -> Select[tuple[object, ...]]:
    """Narrows a query to the calls that a filter names."""
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
