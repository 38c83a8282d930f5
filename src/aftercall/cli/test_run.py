"""What `aftercall test run` does: chooses the agent and the scenarios, shows progress, keeps
the results.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from rich.console import Console
from rich.text import Text

from aftercall.cli.context import CliContext, make_console, report_refused
from aftercall.cli.test_agents import open_target
from aftercall.clock import SystemClock
from aftercall.errors import ConfigError, NotFound, ScenarioRefused
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.lab.speech import utter
from aftercall.settings import Settings
from aftercall.tester.bug_ledger import BugLedger, fingerprint
from aftercall.tester.calibrate import calibrate
from aftercall.tester.library import FoundScenario, find_scenarios
from aftercall.tester.redact import Redactor
from aftercall.tester.report.run import TestRunReport, rates_of, speak_calibration, speak_latency
from aftercall.tester.results import RunResults
from aftercall.tester.run_log import RunLog, StartedRun
from aftercall.tester.scenario import Scenario
from aftercall.tester.score import ScenarioScore
from aftercall.tester.shrink import shrink
from aftercall.tester.speaker import ChatSpeaker
from aftercall.tester.statistics import Comparison, compare
from aftercall.tester.suite import SuiteParts, run_once, run_suite
from aftercall.tester.target import AgentTarget, CallSetup
from aftercall.tester.voice import CallerVoice, VoiceClip, choose_voice

CALIBRATION_TURNS = 8
UNSHRINKABLE = (
    "goal_missed",
    "probe_failed",
    "judged_missed",
    "never_spoke",
)  # a caller who says nothing misses every goal
_COLOURS = {"passed": "green", "failed": "red", "inconclusive": "yellow", "re-listen": "yellow"}
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
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
    folder: str
    longest_pause_s: float = 30.0


@dataclass(frozen=True)
class SavedRun:
    run: TestRunReport
    folder: Path
    refused: list[ScenarioRefused]


async def run_tests(cli: CliContext, plan: RunPlan, *, resume: str, quiet: bool) -> SavedRun:
    """A new run, or the rest of one that was cut short: with its own plan, whatever this one
    says.
    """
    settings, clock = cli.config.settings, SystemClock()
    results = RunResults(settings.home)
    started = results.find_unfinished(resume) if resume else None
    plan = RunPlan(**started.options) if started else plan
    found = FoundScenario(list(started.scenarios), []) if started else _choose_scenarios(plan)
    console = make_console(quiet=True) if quiet else cli.console
    started_at = clock.now()
    async with (
        _open_suite_parts(settings, clock, plan) as crew,
        open_target(settings, plan.agent, make_call_setup(settings, plan, clock)) as target,
    ):
        if started is None:
            calibration = tuple(await calibrate(clock, turns=CALIBRATION_TURNS))
            started = StartedRun(
                new_id(), target.name, started_at, tuple(found.scenarios), calibration, asdict(plan)
            )
            results.start_run(started)
        with results.open_log(started.id) as log:
            run, folder = await _run_suite(
                settings, plan, _Parts(results, log, crew, target, console)
            )
    _print_end(console, run, folder)
    return SavedRun(run, folder, found.refused)


@dataclass(frozen=True)
class _Parts:
    results: RunResults
    log: RunLog
    suite_parts: SuiteParts
    target: AgentTarget
    console: Console


async def _run_suite(
    settings: Settings, plan: RunPlan, parts: _Parts
) -> tuple[TestRunReport, Path]:
    """What is not finished is run; then the reports are made of everything."""
    log, target, console, clock = parts.log, parts.target, parts.console, parts.suite_parts.clock
    started = log.started
    began_s = clock.monotonic() - log.seconds
    parallel = (
        1
        if target.is_live and plan.agent.startswith("+")
        else plan.parallel or settings.tester.parallel
    )
    count = len(started.scenarios)
    console.print(
        f"{count} scenario{'s' * (count != 1)} against {target.name}, {parallel} at a time; "
        f"run {started.id}",
        style="dim",
    )
    shown = _Progress(
        console, sum(plan.runs or item.runs for item in started.scenarios), len(log.finished)
    )
    scored = await run_suite(
        started.scenarios,
        target,
        parts.suite_parts,
        runs=plan.runs,
        parallel=parallel,
        on_done=shown.show,
        log=log,
    )
    run = TestRunReport(
        started.id,
        target.name,
        started.started_at,
        clock.monotonic() - began_s,
        tuple(scored),
        started.calibration,
    )
    with parts.results.open_ledger() as ledger:
        ledger.add(target.name, run.id, scored)
        if plan.shrinks and not target.is_live:
            await _shrink_bugs(ledger, scored, target, parts.suite_parts)
        folder = parts.results.save(
            run, ledger, Redactor(started.scenarios, is_on=settings.tester.redact)
        )
    fault_point("tester.after_ledger")
    log.remove()
    return run, folder


def make_call_setup(settings: Settings, plan: RunPlan, clock: SystemClock) -> CallSetup:
    wanted = plan.voice or settings.tester.voice or _default_voice(settings, plan)
    return CallSetup(
        clock,
        _choose_voice(wanted),
        _choose_voice(wanted, for_agent=True),
        plan.is_live,
        Path(plan.folder),
    )


def _default_voice(settings: Settings, plan: RunPlan) -> str:
    """By phone somebody has to understand it: the lab, which is a carrier on this machine, or a
    recogniser.
    """
    if plan.agent.startswith("+"):
        return "words" if urlsplit(settings.twilio.api_url).hostname in _LOOPBACK else ""
    return "" if plan.is_live else "tones"


class WordsVoice:
    """The lab's own speech: its engines and its recogniser understand it without a model."""

    def speak(self, text: str) -> VoiceClip:
        sound, words = b"", []
        for word in text.split():
            words.append((len(sound), word))
            sound += utter(word)
        return VoiceClip(sound, tuple(words))


