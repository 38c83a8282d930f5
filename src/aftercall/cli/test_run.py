"""What `aftercall test run` and `compare --budget` do: choose agent and scenarios, run, report.

The built-in receptionist is an agent under test, too: every run gets a new app and home.
"""

import asyncio
import math
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import typer
from rich.console import Console
from rich.text import Text

from aftercall.app import App, build
from aftercall.bridge.turn_call import TurnCall
from aftercall.cli.console import make_console, make_table
from aftercall.cli.context import CliContext, report_refused
from aftercall.clock import SystemClock
from aftercall.engine.voice import AgentReply as TurnReply
from aftercall.errors import ConfigError, NotFound, ScenarioRefused, UnknownTestName
from aftercall.faults import fault_point
from aftercall.ids import new_id
from aftercall.lab.speech import utter
from aftercall.model.calls import LiveCall
from aftercall.model.json_fields import Json
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from aftercall.tester.agents import LOOPBACK_NAMES, open_target
from aftercall.tester.calibrate import calibrate, measure_line
from aftercall.tester.call import ScriptedCall
from aftercall.tester.drivers.phone import INBOUND
from aftercall.tester.drivers.text_agent import TextAgentConnection
from aftercall.tester.library import FoundScenarios, find_scenarios
from aftercall.tester.line import AgentAnswer, AgentAnswers, DialedCall, TextAgent
from aftercall.tester.models import OPENAI_URL, ChatModel
from aftercall.tester.record import CallRecord
from aftercall.tester.redact import Redactor
from aftercall.tester.results import RunLog, RunResults, StartedRun
from aftercall.tester.run_report import (
    RunReport,
    github_annotations,
    rates_of,
    speak_calibration,
    speak_latency,
)
from aftercall.tester.scenario import SpeakingManner
from aftercall.tester.score import ScenarioScore
from aftercall.tester.statistics import Calibration, Comparison
from aftercall.tester.suite import (
    LoadStep,
    SuiteParts,
    compare_targets,
    run_load,
    run_suite,
    shrink_bugs,
)
from aftercall.tester.target import AgentTarget, CallSetup, TargetSession
from aftercall.tester.voice import CallerVoice, VoiceClip, choose_voice

CALIBRATION_TURNS = 8
LIVE_TURNS = 2
MAX_AT_ONCE = 1000
# of the receptionist: nobody is on the phone, and a busy machine changes no test's result
DATABASE_TIMEOUT_S = 60.0
VERDICT_COLOURS = {
    "passed": "green",
    "failed": "red",
    "inconclusive": "yellow",
    "re-listen": "yellow",
}


@dataclass(frozen=True)
class RunPlan:
    """The options of a run; a run that was cut short keeps them in its log."""

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
    run: RunReport
    folder: Path
    refused: list[ScenarioRefused]

    def list_refused(self) -> list[dict[str, str | int]]:
        return [
            {
                "file": each.source,
                "line": each.line,
                "field": each.field,
                "reason": each.reason,
            }
            for each in self.refused
        ]


async def run_tests(
    cli: CliContext, plan: RunPlan, *, resume: str, run_id: str, quiet: bool
) -> SavedRun:
    """Starts a run, or finishes one that was cut short with the options it was started with."""
    settings, clock = cli.config.settings, SystemClock()
    results = RunResults(settings.home)
    started = results.find_unfinished(resume) if resume else None
    plan = RunPlan(**started.options) if started else plan
    found = (
        FoundScenarios(list(started.scenarios), [])
        if started
        else _choose_scenarios(plan)
    )
    console = make_console(quiet=True) if quiet else cli.console
    started_at = clock.now()
    async with (
        _open_suite_parts(settings, clock, plan) as parts,
        _open_target(
            settings, plan.agent, _make_setup(settings, plan, clock)
        ) as target,
    ):
        if started is None:
            calibration = await _measure_own_error(settings, plan, clock)
            scenarios = tuple(found.scenarios)
            options = (calibration, asdict(plan))
            started = StartedRun(
                run_id or new_id(), target.name, started_at, scenarios, *options
            )
            results.start_run(started)
        with results.open_log(started.id) as log:
            run = await _run_suite(settings, plan, parts, target, console, log)
            folder = await _save(settings, plan, parts, target, results, run)
            fault_point("tester.after_ledger")
            log.remove()
    _print_end(console, run, folder)
    return SavedRun(run, folder, found.refused)


