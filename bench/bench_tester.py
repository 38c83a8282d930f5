"""The tester measured: its own error, false alarms, planted faults, and how fast it goes.

python bench/bench_tester.py [--matrix] [--langwatch PYTHON|install]
python bench/bench_tester.py --strangers FOLDER… [--names] [--save]

The planted faults and the rules that find them were written together; `--matrix` therefore
plants every fault in every scenario, most of which were not made to show it, and counts who is
blamed. `--strangers` judges agents that others wrote, in the form of `strange_agents.py`, and
nothing else; `--names` names those it is wrong about, `--save` keeps the counts for reports.
`--langwatch` has LangWatch's tester call the same known agent in the same run: by a Python that
has `langwatch-scenario[voice]`, or by one that is made for it.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from aftercall.clock import SystemClock
from aftercall.settings import Settings
from aftercall.tester.calibrate import calibrate, measure_line
from aftercall.tester.call import CallRig, ScriptedCall, run_call
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.text_agent import TextAgentConnection
from aftercall.tester.library import list_scenarios
from aftercall.tester.line import AgentAnswer, TickPace
from aftercall.tester.practice_agent import FAULTS, practice_target
from aftercall.tester.scenario_file import parse_scenarios
from aftercall.tester.statistics import Calibration, percentile
from aftercall.tester.suite import SuiteParts, run_once, run_suite
from aftercall.tester.target import CallSetup
from aftercall.tester.voice import ToneVoice
from phone_carrier import measure_phone
from strange_agents import judge_strangers
from tables import met, print_table
from tester_peers import COLUMNS, compare_latency

MOST_OFF_MS = 30
TURNS = 120
RUNS = 5
PARALLEL = 4
LINE_TURNS = 20
LINES = ("python", "python-audio", "http", "ws", "twilio")
SCENARIOS = 20
SHORT_CALL = """
name: short
turns:
  - say: When are you open Monday?
  - say: Thank you, that is all.
