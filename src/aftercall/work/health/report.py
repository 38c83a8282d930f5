"""The health of all calls of the last days as one report: fine, worth a look, or failing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from aftercall.model.instants import format_instant
from aftercall.work.health.states import STATES, CallHealth, judge_call
from aftercall.work.health.store import Counts, HealthStore

HOURS = 72
LATE = timedelta(minutes=15)
HELD_LONG = timedelta(hours=24)
UNSWEPT = timedelta(hours=3)
EXIT_CODES = {"ok": 0, "warn": 1, "failing": 2}


@dataclass(frozen=True)
class CallLine:
    id: str
    state: CallHealth
    reason: str
    started_at: datetime


@dataclass(frozen=True)
class Report:
    status: Literal["ok", "warn", "failing"]
    reasons: tuple[str, ...]
    calls: tuple[CallLine, ...]
    counts: Counts
    oldest_pending: datetime | None
    failed_steps: int

    @property
    def by_state(self) -> dict[str, int]:
        found = Counter(call.state for call in self.calls)
        return {state: found[state] for state in STATES}

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.status]


def report(store: HealthStore, now: datetime, window_s: float, upkeep: Sequence[str] = ()) -> Report:
    """`upkeep` says what of it fails in which words."""
    found = store.calls_since(now - timedelta(hours=HOURS))
    calls = tuple(CallLine(call.id, *judge_call(call), call.started_at) for call in found)
    ends = [
        call.ended_at or call.started_at
        for call, line in zip(found, calls, strict=True)
        if line.state == "pending" and call.state == "sealed"
    ]
    oldest = min(ends, default=None)
    counts = store.counts()
    failing = [*upkeep, *_failing(calls, counts)]
    warnings = list(_warnings(counts, oldest, now, timedelta(seconds=window_s), has_calls=bool(calls)))
    status: Literal["ok", "warn", "failing"] = "failing" if failing else "warn" if warnings else "ok"
    failed_steps = sum(state == "failed" for call in found for _, state, _ in call.steps)
    return Report(status, (*failing, *warnings), calls, counts, oldest, failed_steps)


def _failing(calls: tuple[CallLine, ...], counts: Counts) -> list[str]:
    failed = sum(call.state == "failed" for call in calls)
    told = [f"{failed} calls failed; `aftercall calls show ID` and `aftercall followups list --state failed` say why"] if failed else []
    return told + ([f"{counts.dead} notices or reminders could not be sent; `aftercall followups resend KEY`"] if counts.dead else [])


def _warnings(counts: Counts, oldest: datetime | None, now: datetime, window: timedelta, *, has_calls: bool) -> list[str]:
    told = []
    if counts.broken:
        told.append(f"{counts.broken} promises are broken; `aftercall followups list --state broken`")
    if oldest and now - oldest > window + LATE:
        told.append(f"a call has been pending since {format_instant(oldest)}; is a server or a worker running?")
    if counts.oldest_held and now - counts.oldest_held > HELD_LONG:
        told.append(f"{counts.held} requests wait for approval; `aftercall followups list --state held`")
    if has_calls and counts.swept_at and now - counts.swept_at > UNSWEPT:
        told.append(f"the last sweep was at {format_instant(counts.swept_at)}; is a server or a worker running?")
    return told


def report_json(made: Report) -> dict[str, Any]:
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
            {"id": call.id, "state": call.state, "reason": call.reason, "started_at": format_instant(call.started_at)}
            for call in made.calls
        ],
    }