async def _measure_own_error(
    settings: Settings, plan: RunPlan, clock: SystemClock
) -> tuple[Calibration, ...]:
    """In a call to itself, and to a known agent that is reached as the agent is."""
    simulated = await calibrate(CallSetup(clock), turns=CALIBRATION_TURNS)
    own = await measure_line(
        settings,
        plan.agent,
        CallSetup(clock, is_live=plan.is_live),
        parallel=plan.parallel or settings.tester.parallel,
        turns=LIVE_TURNS if plan.is_live else CALIBRATION_TURNS,
    )
    return (*simulated, own) if own else tuple(simulated)


async def _run_suite(
    settings: Settings,
    plan: RunPlan,
    parts: SuiteParts,
    target: AgentTarget,
    console: Console,
    log: RunLog,
) -> RunReport:
    """Runs what is not finished."""
    started, clock = log.started, parts.clock
    began_s = clock.monotonic() - log.seconds
    parallel = plan.parallel or settings.tester.parallel
    if target.is_live and _is_by_phone(plan):
        parallel = 1
    count = len(started.scenarios)
    what = f"{count} scenario{'s' * (count != 1)} against {target.name}"
    console.print(f"{what}, {parallel} at a time; run {started.id}", style="dim")
    total = sum(plan.runs or item.runs for item in started.scenarios)
    progress = _Progress(console, total, len(log.finished))
    scored = await run_suite(
        started.scenarios,
        target,
        parts,
        runs=plan.runs,
        parallel=parallel,
        on_done=progress.show,
        log=log,
    )
    return started.report(clock.monotonic() - began_s, scored)


async def _save(
    settings: Settings,
    plan: RunPlan,
    parts: SuiteParts,
    target: AgentTarget,
    results: RunResults,
    run: RunReport,
) -> Path:
    """Adds the bugs to the ledger and writes the reports."""
    with results.open_ledger() as ledger:
        ledger.add(target.name, run.id, run.scored)
        if plan.shrinks and not target.is_live:
            await shrink_bugs(ledger, run.scored, target, parts)
        scenarios = [item.scenario for item in run.scored]
        return results.save(
            run, ledger, Redactor(scenarios, is_on=settings.tester.redact)
        )


@asynccontextmanager
async def _open_target(
    settings: Settings, agent: str, setup: CallSetup
) -> AsyncIterator[AgentTarget]:
    if agent == "receptionist":
        with open_receptionist(setup, settings) as target:
            yield target
    else:
        async with open_target(settings, agent, setup) as other:
            yield other


def _make_setup(settings: Settings, plan: RunPlan, clock: SystemClock) -> CallSetup:
    name = plan.voice or settings.tester.voice or _default_voice(settings, plan)
    voice, agent_voice = _choose_voice(name), _choose_voice(name, for_agent=True)
    return CallSetup(clock, voice, agent_voice, plan.is_live, Path(plan.folder))


def _default_voice(settings: Settings, plan: RunPlan) -> str:
    """By phone a recogniser has to understand it: the lab's on this machine, or a real one.

    Where our own voice is sent to a phone it speaks words; tones have to be asked for.
    """
    is_phone = _is_by_phone(plan)
    if is_phone and urlsplit(settings.twilio.api_url).hostname in LOOPBACK_NAMES:
        return "words"
    is_heard = is_phone and not _is_spoken_by_twilio(settings, plan)
    if is_heard or plan.agent.startswith("twilio:"):
        return "espeak"
    return "" if plan.is_live else "tones"


def _is_by_phone(plan: RunPlan) -> bool:
    return plan.agent.startswith(("+", f"{INBOUND}:"))


def _is_spoken_by_twilio(settings: Settings, plan: RunPlan) -> bool:
    return plan.agent.startswith("+") and settings.tester.phone_mode != "media"


class WordsVoice:
    """The lab's speech: the lab's engines and recogniser understand it without a model."""

    def speak(self, text: str) -> VoiceClip:
        sound, words = b"", []
        for word in text.split():
            words.append((len(sound), word))
            sound += utter(word)
        return VoiceClip(sound, tuple(words))

    def adapt(self, manner: SpeakingManner, language: str) -> "WordsVoice":
        return self


