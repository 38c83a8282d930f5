"""Scenarios times runs against one target: several calls at a time, each run scored as soon as it is over."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.tester.caller import Caller, ScriptedCaller
from aftercall.tester.judge import judge
from aftercall.tester.mailbox import tell_mailbox
from aftercall.tester.played import PlayedCaller
from aftercall.tester.probes import probe
from aftercall.tester.record import CallRecord, LineEvent
from aftercall.tester.run_log import RunLog
from aftercall.tester.scenario import PlannedCall, Scenario
from aftercall.tester.score import Judged, Scored, score
from aftercall.tester.speaker import Speaker
from aftercall.tester.target import Target

Progress = Callable[[Scored], None]


@dataclass(frozen=True)
class Crew:
    """Who plays and who judges; without models, the script and the rules do."""

    clock: Clock
    player: Speaker | None = None
    judge: Speaker | None = None
    longest_pause_s: float = 3600.0

    def caller(self, scenario: Scenario, plan: PlannedCall, seed: int) -> Caller:
        if self.player is not None:
            return PlayedCaller(scenario, plan, seed, self.player)
        return ScriptedCaller(scenario, plan, seed)


async def run_once(scenario: Scenario, target: Target, crew: Crew, run: int = 1, log: RunLog | None = None) -> Scored:
    """All calls of a scenario, in order, in a session of their own; with a log, each turn is on disk as it is spoken."""
    records: list[CallRecord] = []
    async with target.open() as session:
        for number, plan in enumerate(scenario.calls, 1):
            is_waited = await _pause(plan, target, crew)
            caller = crew.caller(scenario, plan, scenario.seed + run)
            call_log = await log.open_call(scenario, number, run, crew.clock.now()) if log else None
            record = tell_mailbox(await session.call(caller, scenario, number, run, call_log))
            records.append(record if is_waited else _note_skipped(record, plan.pause_s))
        judged: list[Judged] = await probe(scenario, crew.clock)
    if crew.judge is not None:
        judged += await judge(scenario, records, crew.judge)
    return score(scenario, run, records, judged)


async def _pause(plan: PlannedCall, target: Target, crew: Crew) -> bool:
    """Wait between two calls, unless the target moves its own clock; False if the wait was too long to be made."""
    if not plan.pause_s or not target.keeps_time:
        return True
    if plan.pause_s > crew.longest_pause_s:
        return False
    await crew.clock.sleep(plan.pause_s)
    return True


def _note_skipped(record: CallRecord, seconds: float) -> CallRecord:
    return replace(record, events=(LineEvent(0.0, "pause_skipped", f"{seconds:g}"), *record.events))


async def run_suite(
    scenarios: Sequence[Scenario],
    target: Target,
    crew: Crew,
    *,
    runs: int | None = None,
    parallel: int = 4,
    on_done: Progress | None = None,
    log: RunLog | None = None,
) -> list[Scored]:
    """Every run of every scenario, in the order of the list, however they come to their end.

    With a log, those that it has finished are not run again, and each that ends is kept in it.
    """
    began_s = crew.clock.monotonic() - (log.seconds if log else 0.0)
    limit = asyncio.Semaphore(max(1, parallel))

    async def one(place: int, scenario: Scenario, run: int) -> Scored:
        if log is not None and (kept := log.find(place, run)):
            return kept
        async with limit:
            scored = await run_once(scenario, target, crew, run, log)
            if log is not None:
                await asyncio.to_thread(log.keep, place, scored, crew.clock.monotonic() - began_s)
        if on_done is not None:
            on_done(scored)
        return scored

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(one(place, scenario, run))
                for place, scenario in enumerate(scenarios)
                for run in range(1, (runs or scenario.runs) + 1)
            ]
    except* AftercallError as errors:  # the first says what to do; the others were stopped by it
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