def _choose_voice(wanted: str, *, for_agent: bool = False) -> CallerVoice:
    return WordsVoice() if wanted == "words" else choose_voice(wanted, for_agent=for_agent)


@asynccontextmanager
async def _open_suite_parts(
    settings: Settings, clock: SystemClock, plan: RunPlan
) -> AsyncIterator[SuiteParts]:
    if settings.tester.model is None:
        yield SuiteParts(clock, max_pause_s=plan.longest_pause_s)
        return
    if settings.openai.api_key is None and settings.openai.base_url is None:
        raise ConfigError(
            "tester.model: needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server of your own"
        )
    async with httpx2.AsyncClient(timeout=60.0) as http:
        speaker = ChatSpeaker(
            http,
            settings.openai.base_url or _OPENAI,
            settings.tester.model,
            settings.openai.api_key,
        )
        yield SuiteParts(clock, speaker, speaker, plan.longest_pause_s)


async def _shrink_bugs(
    ledger: BugLedger, scored: list[ScenarioScore], target: AgentTarget, suite_parts: SuiteParts
) -> None:
    """For bugs whose fewest steps are not known yet: each is looked for in the first scenario
    that showed it.
    """
    seen: set[str] = set()
    for item in scored:
        for finding in item.bugs:
            mark = fingerprint(target.name, finding)
            known = ledger.get(mark)
            if mark in seen or known is None or known.steps or finding.kind in UNSHRINKABLE:
                continue
            seen.add(mark)

            async def shows(smaller: Scenario, wanted: str = mark, run: int = item.run) -> bool:
                again = await run_once(smaller, target, suite_parts, run)
                return any(fingerprint(target.name, other) == wanted for other in again.bugs)

            ledger.note_steps(mark, await shrink(item.scenario, shows))


class _Progress:
    def __init__(self, console: Console, total: int, done: int) -> None:
        self._console = console
        self._total = total
        self._done = done

    def show(self, scored: ScenarioScore) -> None:
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


def _print_end(console: Console, run: TestRunReport, folder: Path) -> None:
    if rates := rates_of(run):
        console.print(rates.sentence)
    console.print(
        f"{run.passed} passed, {run.failed} failed of {len(run.scored)} in {run.seconds:.1f} "
        f"s; {speak_latency(run)}"
    )
    console.print(speak_calibration(run), style="dim")
    console.print(f"{folder / 'report.html'}\n{folder / 'BUG_REPORT.md'}")


def _choose_scenarios(plan: RunPlan) -> FoundScenario:
    """Report files that were refused; raise if no scenario is left."""
    found = find_scenarios(list(plan.scenarios), Path(plan.folder))
    report_refused(found.refused if found.scenarios else found.refused[1:])
    if not found.scenarios:
        raise (
            found.refused[0] if found.refused else NotFound("there are no scenarios in this folder")
        )
    return found


async def compare_agents(cli: CliContext, plan: RunPlan, other: str, budget: int) -> Comparison:
    """A pair of calls at a time, scenario after scenario, until it is decided or the budget is
    spent.
    """
    settings, clock = cli.config.settings, SystemClock()
    found = _choose_scenarios(plan)
    studio = make_call_setup(settings, plan, clock)
    pairs: dict[str, list[tuple[bool, bool]]] = {}
    made = 0
    async with (
        _open_suite_parts(settings, clock, plan) as crew,
        open_target(settings, plan.agent, studio) as a,
        open_target(settings, other, studio) as b,
    ):
        for run in range(1, budget + 1):
            for scenario in found.scenarios:
                if made + 2 * len(scenario.calls) > budget:
                    return compare(pairs)
                first, second = (
                    await run_once(scenario, a, crew, run),
                    await run_once(scenario, b, crew, run),
                )
                made += 2 * len(scenario.calls)
                if {first.verdict, second.verdict} <= {"passed", "failed"}:
                    pairs.setdefault(scenario.name, []).append(
                        (first.verdict == "passed", second.verdict == "passed")
                    )
                so_far = compare(pairs) if pairs else None
                if so_far is not None and so_far.answer in ("worse", "better"):
                    return so_far
    return compare(pairs)
