"""The health of all calls of the last days as one report: fine, worth a look, or failing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from aftercall.model.instants import format_instant
from aftercall.work.health.store import CallOutcome, HealthCounts, HealthStore

CallHealth = Literal["ok", "pending", "failed", "recovered", "superseded", "nothing_said", "held"]
STATES: tuple[CallHealth, ...] = (
    "ok",
    "pending",
    "failed",
    "recovered",
    "superseded",
    "nothing_said",
    "held",
)


def judge_call(call: CallOutcome) -> tuple[CallHealth, str]:
    """The worst first: what failed, then what is not over yet, then what was odd about it."""
    return _trouble(call) or _waiting(call) or _oddity(call) or ("ok", "")


def _trouble(call: CallOutcome) -> tuple[CallHealth, str] | None:
    steps = [name for name, state, _ in call.steps if state == "failed"]
    if steps:
        return "failed", f"steps failed: {', '.join(sorted(steps))}"
    if call.run_state == "failed":
        return (
            "failed",
            (
                f"its follow-up failed: {call.run_reason}; `aftercall calls rerun ID followup` "
                "tries it again"
            ),
        )
    failed = sum(kind == "request" and state == "failed" for kind, state in call.followups)
    return ("failed", f"{failed} of its requests failed") if failed else None


def _waiting(call: CallOutcome) -> tuple[CallHealth, str] | None:
    if call.state != "sealed":
        return "pending", "it is going on" if call.state == "live" else "it is being sealed"
    if not call.steps or any(state in ("waiting", "running") for _, state, _ in call.steps):
        return "pending", "its steps are not over"
    if call.run_state == "due":
        return "pending", "its follow-up waits for the reconnect window"
    if call.run_state in ("running", None):
        return "pending", "its follow-up is on its way"
    if any(kind == "request" and state in ("open", "doing") for kind, state in call.followups):
        return "pending", "a request is being done"
    held = sum(kind == "request" and state == "held" for kind, state in call.followups)
    return ("held", f"{held} of its requests wait for approval") if held else None


def _oddity(call: CallOutcome) -> tuple[CallHealth, str] | None:
    if call.caller_turns == 0:
        return (
            ("superseded", "a reconnect took over")
            if call.is_resumed
            else ("nothing_said", "its caller said nothing")
        )
    if call.end_reason == "interrupted":
        return "recovered", "it was interrupted and recovered"
    if call.most_attempts > 1:
        return "recovered", f"something took {call.most_attempts} attempts"
    return None


REPORT_HOURS = 72
MAX_PENDING_AGE = timedelta(minutes=15)
MAX_HELD_AGE = timedelta(hours=24)
MAX_SWEEP_AGE = timedelta(hours=3)
EXIT_CODES = {"ok": 0, "warn": 1, "failing": 2}


@dataclass(frozen=True)
class CallHealthRow:
    id: str
    state: CallHealth
    reason: str
    started_at: datetime


@dataclass(frozen=True)
class HealthReport:
    status: Literal["ok", "warn", "failing"]
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
    store: HealthStore, now: datetime, window_s: float, upkeep: Sequence[str] = ()
) -> HealthReport:
    """`upkeep` says what of it fails in which words."""
    found = store.calls_since(now - timedelta(hours=REPORT_HOURS))
    calls = tuple(CallHealthRow(call.id, *judge_call(call), call.started_at) for call in found)
    ends = [
        call.ended_at or call.started_at
        for call, line in zip(found, calls, strict=True)
        if line.state == "pending" and call.state == "sealed"
    ]
    oldest = min(ends, default=None)
    counts = store.counts()
    failing = [*upkeep, *_failing(calls, counts)]
    warnings = list(
        _warnings(counts, oldest, now, timedelta(seconds=window_s), has_calls=bool(calls))
    )
    status: Literal["ok", "warn", "failing"] = (
        "failing" if failing else "warn" if warnings else "ok"
    )
    failed_steps = sum(state == "failed" for call in found for _, state, _ in call.steps)
    return HealthReport(status, (*failing, *warnings), calls, counts, oldest, failed_steps)


def _failing(calls: tuple[CallHealthRow, ...], counts: HealthCounts) -> list[str]:
    failed = sum(call.state == "failed" for call in calls)
    told = (
        [
            (
                f"{failed} calls failed; `aftercall calls show ID` and `aftercall followups list "
                "--state failed` say why"
            )
        ]
        if failed
        else []
    )
    return told + (
        [f"{counts.dead} notices or reminders could not be sent; `aftercall followups resend KEY`"]
        if counts.dead
        else []
    )


def _warnings(
    counts: HealthCounts,
    oldest: datetime | None,
    now: datetime,
    window: timedelta,
    *,
    has_calls: bool,
) -> list[str]:
    told = []
    if counts.broken:
        told.append(
            f"{counts.broken} promises are broken; `aftercall followups list --state broken`"
        )
    if oldest and now - oldest > window + MAX_PENDING_AGE:
        told.append(
            f"a call has been pending since {format_instant(oldest)}; is a server or a worker "
            "running?"
        )
    if counts.oldest_held and now - counts.oldest_held > MAX_HELD_AGE:
        told.append(
            f"{counts.held} requests wait for approval; `aftercall followups list --state held`"
        )
    if has_calls and counts.swept_at and now - counts.swept_at > MAX_SWEEP_AGE:
        told.append(
            f"the last sweep was at {format_instant(counts.swept_at)}; is a server or a "
            "worker running?"
        )
    return told


def report_json(made: HealthReport) -> dict[str, Any]:
    return {
        "status": made.status,
        "reasons": list(made.reasons),
        "counts": made.by_state,
        "oldest_pending": made.oldest_pending and format_instant(made.oldest_pending),
        "broken_promises": made.counts.broken,
        "held": made.counts.held,
        "failed_steps": made.failed_steps,
        "unsent": made.counts.dead,
        "queue_depth": made.counts.queued,
        "last_sweep": made.counts.swept_at and format_instant(made.counts.swept_at),
        "calls": [
            {
                "id": call.id,
                "state": call.state,
                "reason": call.reason,
                "started_at": format_instant(call.started_at),
            }
            for call in made.calls
        ],
    }
