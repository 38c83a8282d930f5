"""Limits of one process: the calls it takes at once, and the work that may wait.

A caller beyond the limit hears that all lines are busy; a program is told when to try again
(503 with Retry-After). Calls that go on are never touched, and what was taken is finished, the
oldest first. What was refused is counted in `/metrics`, and for some minutes it is a reason in
`health` of every process, like a job that fails.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Lock

from aftercall import telemetry
from aftercall.clock import Clock
from aftercall.errors import Overloaded
from aftercall.log import get_logger
from aftercall.settings.sections import LimitSettings
from aftercall.upkeep import JobFailure

BUSY = "All lines are busy right now. Please call again in a few minutes. Goodbye."
LIVE_CALLS, INGEST, QUEUE = "live_calls", "ingest", "queue"
RETRY_AFTER_S = {LIVE_CALLS: 30.0, INGEST: 2.0, QUEUE: 60.0}
COUNT_AGE_S = 1.0  # how old the count of waiting calls may be
SHOWN_FOR = timedelta(minutes=5)

log = get_logger("overload")


class LoadLimits:
    """How much a process takes on, and what it answers when that is reached."""

    def __init__(
        self,
        settings: LimitSettings,
        clock: Clock,
        list_live: Callable[[], Collection[tuple[str, str]]],
        count_waiting: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._list_live = list_live
        self._count_waiting = count_waiting
        self._lock = Lock()
        self._ingesting = 0
        self._waiting, self._counted_s = 0, -COUNT_AGE_S
        self._refusals: dict[str, tuple[JobFailure, datetime]] = {}

    @property
    def refusals(self) -> list[dict[str, str]]:
        """What was refused lately, in the form of failing jobs."""
        since = self._clock.now() - SHOWN_FOR
        kept = list(self._refusals.values())
        return [failure.to_json() for failure, last in kept if last >= since]

    @property
    def limits(self) -> dict[str, int]:
        return self._settings.model_dump()

    def check_live_call(self, source: str, sid: str) -> None:
        """Before a call is opened; one that is open is never refused. Raises Overloaded."""
        live, most = self._list_live(), self._settings.live_calls
        if len(live) >= most and (source, sid) not in live:
            self._refuse(LIVE_CALLS, f"{most:,} calls are going on")

    def check_queue(self) -> None:
        """Before a finished call is stored, in a thread. Raises Overloaded."""
        now_s = self._clock.monotonic()
        if now_s - self._counted_s >= COUNT_AGE_S:
            self._waiting, self._counted_s = self._count_waiting(), now_s
        if self._waiting >= self._settings.queue:
            self._refuse(QUEUE, f"{self._waiting:,} calls wait to be read")

    @contextmanager
    def ingesting(self) -> Iterator[None]:
        """Around the storing of a finished call, in the event loop. Raises Overloaded."""
        if self._ingesting >= self._settings.ingest:
            self._refuse(INGEST, f"{self._ingesting:,} calls are being stored")
        self._ingesting += 1
        try:
            yield
        finally:
            self._ingesting -= 1

    def _refuse(self, limit: str, reason: str) -> None:
        """Counts the refusal, logs the first of a series, and raises."""
        now = self._clock.now()
        told = f"{reason}, the limit of this process (limits.{limit}); try again later"
        with self._lock:
            before, last = self._refusals.get(limit, (None, now))
            is_going_on = before is not None and now - last <= SHOWN_FOR
            since = before.since if before and is_going_on else now
            failure = JobFailure(f"limits.{limit}", Overloaded.code, told, since, 1)
            self._refusals[limit] = (failure, now)
        telemetry.count("refused", limit=limit)
        if not is_going_on:
            log.warning("overloaded", limit=limit, reason=reason)
        raise Overloaded(told, RETRY_AFTER_S[limit])
