"""Runs scenarios against a target, several at a time, and scores each run when it is over."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.model.json_fields import Json, pick_fields
from aftercall.tester.bugs import BugLedger
from aftercall.tester.call import ScriptedCall
from aftercall.tester.caller import Caller
from aftercall.tester.judge import count_before, judge, probe
from aftercall.tester.models import Complete, ModelCaller
from aftercall.tester.phrases import MAILBOX, find_any
from aftercall.tester.record import CallRecord, LineEvent
from aftercall.tester.results import RunLog
from aftercall.tester.scenario import PlannedCall, Scenario
from aftercall.tester.score import ScenarioScore, score
from aftercall.tester.statistics import Comparison, Passed, compare, percentile
from aftercall.tester.target import AgentTarget

VOICEMAIL_TURNS = 2
MAX_SHRINK_TRIES = 24
NO_STEPS = "none: it shows whatever the caller says"
# a caller who says nothing misses every goal, so these cannot be shrunk
UNSHRINKABLE = ("goal_missed", "probe_failed", "judged_missed", "never_spoke")


def mark_voicemail(record: CallRecord) -> CallRecord:
    """Changes the outcome of an answered call whose first words are those of a mailbox."""
    first = " ".join(span.text for span in record.agent_spans[:VOICEMAIL_TURNS])
    if record.outcome == "answered" and find_any(MAILBOX, first):
        return replace(record, outcome="voicemail")
    return record


Progress = Callable[[ScenarioScore], None]


@dataclass(frozen=True)
class SuiteParts:
    """The models that play and judge; without them, the script and the rules do."""

    clock: Clock
    player: Complete | None = None
    judge: Complete | None = None
    max_pause_s: float = 3600.0

    def make_caller(self, scenario: Scenario, plan: PlannedCall, seed: int) -> Caller:
        today = self.clock.now().date()
        if self.player is not None:
            return ModelCaller(scenario, plan, seed, self.player, today)
        return Caller(scenario, plan, seed, today)


async def run_once(
    scenario: Scenario,
    target: AgentTarget,
    parts: SuiteParts,
    run: int = 1,
    log: RunLog | None = None,
) -> ScenarioScore:
    """All calls of a scenario, in order, in one session; a log gets each turn as it is spoken."""
    records: list[CallRecord] = []
    before = await count_before(scenario)
    async with target.open() as session:
        for number, plan in enumerate(scenario.calls, 1):
            is_skipped = target.keeps_time and plan.pause_s > parts.max_pause_s
            if plan.pause_s and target.keeps_time and not is_skipped:
                await parts.clock.sleep(plan.pause_s)
            caller = parts.make_caller(scenario, plan, scenario.seed + run)
            call_log = None
            if log is not None:
                call_log = await log.open_call(scenario, number, run, parts.clock.now())
            record = mark_voicemail(
                await session(ScriptedCall(caller, scenario, number, run, call_log))
            )
            if is_skipped:
                event = LineEvent(0.0, "pause_skipped", f"{plan.pause_s:g}")
                record = replace(record, events=(event, *record.events))
            records.append(record)
        judged = await probe(scenario, parts.clock, before)
    if parts.judge is not None:
        judged += await judge(scenario, records, parts.judge)
    return score(scenario, run, records, judged)


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
    """Every run of every scenario, in the order of the list.

    Runs that the log has finished are not repeated; each that ends is added to the log.
    """
    began_s = parts.clock.monotonic() - (log.seconds if log else 0.0)
    limit = asyncio.Semaphore(max(1, parallel))

    async def run_one(place: int, scenario: Scenario, run: int) -> ScenarioScore:
        if log is not None and (finished := log.find(place, run)):
            return finished
        async with limit:
            scored = await run_once(scenario, target, parts, run, log)
            if log is not None:
                seconds = parts.clock.monotonic() - began_s
                await asyncio.to_thread(log.record_finished, place, scored, seconds)
        if on_done is not None:
            on_done(scored)
        return scored

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(run_one(place, scenario, run))
                for place, scenario in enumerate(scenarios)
                for run in range(1, (runs or scenario.runs) + 1)
            ]
    except* AftercallError as errors:
        # the first says what to do; it stopped the others
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


@dataclass(frozen=True)
class LoadStep:
    """What so many calls at once did to the agent."""

    at_once: int
    runs: int
    failed: int
    undecided: int
    latencies_s: tuple[float, ...]
    seconds: float

    def as_json(self) -> Json:
        shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
        return {
            **pick_fields(self, "at_once runs failed undecided"),
            "answers": len(self.latencies_s),
            "seconds": round(self.seconds, 2),
            **{
                f"latency_{name}_s": percentile(self.latencies_s, share)
                for name, share in shares.items()
            },
        }


async def run_load(
    scenarios: Sequence[Scenario],
    target: AgentTarget,
    parts: SuiteParts,
    at_once: int,
    runs: int,
) -> LoadStep:
    """All scenarios, so often each, with this many runs at a time."""
    began_s = parts.clock.monotonic()
    scored = await run_suite(scenarios, target, parts, runs=runs, parallel=at_once)
    measured = [measures for item in scored for measures in item.measures]
    return LoadStep(
        at_once,
        len(scored),
        sum(item.verdict == "failed" for item in scored),
        sum(item.verdict not in ("passed", "failed") for item in scored),
        tuple(value for measures in measured for value in measures["latency_s"]),
        parts.clock.monotonic() - began_s,
    )


async def compare_targets(
    scenarios: Sequence[Scenario],
    a: AgentTarget,
    b: AgentTarget,
    parts: SuiteParts,
    budget: int,
) -> Comparison:
    """Calls both targets in turn until the comparison is decided or the call budget is spent."""
    pairs: dict[str, list[Passed]] = {}
    made = 0
    for run in range(1, budget + 1):
        for scenario in scenarios:
            made += 2 * len(scenario.calls)
            if made > budget:
                return compare(pairs)
            first = await run_once(scenario, a, parts, run)
            second = await run_once(scenario, b, parts, run)
            if {first.verdict, second.verdict} <= {"passed", "failed"}:
                pair = (first.verdict == "passed", second.verdict == "passed")
                pairs.setdefault(scenario.name, []).append(pair)
            so_far = compare(pairs)
            if so_far.answer in ("worse", "better"):
                return so_far
    return compare(pairs)


async def shrink_bugs(
    ledger: BugLedger,
    scored: Sequence[ScenarioScore],
    target: AgentTarget,
    parts: SuiteParts,
) -> None:
    """Finds the fewest steps for each new bug, in the first scenario that showed it."""
    seen: set[str] = set()
    for item in scored:
        for finding in item.bugs:
            mark = finding.fingerprint(target.name)
            known = ledger.get(mark)
            if (
                mark in seen
                or known is None
                or known.steps
                or finding.kind in UNSHRINKABLE
            ):
                continue
            seen.add(mark)

            async def shows(
                smaller: Scenario, wanted: str = mark, run: int = item.run
            ) -> bool:
                again = await run_once(smaller, target, parts, run)
                return any(
                    other.fingerprint(target.name) == wanted for other in again.bugs
                )

            ledger.set_steps(mark, await shrink(item.scenario, shows))


@dataclass(frozen=True)
class ShrinkStep:
    """One thing the caller may say: a turn of the list, a stage, or the opening of a call."""

    call: int
    kind: str
    place: int
    name: str


def steps_of(scenario: Scenario) -> list[ShrinkStep]:
    """In the order in which the caller could take them."""
    found = []
    for number, call in enumerate(scenario.calls):
        prefix = f"call {number + 1}, " if len(scenario.calls) > 1 else ""
        if call.caller_context.opening:
            found.append(ShrinkStep(number, "opening", 0, f"{prefix}opening"))
        for place, turn in enumerate(call.turns):
            name = f"{prefix}turn {place + 1}: {turn.say or turn.dtmf or 'silence'}"
            found.append(ShrinkStep(number, "turn", place, name))
        for place, stage in enumerate(call.caller_context.response_stages):
            name = f"{prefix}stage {stage.name or place + 1}"
            found.append(ShrinkStep(number, "stage", place, name))
    return found


def keep_only(scenario: Scenario, steps: list[ShrinkStep]) -> Scenario:
    """The scenario without the other steps; what it checks stays."""
    calls = []
    for number, call in enumerate(scenario.calls):
        kept = {(step.kind, step.place) for step in steps if step.call == number}
        context = call.caller_context
        stages = enumerate(context.response_stages)
        smaller = context.model_copy(
            update={
                "response_stages": tuple(
                    item for at, item in stages if ("stage", at) in kept
                ),
                "opening": context.opening if ("opening", 0) in kept else (),
            }
        )
        turns = tuple(
            turn for at, turn in enumerate(call.turns) if ("turn", at) in kept
        )
        calls.append(
            call.model_copy(update={"turns": turns, "caller_context": smaller})
        )
    return scenario.model_copy(update={"calls": tuple(calls)})


async def shrink(
    scenario: Scenario,
    shows: Callable[[Scenario], Awaitable[bool]],
    tries: int = MAX_SHRINK_TRIES,
) -> tuple[str, ...]:
    """The fewest steps of the caller that still show a bug.

    Leaves out halves first, then single steps; every try is a run, so their number is limited.
    """
    steps = steps_of(scenario)
    size = max(1, len(steps) // 2)
    while steps and tries > 0:
        at = 0
        while at < len(steps) and tries > 0:
            fewer = steps[:at] + steps[at + size :]
            tries -= 1
            if await shows(keep_only(scenario, fewer)):
                steps = fewer
            else:
                at += size
        if size == 1:
            break
        size //= 2
    return tuple(step.name for step in steps) or (NO_STEPS,)
