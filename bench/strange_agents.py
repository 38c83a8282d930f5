"""Agents that strangers wrote, as a test of the tester: faulty ones and correct ones.

A folder has one Python file per agent:

    SCENARIO = "appointment_scheduling"     # of the library
    CAUSE = "agent"                         # who is to blame: agent, line, tester; "" if correct

    def make():                             # a fresh agent for every call
        def agent(text): ...                # what `python:module:function` takes
        return agent
"""

import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from aftercall.clock import Clock
from aftercall.tester import statistics
from aftercall.tester.drivers.text_agent import CallableAgent
from aftercall.tester.library import list_scenarios
from aftercall.tester.score import ScenarioScore
from aftercall.tester.suite import SuiteParts, run_once
from aftercall.tester.target import AgentTarget, CallSetup
from tables import met

Row = tuple[str, str, str, str]
TRACK_RECORD = Path(statistics.__file__).with_name("track_record.json")


def load(folder: Path) -> Iterator[ModuleType]:
    for path in sorted(folder.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"strange_{path.stem}", path)
        if spec is None or spec.loader is None:
            continue
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if hasattr(module, "make"):
            yield module


def is_right(cause: str, scored: ScenarioScore) -> bool:
    """The agent's fault is a bug; a fault of the line or the tester is named and is no bug."""
    if cause == "agent":
        return scored.verdict == "failed"
    named = any(finding.who == cause for finding in scored.findings)
    return named and not scored.bugs


async def judge_strangers(
    clock: Clock, folders: Sequence[Path], *, shows_names: bool, saves: bool
) -> list[Row]:
    """Totals only, unless names are asked for: a set that stays unread stays a proof.

    `saves`: the totals become the track record that reports print.
    """
    right = faults = accused = correct = left_open = 0
    kinds: dict[str, list[int]] = {}
    for module in (module for folder in folders for module in load(folder)):
        scored = await judge_stranger(clock, module)
        is_open = scored.verdict not in ("passed", "failed")
        for kind in {item.kind for item in scored.bugs}:
            count = kinds.setdefault(kind, [0, 0])
            count[0] += module.CAUSE == "agent"
            count[1] += 1
        if module.CAUSE:
            faults += 1
            is_wrong = not is_right(module.CAUSE, scored)
            right += not is_wrong
        else:
            correct += 1
            is_wrong = bool(scored.bugs)
            accused += is_wrong
            left_open += is_open
        if shows_names and (is_wrong or (is_open and not module.CAUSE)):
            named = ", ".join(f"{item.kind} ({item.who})" for item in scored.findings)
            print(f"  {module.__name__}: {scored.verdict}; {named or scored.reason}")
    if saves:
        counts = {"faults": faults, "found": right, "correct": correct}
        record = counts | {"accused": accused, "kinds": dict(sorted(kinds.items()))}
        TRACK_RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    share, false = right / max(1, faults), accused / max(1, correct)
    found = f"strangers' faults found and rightly blamed, of {faults}"
    blamed = f"strangers' correct agents accused, of {correct}"
    undecided = f"strangers' correct agents left open, of {correct}"
    return [
        (found, f"{right} ({share:.0%})", "≥ 92 %", met(share >= 0.92)),
        (blamed, f"{accused} ({false:.0%})", "≤ 2 %", met(false <= 0.02)),
        (undecided, f"{left_open} ({left_open / max(1, correct):.0%})", "", ""),
    ]


async def judge_stranger(clock: Clock, module: ModuleType) -> ScenarioScore:
    library = {scenario.name: scenario for scenario in list_scenarios()}
    target = AgentTarget.of_agent(
        module.__name__,
        CallSetup(clock),
        lambda: CallableAgent(module.make()),
    )
    # a function needs no time to remember; pauses between calls would take minutes
    hasty = replace(target, keeps_time=False)
    return await run_once(library[module.SCENARIO], hasty, SuiteParts(clock))