"""


def calibration_rows(lines: list[Calibration]) -> Iterator[tuple[str, str, str, str]]:
    for line in lines:
        off = (
            f"p50 {line.latency_p50_ms:.1f}, p95 {line.latency_p95_ms:.1f}, max "
            f"{line.latency_max_ms:.1f} ms"
        )
        yield (
            f"latency error, {line.line}, {line.turns} turns",
            off,
            f"p95 ≤ {MOST_OFF_MS} ms",
            met(line.latency_p95_ms <= MOST_OFF_MS),
        )
    overlap = max(line.overlap_ms for line in lines)
    yield (
        "error of overlap and of silence",
        f"{overlap:.1f} and {max(line.silence_ms for line in lines):.1f} ms",
        "",
        "",
    )


async def line_rows(clock: SystemClock) -> list[tuple[str, str, str, str]]:
    """The error on each kind of line, so many calls at a time, as a run prints it."""
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home))
        measured = [
            await measure_line(
                settings,
                f"{kind}:known",
                CallSetup(clock),
                parallel=PARALLEL,
                turns=LINE_TURNS,
            )
            for kind in LINES
        ]
    lines = [
        (item.line, item.turns, item.latency_p95_ms, item.latency_max_ms)
        for item in measured
        if item is not None
    ]
    errors = await measure_phone(clock, PARALLEL)
    name = f"phone with a stall of 0.8 s, {PARALLEL} at a time"
    lines.append((name, len(errors), percentile(errors, 0.95) or 0.0, max(errors)))
    return [
        (
            f"latency error by {name}, {turns} turns",
            f"p95 {p95:.1f}, max {worst:.1f} ms",
            f"p95 ≤ {MOST_OFF_MS} ms",
            met(p95 <= MOST_OFF_MS),
        )
        for name, turns, p95, worst in lines
    ]


async def count_false_barge_ins(clock: SystemClock) -> tuple[str, str, str, str]:
    """Calls in which nobody interrupts, until a thousand turns have been heard."""
    turns = false = seed = 0
    while turns < 1000:
        seed += 1
        for line in await calibrate(CallSetup(clock), turns=TURNS, seed=seed):
            turns, false = turns + line.turns, false + line.false_barge_ins
    return f"false barge-ins in {turns} turns", str(false), "0", met(false == 0)


async def hold_short_call(clock: SystemClock, *, is_live: bool) -> tuple[float, float]:
    """Two turns, about six seconds of content (speech of both, and the agent's pauses): how
    long it was, and how long it took.
    """
    (scenario,) = parse_scenarios(SHORT_CALL)
    answers = [
        AgentAnswer("From eight to five.", delay_s=0.3),
        AgentAnswer("Goodbye!", ends_call=True, delay_s=0.3),
    ]
    pace = TickPace(clock, is_live=is_live)
    end = TextAgentConnection(_Answers(answers), ToneVoice(350), pace, kind="audio")
    began = time.perf_counter()
    record = await run_call(
        CallRig(ToneVoice(), pace),
        end,
        ScriptedCall(Caller(scenario, scenario.calls[0], 1), scenario),
    )
    return sum(span.seconds for span in record.spans) + 0.7, time.perf_counter() - began


class _Answers:
    def __init__(self, answers: list[AgentAnswer]) -> None:
        self._answers = answers

    async def start(self, dial: object) -> list[AgentAnswer]:
        return [AgentAnswer("Hello.", delay_s=0.1)]

    async def respond(self, text: str) -> list[AgentAnswer]:
        return [self._answers.pop(0)] if self._answers else []

    async def press(self, digits: str) -> list[AgentAnswer]:
        return []

    async def idle(self, seconds: int) -> list[AgentAnswer]:
        return []

    async def hang_up(self) -> None:
        return


async def find_planted(clock: SystemClock) -> Iterator[tuple[str, str, str, str]]:
    library = {scenario.name: scenario for scenario in list_scenarios()}
    found = blamed = findings = alarms = 0
    for planted in FAULTS:
        scored = await run_once(
            library[planted.scenario],
            practice_target(CallSetup(clock), (planted.name,)),
            SuiteParts(clock),
        )
        seen = [finding for finding in scored.findings if finding.severity != "info"]
        found += any(finding.kind == planted.finding for finding in seen)
        findings, blamed = (
            findings + len(seen),
            blamed + sum(finding.who == planted.who for finding in seen),
        )
    for scenario in library.values():
        alarms += len(
            (
                await run_once(
                    scenario, practice_target(CallSetup(clock)), SuiteParts(clock)
                )
            ).bugs
        )
    count, of_right = len(FAULTS), blamed / findings
    return iter(
        [
            (
                f"planted faults found, {count} kinds",
                f"{found} ({found / count:.0%})",
                "≥ 95 %",
                met(found / count >= 0.95),
            ),
            (
                f"findings blamed on the right side, of {findings}",
                f"{of_right:.1%}",
                "≥ 98 %",
                met(of_right >= 0.98),
            ),
            (
                f"bugs reported of a sound agent in {len(library)} scenarios",
                str(alarms),
                "0",
                met(alarms == 0),
            ),
        ]
    )


async def blame_everywhere(clock: SystemClock) -> tuple[str, str, str, str]:
    right = findings = 0
    for planted in FAULTS:
        for scenario in list_scenarios():
            scored = await run_once(
                scenario,
                practice_target(CallSetup(clock), (planted.name,)),
                SuiteParts(clock),
            )
            seen = [
                finding for finding in scored.findings if finding.severity != "info"
            ]
            findings, right = (
                findings + len(seen),
                right + sum(finding.who == planted.who for finding in seen),
            )
    return (
        f"the same, every fault in every scenario, of {findings}",
        f"{right / findings:.1%}",
        "≥ 98 %",
        met(right / findings >= 0.98),
    )


async def run_library(clock: SystemClock) -> tuple[str, str, str, str]:
    began = time.perf_counter()
    scored = await run_suite(
        list_scenarios()[:SCENARIOS],
        practice_target(CallSetup(clock)),
        SuiteParts(clock),
        runs=RUNS,
    )
    took = time.perf_counter() - began
    talk = sum(record.duration_s for item in scored for record in item.records)
    return (
        f"{SCENARIOS} scenarios × {RUNS} runs, {talk / 60:.0f} min of talk, lab pace",
        f"{took:.1f} s",
        "≤ 60 s",
        met(took <= 60),
    )


async def run_all(clock: SystemClock) -> tuple[str, str, str, str]:
    scenarios = list_scenarios()
    began = time.perf_counter()
    await run_suite(scenarios, practice_target(CallSetup(clock)), SuiteParts(clock))
    took = time.perf_counter() - began
    what = f"`-s all`, {len(scenarios)} scenarios, lab pace"
    return what, f"{took:.1f} s", "≤ 15 s", met(took <= 15)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matrix", action="store_true")
    clock = SystemClock()
    parser.add_argument("--langwatch", default="", metavar="PYTHON|install")
    parser.add_argument("--strangers", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--names", action="store_true")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    if given.strangers:
        strangers = await judge_strangers(
            clock, given.strangers, shows_names=given.names, saves=given.save
        )
        print_table(
            "Agents that strangers wrote", ("what", "measured", "aim", ""), strangers
        )
        return
    rows = list(calibration_rows(await calibrate(CallSetup(clock), turns=TURNS)))
    rows += await line_rows(clock)
    rows.append(await count_false_barge_ins(clock))
    for pace, limit in (("real", 8.0), ("lab", 1.0)):
        content, took = await hold_short_call(clock, is_live=pace == "real")
        rows.append(
            (
                f"two-turn call with {content:.1f} s of content, {pace} pace",
                f"{took:.2f} s",
                f"≤ {limit:g} s",
                met(took <= limit),
            )
        )
    rows += list(await find_planted(clock))
    rows += [await blame_everywhere(clock)] if given.matrix else []
    rows += [await run_all(clock), await run_library(clock)]
    print_table("The tester", ("what", "measured", "aim", ""), rows)
    print_table(
        "Latency of one known agent, as reported",
        COLUMNS,
        await compare_latency(given.langwatch),
    )


if __name__ == "__main__":
    asyncio.run(main())
