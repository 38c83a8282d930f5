"""Scenarios times runs against one target: several calls at a time, each run scored as soon as
it is over.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.tester.caller import Caller, ScriptedCaller
from aftercall.tester.judge import judge
from aftercall.tester.model_caller import ModelCaller
from aftercall.tester.phrases import find_any
from aftercall.tester.probes import probe
from aftercall.tester.record import CallRecord, LineEvent
from aftercall.tester.run_log import RunLog
from aftercall.tester.scenario import PlannedCall, Scenario
from aftercall.tester.score import JudgedExpectation, ScenarioScore, score
from aftercall.tester.speaker import Speaker
from aftercall.tester.target import AgentTarget

_FIRST_TURNS = 2
_SAYS = (
    "after the tone|after the beep|at the tone|at the beep|following the tone",
    (
        "reached the voice mail|reached the voicemail|voice mail box|voicemail box|voice "
        "mailbox|mailbox is full"
    ),
    "not available to take your call",
)


def mark_voicemail(record: CallRecord) -> CallRecord:
    """An answered call whose first words are a mailbox's was answered by one."""
    first = " ".join(span.text for span in record.agent_spans[:_FIRST_TURNS])
    return (
        replace(record, outcome="voicemail")
        if record.outcome == "answered" and find_any(_SAYS, first)
        else record
    )


Progress = Callable[[ScenarioScore], None]


@dataclass(frozen=True)
class SuiteParts:
    """Who plays and who judges; without models, the script and the rules do."""

    clock: Clock
    player: Speaker | None = None
    judge: Speaker | None = None
    max_pause_s: float = 3600.0

    def make_caller(self, scenario: Scenario, plan: PlannedCall, seed: int) -> Caller:
        if self.player is not None:
            return ModelCaller(scenario, plan, seed, self.player)
        return ScriptedCaller(scenario, plan, seed)


async def run_once(
    scenario: Scenario,
    target: AgentTarget,
    parts: SuiteParts,
    run: int = 1,
    log: RunLog | None = None,
) -> ScenarioScore:
    """All calls of a scenario, in order, in a session of their own; with a log, each turn is on
    disk as it is spoken.
    """
    records: list[CallRecord] = []
    async with target.open() as session:
        for number, plan in enumerate(scenario.calls, 1):
            is_waited = await _pause(plan, target, parts)
            caller = parts.make_caller(scenario, plan, scenario.seed + run)
            call_log = (
                await log.open_call(scenario, number, run, parts.clock.now()) if log else None
            )
            record = mark_voicemail(await session.call(caller, scenario, number, run, call_log))
            records.append(record if is_waited else _note_skipped(record, plan.pause_s))
        judged: list[JudgedExpectation] = await probe(scenario, parts.clock)
    if parts.judge is not None:
        judged += await judge(scenario, records, parts.judge)
    return score(scenario, run, records, judged)


async def _pause(plan: PlannedCall, target: AgentTarget, parts: SuiteParts) -> bool:
    """Wait between two calls, unless the target moves its own clock; False if the wait was too
    long to be made.
    """
    if not plan.pause_s or not target.keeps_time:
        return True
    if plan.pause_s > parts.max_pause_s:
        return False
    await parts.clock.sleep(plan.pause_s)
    return True


def _note_skipped(record: CallRecord, seconds: float) -> CallRecord:
    return replace(record, events=(LineEvent(0.0, "pause_skipped", f"{seconds:g}"), *record.events))


async def run_suite(
    scenarios: Sequence[Scenario],
    target: AgentTarget,
    parts: SuiteParts,
    *,
    runs: int | None = None,
    parallel: int = 4,
    on_done: Progress | None = None,
    log: RunLog | None = None,
) -> list[ScenarioScore]:
    """Every run of every scenario, in the order of the list, however they come to their end.

    With a log, those that it has finished are not run again, and each that ends is kept in it.
    """
    began_s = parts.clock.monotonic() - (log.seconds if log else 0.0)
    limit = asyncio.Semaphore(max(1, parallel))

    async def one(place: int, scenario: Scenario, run: int) -> ScenarioScore:
        if log is not None and (kept := log.find(place, run)):
            return kept
        async with limit:
            scored = await run_once(scenario, target, parts, run, log)
            if log is not None:
                await asyncio.to_thread(
                    log.record_finished, place, scored, parts.clock.monotonic() - began_s
                )
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