def _choose_voice(name: str, *, for_agent: bool = False) -> CallerVoice:
    return WordsVoice() if name == "words" else choose_voice(name, for_agent=for_agent)


@asynccontextmanager
async def _open_suite_parts(
    settings: Settings, clock: SystemClock, plan: RunPlan
) -> AsyncIterator[SuiteParts]:
    model, openai = settings.tester.model, settings.openai
    if model is None:
        yield SuiteParts(clock, max_pause_s=plan.longest_pause_s)
        return
    if openai.api_key is None and openai.base_url is None:
        raise ConfigError(
            "tester.model: needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server of your own"
        )
    async with httpx2.AsyncClient(timeout=60.0) as http:
        chat = ChatModel(http, openai.base_url or OPENAI_URL, model, openai.api_key)
        yield SuiteParts(clock, chat.complete, chat.complete, plan.longest_pause_s)


class _Progress:
    def __init__(self, console: Console, total: int, done: int) -> None:
        self._console = console
        self._total = total
        self._done = done

    def show(self, scored: ScenarioScore) -> None:
        self._done += 1
        bugs = ", ".join(sorted({finding.kind for finding in scored.bugs}))
        seconds = sum(record.duration_s for record in scored.records)
        line = Text.assemble(
            (f"{self._done:4}/{self._total} ", "dim"),
            (f"{scored.verdict:12}", VERDICT_COLOURS[scored.verdict]),
            f" {scored.scenario.name}, run {scored.run}  ",
            (f"{seconds:.0f} s of talk", "dim"),
            f"  {bugs or Redactor([scored.scenario]).clean(scored.reason)}",
        )
        self._console.print(line)


def _print_end(console: Console, run: RunReport, folder: Path) -> None:
    if rates := rates_of(run):
        console.print(rates.sentence)
    counts = f"{run.passed} passed, {run.failed} failed of {len(run.scored)}"
    console.print(f"{counts} in {run.seconds:.1f} s; {speak_latency(run)}")
    console.print(speak_calibration(run), style="dim")
    console.print(f"{folder / 'report.html'}\n{folder / 'BUG_REPORT.md'}")
    if os.environ.get("GITHUB_ACTIONS") == "true":
        redactor = Redactor([item.scenario for item in run.scored])
        for line in github_annotations(run, redactor):
            typer.echo(line)


def _choose_scenarios(plan: RunPlan) -> FoundScenarios:
    """Reports files that were refused; raises if no scenario is left."""
    found = find_scenarios(list(plan.scenarios), Path(plan.folder))
    report_refused(found.refused if found.scenarios else found.refused[1:])
    if found.scenarios:
        return found
    if found.refused:
        raise found.refused[0]
    raise NotFound("there are no scenarios in this folder")


def read_steps(text: str) -> list[int]:
    try:
        steps = [int(part) for part in text.split(",")]
    except ValueError:
        steps = []
    if not steps or not all(1 <= step <= MAX_AT_ONCE for step in steps):
        raise UnknownTestName(
            f"--at-once: give numbers from 1 to {MAX_AT_ONCE}, as in 1,5,20"
        )
    return steps


def print_load(cli: CliContext, steps: list[Json]) -> None:
    times = ("p50", "p95", "p99", "max")
    counts = ("at_once", "runs", "failed", "undecided", "answers")
    table = make_table(*(name.replace("_", " ") for name in counts), *times)
    for step in steps:
        values = [step[f"latency_{name}_s"] for name in times]
        shown = ["" if value is None else f"{value:.2f} s" for value in values]
        table.add_row(*(str(step[name]) for name in counts), *shown)
    cli.console.print(table)


async def load_agent(
    cli: CliContext, plan: RunPlan, steps: Sequence[int]
) -> AsyncIterator[LoadStep]:
    """One step after the other; each has at least two runs for every call at once."""
    settings, clock = cli.config.settings, SystemClock()
    if _is_by_phone(plan):
        reason = "one call at a time is all there is by phone"
        raise UnknownTestName(f"--agent {plan.agent}: {reason}")
    scenarios = _choose_scenarios(plan).scenarios
    setup = _make_setup(settings, plan, clock)
    async with (
        _open_suite_parts(settings, clock, plan) as parts,
        _open_target(settings, plan.agent, setup) as target,
    ):
        for at_once in steps:
            runs = plan.runs or math.ceil(2 * at_once / len(scenarios))
            yield await run_load(scenarios, target, parts, at_once, runs)


