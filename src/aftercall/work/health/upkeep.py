"""Jobs that a running app repeats.

One that fails is tried again after a growing pause, and is told as long as it fails.
"""

import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.log import get_logger
from aftercall.model.instants import format_instant

MAX_PAUSE_S = 30.0  # half of the silence after which other machines take a process for dead
JSON = dict[str, str]

log = get_logger("upkeep")


@dataclass(frozen=True)
class JobFailure:
    """A job that fails, and how often it has in a row."""

    job: str
    code: str
    reason: str
    since: datetime
    times: int

    @property
    def pause_s(self) -> float:
        return min(2.0**self.times, MAX_PAUSE_S)

    def to_json(self) -> JSON:
        return {
            "job": self.job,
            "code": self.code,
            "reason": self.reason,
            "since": format_instant(self.since),
        }


class Upkeep:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, JobFailure] = {}

    @property
    def failures(self) -> list[JSON]:
        return [failure.to_json() for failure in list(self._failures.values())]

    async def run_repeatedly(
        self, job: str, pause_s: float, do: Callable[[], Awaitable[object]]
    ) -> None:
        while True:
            failure = self._failures.get(job)
            await self._clock.sleep(max(pause_s, failure.pause_s) if failure else pause_s)
            try:
                await do()
            except Exception as error:  # noqa: BLE001 - the edge of upkeep: a heart that stops beating for one error is dead
                self._note(job, error)
            else:
                if self._failures.pop(job, None):
                    log.warning("upkeep works again", job=job)

    def _note(self, job: str, error: Exception) -> None:
        before = self._failures.get(job)
        since, times = (before.since, before.times) if before else (self._clock.now(), 0)
        code = getattr(error, "code", type(error).__name__)
        failure = self._failures[job] = JobFailure(
            job, str(code), describe(error), since, times + 1
        )
        log.warning(
            "upkeep failed", job=job, error=failure.code, reason=failure.reason, times=failure.times
        )


def describe(error: Exception) -> str:
    """Our own sentence; of others' errors only where they came up: what they say may hold
    speech.
    """
    if isinstance(error, AftercallError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = next(
        (frame for frame in reversed(frames) if "aftercall" in Path(frame.filename).parts), None
    )
    return (
        f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}"
        if place
        else type(error).__name__
    )


def format_failure(failure: JSON) -> str:
    return (
        f"{failure['job']} fails since {failure['since']}: {failure['reason']} ({failure['code']})"
    )
