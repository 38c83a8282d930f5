"""What `aftercall test run` does: chooses the agent and the scenarios, shows progress, keeps the results."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from rich.console import Console
from rich.text import Text

from aftercall.cli.stage import Stage, make_console
from aftercall.cli.test_agents import open_target
from aftercall.clock import SystemClock
from aftercall.errors import ConfigError
from aftercall.ids import new_id
from aftercall.settings import Settings
from aftercall.tester.calibrate import calibrate
from aftercall.tester.ledger import Ledger, fingerprint
from aftercall.tester.library import find_scenarios
from aftercall.tester.redact import Redactor
from aftercall.tester.report.run import Run, rates_of, speak_calibration, speak_latency
from aftercall.tester.results import Results
from aftercall.tester.scenario import Scenario
from aftercall.tester.score import Scored
from aftercall.tester.shrink import shrink
from aftercall.tester.speaker import ChatSpeaker
from aftercall.tester.statistics import Comparison, compare
from aftercall.tester.suite import Crew, run_once, run_suite
from aftercall.tester.target import Studio, Target
from aftercall.tester.voice import choose_voice

CALIBRATION_TURNS = 8
UNSHRINKABLE = ("goal_missed", "probe_failed", "judged_missed", "never_spoke")  # a caller who says nothing misses every goal
_COLOURS = {"passed": "green", "failed": "red", "inconclusive": "yellow", "re-listen": "yellow"}
_OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True)
class RunPlan:
    scenarios: tuple[str, ...]
    agent: str
    runs: int | None
    parallel: int
    is_live: bool
    voice: str
    shrinks: bool
    folder: Path
    longest_pause_s: float = 30.0


@dataclass(frozen=True)
class Kept:
    run: Run
    folder: Path


async def run_tests(stage: Stage, plan: RunPlan, *, quiet: bool) -> Kept:
    settings, clock = stage.loaded.settings, SystemClock()
    scenarios = find_scenarios(list(plan.scenarios), plan.folder)
    results = Results(settings.home)
    console = make_console(quiet=True) if quiet else stage.console
    started_at, began = clock.now(), clock.monotonic()
    async with _crew(settings, clock, plan) as crew, open_target(settings, plan.agent, make_studio(settings, plan, clock)) as target:
        calibration = await calibrate(clock, turns=CALIBRATION_TURNS)
        parallel = 1 if target.is_live and plan.agent.startswith("+") else plan.parallel or settings.tester.parallel
        console.print(f"{len(scenarios)} scenario{'s' * (len(scenarios) != 1)} against {target.name}, {parallel} at a time", style="dim")
        shown = _Progress(console, sum(plan.runs or item.runs for item in scenarios))
        scored = await run_suite(scenarios, target, crew, runs=plan.runs, parallel=parallel, on_done=shown.show)
        run = Run(new_id(), target.name, started_at, clock.monotonic() - began, tuple(scored), tuple(calibration))
        with results.open_ledger() as ledger:
            ledger.add(target.name, run.id, scored)
            if plan.shrinks and not target.is_live:
                await _shrink_bugs(ledger, scored, target, crew)
            folder = results.keep(run, ledger, Redactor(scenarios, is_on=settings.tester.redact))
    _print_end(console, run, folder)
    return Kept(run, folder)


def make_studio(settings: Settings, plan: RunPlan, clock: SystemClock) -> Studio:
    wanted = plan.voice or settings.tester.voice or ("" if plan.is_live else "tones")
    return Studio(clock, choose_voice(wanted), choose_voice(wanted, for_agent=True), plan.is_live, plan.folder)


@asynccontextmanager
async def _crew(settings: Settings, clock: SystemClock, plan: RunPlan) -> AsyncIterator[Crew]:
    if settings.tester.model is None:
        yield Crew(clock, longest_pause_s=plan.longest_pause_s)
        return
    if settings.openai.api_key is None and settings.openai.base_url is None:
        raise ConfigError("tester.model: needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server of your own")
    async with httpx2.AsyncClient(timeout=60.0) as http:
        speaker = ChatSpeaker(http, settings.openai.base_url or _OPENAI, settings.tester.model, settings.openai.api_key)
        yield Crew(clock, speaker, speaker, plan.longest_pause_s)


async def _shrink_bugs(ledger: Ledger, scored: list[Scored], target: Target, crew: Crew) -> None:
    """For bugs whose fewest steps are not known yet: each is looked for in the first scenario that showed it."""
    seen: set[str] = set()
    for item in scored:
        for finding in item.bugs:
            mark = fingerprint(target.name, finding)
            known = ledger.get(mark)
            if mark in seen or known is None or known.steps or finding.kind in UNSHRINKABLE:
                continue
            seen.add(mark)

            async def shows(smaller: Scenario, wanted: str = mark, run: int = item.run) -> bool:
                again = await run_once(smaller, target, crew, run)
                return any(fingerprint(target.name, other) == wanted for other in again.bugs)

            ledger.note_steps(mark, await shrink(item.scenario, shows))


class _Progress:
    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._done = 0

    def show(self, scored: Scored) -> None:
        self._done += 1
        bugs = ", ".join(sorted({finding.kind for finding in scored.bugs}))
        seconds = sum(record.duration_s for record in scored.records)
        self._console.print(
            Text.assemble(
                (f"{self._done:4}/{self._total} ", "dim"),
                (f"{scored.verdict:12}", _COLOURS[scored.verdict]),
                f" {scored.scenario.name}, run {scored.run}  ",
                (f"{seconds:.0f} s of talk", "dim"),
                f"  {bugs}",
            )
        )


def _print_end(console: Console, run: Run, folder: Path) -> None:
    if rates := rates_of(run):
        console.print(rates.sentence)
    console.print(f"{run.passed} passed, {run.failed} failed of {len(run.scored)} in {run.seconds:.1f} s; {speak_latency(run)}")
    console.print(speak_calibration(run), style="dim")
    console.print(f"{folder / 'report.html'}\n{folder / 'BUG_REPORT.md'}")


async def compare_agents(stage: Stage, plan: RunPlan, other: str, budget: int) -> Comparison:
    """A pair of calls at a time, scenario after scenario, until it is decided or the budget is spent."""
    settings, clock = stage.loaded.settings, SystemClock()
    scenarios = find_scenarios(list(plan.scenarios), plan.folder)
    studio = make_studio(settings, plan, clock)
    pairs: dict[str, list[tuple[bool, bool]]] = {}
    made = 0
    async with (
        _crew(settings, clock, plan) as crew,
        open_target(settings, plan.agent, studio) as a,
        open_target(settings, other, studio) as b,
    ):
        for run in range(1, budget + 1):
            for scenario in scenarios:
                if made + 2 * len(scenario.calls) > budget:
                    return compare(pairs)
                first, second = await run_once(scenario, a, crew, run), await run_once(scenario, b, crew, run)
                made += 2 * len(scenario.calls)
                if {first.verdict, second.verdict} <= {"passed", "failed"}:
                    pairs.setdefault(scenario.name, []).append((first.verdict == "passed", second.verdict == "passed"))
                so_far = compare(pairs) if pairs else None
                if so_far is not None and so_far.answer in ("worse", "better"):
                    return so_far
    return compare(pairs)