async def compare_agents(
    cli: CliContext, plan: RunPlan, other: str, budget: int
) -> Comparison:
    settings, clock = cli.config.settings, SystemClock()
    found = _choose_scenarios(plan)
    setup = _make_setup(settings, plan, clock)
    async with (
        _open_suite_parts(settings, clock, plan) as parts,
        _open_target(settings, plan.agent, setup) as a,
        _open_target(settings, other, setup) as b,
    ):
        return await compare_targets(found.scenarios, a, b, parts, budget)


class SkippingClock(SystemClock):
    """Real time, but pauses between two calls can be skipped."""

    def __init__(self) -> None:
        self._skipped = timedelta()

    def now(self) -> datetime:
        return super().now() + self._skipped

    def skip(self, seconds: float) -> None:
        self._skipped += timedelta(seconds=seconds)


@contextmanager
def open_receptionist(setup: CallSetup, settings: Settings) -> Iterator[AgentTarget]:
    """Each run copies one prepared home: making a home takes longer than a call."""
    with tempfile.TemporaryDirectory(prefix="aftercall-test-") as template:
        build(_settings(settings, Path(template))).close()
        shutil.rmtree(Path(template) / "run", ignore_errors=True)
        home, is_live = ReceptionistHome(setup, settings, Path(template)), setup.is_live
        yield AgentTarget("receptionist", is_live, home.open, keeps_time=is_live)


def _settings(settings: Settings, home: Path) -> Settings:
    """The defaults, with the configured receptionist and time zone."""
    return Settings(
        home=home, receptionist=settings.receptionist, timezone=settings.timezone
    )


@dataclass(frozen=True)
class ReceptionistHome:
    """A prepared home, and the settings of the receptionist in it."""

    setup: CallSetup
    settings: Settings
    template: Path

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TargetSession]:
        with tempfile.TemporaryDirectory(prefix="aftercall-test-") as home:
            clock = SkippingClock()
            shutil.copytree(self.template, home, dirs_exist_ok=True)
            app = await asyncio.to_thread(
                build,
                _settings(self.settings, Path(home)),
                clock,
                database_timeout_s=DATABASE_TIMEOUT_S,
            )
            try:
                yield partial(self._call, app, clock)
            finally:
                await app.journal.close()
                app.close()

    async def _call(
        self, app: App, clock: SkippingClock, call: ScriptedCall
    ) -> CallRecord:
        if not self.setup.is_live:
            clock.skip(call.plan.pause_s)
        agent = ReceptionistAgent(app)
        record = await self.setup.hold_call(
            lambda pace: TextAgentConnection(agent, self.setup.agent_voice, pace), call
        )
        if call.number < len(call.scenario.calls) and agent.call_id:
            await asyncio.to_thread(_run_steps, app, agent.call_id)
        return record


def _run_steps(app: App, call_id: str) -> None:
    """Runs the post-call steps at once, so that the next call knows of this one."""
    for name in STEPS:
        app.step_runner.run(call_id, name)


class ReceptionistAgent(TextAgent):
    def __init__(self, app: App) -> None:
        self._app = app
        self._call: TurnCall | None = None

    @property
    def call_id(self) -> str:
        return self._call.call.id if self._call else ""

    async def start(self, dial: DialedCall) -> AgentAnswers:
        app = self._app
        live = LiveCall(
            source="tester",
            sid=new_id(),
            agent_id=app.settings.agent_id,
            caller=dial.caller,
            started_at=app.clock.now(),
        )
        self._call = TurnCall(app.phone.turn_parts, live)
        return self._spoken(await self._call.start())

    async def respond(self, text: str) -> AgentAnswers:
        if self._call is None or self._call.end_reason is not None:
            return ()
        return self._spoken(await self._call.answer(text))

    async def hang_up(self) -> None:
        if self._call is not None:
            await self._call.end("caller_hung_up")

    def _spoken(self, reply: TurnReply) -> AgentAnswers:
        return [AgentAnswer(reply.text, reply.ends_call)]
