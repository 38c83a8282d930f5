"""Jobs that are repeated: a failing one says why, is tried less and less often, and is quiet
again when it works.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from aftercall.errors import DatabaseUnreachable, StorageFull, WorkspaceError
from aftercall.upkeep import DATABASE_PAUSE_S, MAX_PAUSE_S, Upkeep
from fakes import VirtualClock


class Job:
    def __init__(self, clock: VirtualClock, fault: Exception | None) -> None:
        self.fault = fault
        self.tried_at: list[float] = []
        self._clock = clock

    async def do(self) -> None:
        self.tried_at.append(self._clock.monotonic())
        if self.fault:
            raise self.fault


@asynccontextmanager
async def kept_doing(upkeep: Upkeep, job: Job) -> AsyncIterator[None]:
    task = asyncio.create_task(upkeep.run_repeatedly("recovery", 0.5, job.do))
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_job_that_fails_is_tried_less_and_less_often_up_to_a_limit(
    clock: VirtualClock,
) -> None:
    job = Job(clock, StorageFull("no room"))
    async with kept_doing(Upkeep(clock), job):
        await clock.advance(300)
    pauses = [
        round(later - earlier)
        for earlier, later in zip(job.tried_at, job.tried_at[1:], strict=False)
    ]
    assert pauses[:5] == [2, 4, 8, 16, MAX_PAUSE_S]
    assert set(pauses[5:]) == {MAX_PAUSE_S}


async def test_a_job_that_waits_for_the_database_is_tried_again_soon(
    clock: VirtualClock,
) -> None:
    job = Job(clock, DatabaseUnreachable("away"))
    async with kept_doing(Upkeep(clock), job):
        await clock.advance(60)
    pairs = zip(job.tried_at, job.tried_at[1:], strict=False)
    assert {round(later - earlier) for earlier, later in pairs} == {DATABASE_PAUSE_S}


async def test_a_failure_is_told_with_its_reason_until_the_job_works_again(
    clock: VirtualClock,
) -> None:
    upkeep, job = Upkeep(clock), Job(clock, StorageFull("no room to write the archive"))
    async with kept_doing(upkeep, job):
        await clock.advance(10)
        (told,) = upkeep.failures
        assert (told["job"], told["code"], told["reason"]) == (
            "recovery",
            "storage.full",
            "no room to write the archive",
        )
        job.fault = None
        await clock.advance(MAX_PAUSE_S)
        assert upkeep.failures == []


async def test_what_anothers_error_says_is_never_told(clock: VirtualClock) -> None:
    upkeep = Upkeep(clock)
    async with kept_doing(upkeep, Job(clock, ValueError("the caller said heliotrope"))):
        await clock.advance(10)
    assert "heliotrope" not in str(upkeep.failures)
    assert upkeep.failures[0]["code"] == "ValueError"
    assert upkeep.failures[0]["reason"].startswith("ValueError")


@dataclass
class WrittenLog:
    """Keeps the reasons that were logged."""

    reasons: list[str]

    def warning(self, _what: str, *, reason: str = "", **_about: object) -> None:
        if reason:
            self.reasons.append(reason)


def test_what_a_job_reports_is_logged_once_and_shown_until_it_is_over(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr("aftercall.upkeep.log", WrittenLog(written))
    upkeep = Upkeep(clock)
    for _ in range(3):
        upkeep.report("pages", [WorkspaceError("a.md: is UTF-16")])
    (told,) = upkeep.failures
    assert (told["job"], told["reason"]) == ("pages", "a.md: is UTF-16")
    assert written == ["a.md: is UTF-16"]
    upkeep.report("pages", [])
    assert upkeep.failures == []
