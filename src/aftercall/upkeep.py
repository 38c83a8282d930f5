"""Jobs that a running app repeats.

A failing job is retried after a growing pause and reported as long as it fails.
"""

import platform
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from aftercall.clock import Clock, format_instant
from aftercall.errors import AftercallError, DatabaseUnreachable, error_code
from aftercall.journal.handover import HEARTBEAT_TIMEOUT_S, Presence
from aftercall.log import get_logger

MAX_PAUSE_S = (
    30.0  # half the silence after which other machines count a process as dead
)
DATABASE_PAUSE_S = 2.0

log = get_logger("upkeep")


@dataclass(frozen=True)
class JobFailure:
    job: str
    code: str
    reason: str
    since: datetime
    times: int

    @property
    def pause_s(self) -> float:
        """A database that is back is used at once: live calls wait for it."""
        is_away = self.code == DatabaseUnreachable.code
        return min(2.0**self.times, DATABASE_PAUSE_S if is_away else MAX_PAUSE_S)

    def to_json(self) -> dict[str, str]:
        return {
            "job": self.job,
            "code": self.code,
            "reason": self.reason,
            "since": format_instant(self.since),
            "machine": platform.node(),
        }


class Upkeep:
    """Jobs that run again and again; a job that fails is shown in `health` and goes on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, JobFailure] = {}
        self._reports: dict[str, dict[str, JobFailure]] = {}

    @property
    def failures(self) -> list[dict[str, str]]:
        found = list(self._failures.values())
        for reports in list(self._reports.values()):
            found += reports.values()
        return [failure.to_json() for failure in found]

    def report(self, job: str, errors: Sequence[Exception]) -> None:
        """Shows what a job goes on in spite of, until it is reported no more; logs it once."""
        before = self._reports.get(job, {})
        reports = {}
        for error in errors:
            code, reason = error_code(error), describe(error)
            reports[reason] = before.get(reason) or JobFailure(
                job, code, reason, self._clock.now(), times=1
            )
            if reason not in before:
                log.warning("upkeep reports", job=job, error=code, reason=reason)
        for reason in before.keys() - reports.keys():
            log.warning("upkeep reports no more", job=job, error=before[reason].code)
        self._reports[job] = reports

    async def run_repeatedly(
        self, job: str, pause_s: float, do: Callable[[], Awaitable[object]]
    ) -> None:
        while True:
            failure = self._failures.get(job)
            await self._clock.sleep(
                max(pause_s, failure.pause_s) if failure else pause_s
            )
            await self.run_once(job, do)

    async def run_once(self, job: str, do: Callable[[], Awaitable[object]]) -> None:
        """Runs a job; its failure is noted and ends nothing."""
        try:
            await do()
        except Exception as error:  # noqa: BLE001 - the edge: an error must not end the loop
            self._note(job, error)
        else:
            if self._failures.pop(job, None):
                log.warning("upkeep works again", job=job)

    def _note(self, job: str, error: Exception) -> None:
        before = self._failures.get(job)
        since, times = (
            (before.since, before.times) if before else (self._clock.now(), 0)
        )
        failure = JobFailure(job, error_code(error), describe(error), since, times + 1)
        self._failures[job] = failure
        log.warning(
            "upkeep failed",
            job=job,
            error=failure.code,
            reason=failure.reason,
            times=failure.times,
        )


def describe(error: Exception) -> str:
    """The text of our own errors; the place of all others, whose text may hold speech."""
    if isinstance(error, AftercallError):
        return str(error)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if "aftercall" in path.parts:
            return f"{type(error).__name__} in {path.name}:{frame.lineno}"
    return type(error).__name__


def format_failure(failure: dict[str, str]) -> str:
    """Names the machine, unless a process of an older version has left it out."""
    machine = failure.get("machine")
    where = f" on {machine}" if machine else ""
    return (
        f"{failure['job']} fails{where} since {failure['since']}: "
        f"{failure['reason']} ({failure['code']})"
    )


def list_reported_failures(presence: Presence, now: datetime) -> list[str]:
    """What other processes report, and which of them no longer write."""
    others = [row for row in presence.find_others() if row.failures is not None]
    lines = [
        format_failure(failure) for row in others for failure in row.failures or ()
    ]
    oldest = now - timedelta(seconds=HEARTBEAT_TIMEOUT_S)
    for row in others:
        if row.beat_at < oldest:
            since = format_instant(row.beat_at)
            lines.append(
                f"a running process has written nothing since {since}; is the disk full?"
            )
    return lines
