"""The health report: how each call of the last days ended, and what needs attention."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    exists,
    func,
    or_,
    select,
    union,
    update,
)

from aftercall.clock import format_instant
from aftercall.db.connect import Database
from aftercall.db.conversations import NEWEST_FIRST
from aftercall.db.statements import chunked, upsert
from aftercall.db.tables import (
    calls,
    deliveries,
    followup_runs,
    followups,
    steps,
    upkeep,
)
from aftercall.english.words import count_noun
from aftercall.model.json_fields import Json, pick_fields
from aftercall.model.reading import OPEN_STATES
from aftercall.workspace.revisions import RevisionStore

CallHealth = Literal[
    "ok", "pending", "failed", "recovered", "superseded", "nothing_said", "held"
]
STATES: tuple[CallHealth, ...] = get_args(CallHealth)
HealthStatus = Literal["ok", "warn", "failing"]
REPORT_HOURS = 72
MAX_PENDING_AGE = timedelta(minutes=15)
MAX_HELD_AGE = timedelta(hours=24)
MAX_SWEEP_AGE = timedelta(hours=3)
EXIT_CODES = {"ok": 0, "warn": 1, "failing": 2}
_CALL_COLUMNS = (
    "id",
    "state",
    "conversation",
    "started_at",
    "sealed_at",
    "end_reason",
    "resumes",
)
# Only of a failed step does the name count, so the others of a call are mostly one row.
_STEP_COLUMNS = (
    case((steps.c.state == "failed", steps.c.name), else_="").label("name"),
    steps.c.state,
    steps.c.attempts,
)
# Written into the query: SQLite uses a partial index only if it sees the values.
_OPEN_LITERALS: BindParameter[Any] = bindparam(
    "open_states", OPEN_STATES, expanding=True, literal_execute=True
)
_REQUEST_COLUMNS = (followups.c.call_id, followups.c.kind, followups.c.state)


@dataclass(frozen=True)
class CallOutcome:
    """A call, its steps and its follow-ups."""

    id: str
    state: str
    conversation: str
    started_at: datetime
    sealed_at: datetime | None
    end_reason: str | None
    is_resumed: bool
    run_state: str | None
    run_reason: str
    caller_turns: int | None
    steps: tuple[tuple[str, str], ...]
    followups: tuple[tuple[str, str], ...]
    most_attempts: int

    def count_requests(self, *states: str) -> int:
        return sum(
            kind == "request" and state in states for kind, state in self.followups
        )


@dataclass(frozen=True)
class HealthCounts:
    """What is wrong or waiting, of any age."""

    broken: int
    held: int
    dead: int
    queues: dict[str, int]
    oldest_held: datetime | None
    swept_at: datetime | None
    reconciled: Json | None
    conflicts: list[str]

    @property
    def queued(self) -> int:
        return sum(self.queues.values())


@dataclass(frozen=True)
class CallHealthRow:
    id: str
    state: CallHealth
    reason: str
    started_at: datetime


@dataclass(frozen=True)
class HealthReport:
    status: HealthStatus
    reasons: tuple[str, ...]
    calls: tuple[CallHealthRow, ...]
    counts: HealthCounts
    oldest_pending: datetime | None
    failed_steps: int

    @property
    def by_state(self) -> dict[str, int]:
        found = Counter(call.state for call in self.calls)
        return {state: found[state] for state in STATES}

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.status]


def report(
    store: "HealthStore",
    now: datetime,
    window_s: float,
    upkeep_failures: Sequence[str] = (),
    *,
    only_open: bool = False,
) -> HealthReport:
    """With `only_open` of failed and pending calls only: its cost does not grow with the others."""
    since = now - timedelta(hours=REPORT_HOURS)
    found = store.open_calls_since(since) if only_open else store.calls_since(since)
    rows = tuple(
        CallHealthRow(call.id, *judge_call(call), call.started_at) for call in found
    )
    pending = {row.id for row in rows if row.state == "pending"}
    since_when = [  # a call that ended long ago may have been handed in just now
        call.sealed_at or call.started_at
        for call in found
        if call.id in pending and call.state == "sealed"
    ]
    oldest = min(since_when, default=None)
    counts = store.counts()
    failing = [*upkeep_failures, *_failing(rows, counts)]
    window, has_calls = timedelta(seconds=window_s), store.count_calls(since) > 0
    warnings = _warnings(counts, oldest, now, window, has_calls=has_calls)
    status: HealthStatus = "warn" if warnings else "ok"
    if failing:
        status = "failing"
    failed_steps = sum(state == "failed" for call in found for _, state in call.steps)
    return HealthReport(
        status, (*failing, *warnings), rows, counts, oldest, failed_steps
    )


def judge_call(call: CallOutcome) -> tuple[CallHealth, str]:
    """Failures first, then what is unfinished, then what was unusual."""
    return _trouble(call) or _waiting(call) or _oddity(call) or ("ok", "")


def _trouble(call: CallOutcome) -> tuple[CallHealth, str] | None:
    names = sorted(name for name, state in call.steps if state == "failed")
    if names:
        return "failed", f"steps failed: {', '.join(names)}"
    if call.run_state == "failed":
        hint = "`aftercall calls rerun ID followup` tries it again"
        return "failed", f"its follow-up failed: {call.run_reason}; {hint}"
    failed = call.count_requests("failed")
    return ("failed", f"failed requests: {failed}") if failed else None


def _waiting(call: CallOutcome) -> tuple[CallHealth, str] | None:
    if call.state != "sealed":
        reason = "it is going on" if call.state == "live" else "it is being sealed"
        return "pending", reason
    unfinished = any(state in ("waiting", "running") for _, state in call.steps)
    if unfinished or not call.steps:
        return "pending", "its steps are not over"
    if call.run_state == "due":
        return "pending", "its follow-up waits for the reconnect window"
    if call.run_state in ("running", None):
        return "pending", "its follow-up is running"
    if call.count_requests("open", "doing"):
        return "pending", "a request is being done"
    held = call.count_requests("held")
    return ("held", f"requests held for approval: {held}") if held else None


def _oddity(call: CallOutcome) -> tuple[CallHealth, str] | None:
    if call.caller_turns == 0 and call.is_resumed:
        return "superseded", "a reconnect took over"
    if call.caller_turns == 0:
        return "nothing_said", "its caller said nothing"
    if call.end_reason == "interrupted":
        return "recovered", "it was interrupted and recovered"
    if call.most_attempts > 1:
        return "recovered", f"something took {call.most_attempts} attempts"
    return None


def _failing(rows: tuple[CallHealthRow, ...], counts: HealthCounts) -> list[str]:
    reasons = []
    if failed := sum(row.state == "failed" for row in rows):
        reasons.append(
            f"{count_noun(failed, 'call')} failed; `aftercall calls show ID` and "
            "`aftercall followups list --state failed` say why"
        )
    if counts.dead:
        reasons.append(
            f"{counts.dead} notices, reminders or events could not be sent; "
            "see `aftercall events undelivered`"
        )
    return reasons


def _warnings(
    counts: HealthCounts,
    oldest: datetime | None,
    now: datetime,
    window: timedelta,
    *,
    has_calls: bool,
) -> list[str]:
    """What a person should look at, each with the command that shows it."""
    reasons = []
    is_running = "is a server or a worker running?"
    if counts.broken:
        reasons.append(
            f"{count_noun(counts.broken, 'broken promise')}; `aftercall followups list "
            "--state broken`"
        )
    if oldest and now - oldest > window + MAX_PENDING_AGE:
        reasons.append(
            f"a call has been pending since {format_instant(oldest)}; {is_running}"
        )
    if counts.oldest_held and now - counts.oldest_held > MAX_HELD_AGE:
        reasons.append(
            f"{count_noun(counts.held, 'request')} held for approval; "
            "`aftercall followups list --state held`"
        )
    if has_calls and counts.swept_at and now - counts.swept_at > MAX_SWEEP_AGE:
        reasons.append(
            f"the last sweep was at {format_instant(counts.swept_at)}; {is_running}"
        )
    if pages := counts.conflicts:
        reasons.append(
            f"could not be merged: {', '.join(pages[:3])}{' …' * (len(pages) > 3)}; "
            "take over what is right, then delete them"
        )
    return reasons


def report_json(made: HealthReport) -> Json:
    names = "id state reason started_at"
    return {
        **pick_fields(made, "status reasons"),
        "counts": made.by_state,
        **pick_fields(made, "oldest_pending"),
        "broken_promises": made.counts.broken,
        "held": made.counts.held,
        "failed_steps": made.failed_steps,
        "unsent": made.counts.dead,
        "queue_depth": made.counts.queued,
        "last_sweep": made.counts.swept_at and format_instant(made.counts.swept_at),
        "last_reconcile": made.counts.reconciled,
        "calls": [pick_fields(call, names) for call in made.calls],
    }


class HealthStore:
    """The SQL of the report and of the sweep."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def calls_since(self, since: datetime) -> list[CallOutcome]:
        """Newest first."""
        query = _select_calls(calls.c.started_at >= since).order_by(*NEWEST_FIRST)
        with self._database.read() as connection:
            return _read_outcomes(connection, connection.execute(query).all())

    def open_calls_since(self, since: datetime) -> list[CallOutcome]:
        """Calls with work that failed or is not over, found by indexes of such work alone."""
        is_undone = followups.c.state.in_(("open", "doing", "failed"))
        runs = followup_runs.c
        open_runs = select(runs.conversation).where(runs.state != "done")
        unfinished = union(
            select(calls.c.id).where(calls.c.state != "sealed"),
            select(calls.c.id).where(calls.c.postcall == "due"),
            select(steps.c.call_id).where(steps.c.state.in_(_OPEN_LITERALS)),
            select(steps.c.call_id).where(
                steps.c.state == "failed", steps.c.changed_at >= since
            ),
            select(followups.c.call_id).where(is_undone, followups.c.kind == "request"),
            select(calls.c.id).where(calls.c.conversation.in_(open_runs)),
        )
        with self._database.read() as connection:
            ids = sorted(connection.execute(unfinished).scalars())
            rows: list[Any] = []
            for chunk in chunked(ids):
                query = _select_calls(calls.c.id.in_(chunk))
                rows += connection.execute(query.where(calls.c.started_at >= since))
            found = _read_outcomes(connection, rows)
        return [call for call in found if judge_call(call)[0] in ("failed", "pending")]

    def count_calls(self, since: datetime) -> int:
        query = select(func.count()).where(calls.c.started_at >= since)
        return self._database.fetch_value(query) or 0

    def counts(self) -> HealthCounts:
        """What waits and what needs a person, in numbers."""
        with self._database.read() as connection:

            def count(*wanted: ColumnElement[bool]) -> int:
                query = select(func.count()).where(*wanted)
                return int(connection.execute(query).scalar_one())

            oldest_held = select(func.min(followups.c.changed_at)).where(
                followups.c.state == "held"
            )
            swept_at = select(upkeep.c.at).where(upkeep.c.name == "sweep")
            compared = select(upkeep.c.found).where(upkeep.c.name == "reconcile")
            is_over = followup_runs.c.state.in_(("done", "failed"))
            queues = {
                "calls": count(calls.c.postcall == "due"),
                # the first condition is that of the partial index
                "conversations": count(followup_runs.c.state != "done", ~is_over),
                "requests": count(followups.c.queued == "due"),
            }
            return HealthCounts(
                broken=count(followups.c.state == "broken"),
                held=count(followups.c.state == "held", followups.c.kind == "request"),
                dead=count(
                    deliveries.c.state == "dead", deliveries.c.purpose != "request"
                ),
                queues=queues,
                oldest_held=connection.execute(oldest_held).scalar(),
                swept_at=connection.execute(swept_at).scalar(),
                reconciled=(connection.execute(compared).scalar() or {}).get("summary"),
                conflicts=RevisionStore(self._database).list_conflicts(),
            )

    def claim_sweep(self, now: datetime, not_since: datetime) -> bool:
        """One process sweeps at a time; False if the last sweep is newer than `not_since`."""
        with self._database.write() as connection:
            query = select(upkeep.c.at).where(upkeep.c.name == "sweep")
            last = connection.execute(query).scalar()
            if last is not None and last > not_since:
                return False
            upsert(connection, upkeep, {"name": "sweep"}, {"at": now})
        return True

    def note_sweep(self, found: dict[str, int]) -> None:
        noted = update(upkeep).where(upkeep.c.name == "sweep").values(found=found)
        self._database.execute(noted)

    def requeue_unstarted_calls(self, since: datetime) -> int:
        """Makes sealed calls due again that never got a workflow."""
        has_steps = exists().where(steps.c.call_id == calls.c.id)
        lost = and_(
            calls.c.state == "sealed",
            calls.c.started_at >= since,
            or_(calls.c.postcall.is_(None), calls.c.postcall == "started"),
        )
        return self._database.execute(
            update(calls).where(lost, ~has_steps).values(postcall="due")
        )

    def stuck_calls(self, since: datetime, before: datetime) -> dict[str, int]:
        """Calls with a step that has been unfinished since `before`: the addenda of each."""
        is_open = exists().where(
            steps.c.call_id == calls.c.id,
            steps.c.state.in_(("waiting", "running")),
            steps.c.changed_at < before,
        )
        stuck = select(calls).where(calls.c.started_at >= since, is_open)
        return {row.id: row.addenda for row in self._database.fetch(stuck)}

    def restart(self, call_id: str) -> None:
        due = update(calls).where(calls.c.id == call_id).values(postcall="due")
        self._database.execute(due)

    def requeue_stranded_requests(self, before: datetime) -> int:
        """Queues requests that are still open although the run of their conversation is over."""
        is_over = exists().where(
            followup_runs.c.conversation == followups.c.conversation,
            followup_runs.c.state == "done",
        )
        is_open = and_(
            followups.c.state.in_(("open", "doing")),
            followups.c.kind == "request",
            followups.c.changed_at < before,
        )
        is_unqueued = or_(followups.c.queued.is_(None), followups.c.queued == "started")
        again = {"queued": "due", "round": followups.c.round + 1}
        return self._database.execute(
            update(followups).where(is_open, is_unqueued, is_over).values(again)
        )


def _select_calls(wanted: ColumnElement[bool]) -> Select[Any]:
    return (
        select(
            *(calls.c[name] for name in _CALL_COLUMNS),
            followup_runs.c.state.label("run_state"),
            followup_runs.c.reason.label("run_reason"),
            followup_runs.c.legs,
        )
        .outerjoin(followup_runs, followup_runs.c.conversation == calls.c.conversation)
        .where(wanted)
    )


def _read_outcomes(connection: Connection, rows: Sequence[Any]) -> list[CallOutcome]:
    """The calls of these rows with what became of them."""
    ids = {row.id for row in rows}
    conversations = {row.conversation for row in rows}
    taken = _by_key(connection, steps.c.call_id, _STEP_COLUMNS, ids, is_distinct=True)
    asked = _by_key(
        connection, followups.c.conversation, _REQUEST_COLUMNS, conversations
    )
    sent = _by_key(
        connection, deliveries.c.conversation, (deliveries.c.attempts,), conversations
    )
    resumed = {row.resumes for row in rows}
    return [
        _to_outcome(
            row,
            row.id in resumed,
            taken[row.id],
            asked[row.conversation],
            sent[row.conversation],
        )
        for row in rows
    ]


def _by_key(
    connection: Connection,
    key: Column[Any],
    columns: Sequence[ColumnElement[Any]],
    wanted: Iterable[str],
    *,
    is_distinct: bool = False,
) -> dict[str, list[Any]]:
    """Rows of the key's table. Reads only these columns: dates and JSON are slow to parse."""
    found: dict[str, list[Any]] = defaultdict(list)
    for chunk in chunked(sorted(wanted)):
        query = select(key.label("key"), *columns).where(key.in_(chunk))
        for row in connection.execute(query.distinct() if is_distinct else query):
            found[row.key].append(row)
    return found


def _to_outcome(
    row: Any, is_resumed: bool, taken: list[Any], asked: list[Any], sent: list[Any]
) -> CallOutcome:
    return CallOutcome(
        id=row.id,
        state=row.state,
        conversation=row.conversation,
        started_at=row.started_at,
        sealed_at=row.sealed_at,
        end_reason=row.end_reason,
        is_resumed=is_resumed,
        run_state=row.run_state,
        run_reason=row.run_reason or "",
        caller_turns=(row.legs or {}).get(row.id),
        steps=tuple((step.name, step.state) for step in taken),
        followups=tuple(
            (item.kind, item.state) for item in asked if item.call_id == row.id
        ),
        most_attempts=max((item.attempts for item in (*taken, *sent)), default=0),
    )
