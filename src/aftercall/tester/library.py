"""Where scenarios come from: your folder, the library that comes with Aftercall, or a call."""

import difflib
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from aftercall.errors import ScenarioRefused, UnknownTestName
from aftercall.model.calls import Call
from aftercall.tester.phrases import asked_fields, questions_of
from aftercall.tester.redact import Redactor
from aftercall.tester.scenario import Scenario
from aftercall.tester.scenario_file import load_scenarios

DEFAULT = "appointment_scheduling"


def library_folder() -> Path:
    return Path(str(files("aftercall.tester") / "library"))


@dataclass(frozen=True)
class FoundScenarios:
    """Scenarios, and the files that were refused."""

    scenarios: list[Scenario]
    refused: list[ScenarioRefused]


def list_scenarios() -> list[Scenario]:
    """The library's scenarios, by name."""
    return read_folders(library_folder()).scenarios


def read_folders(*folders: Path) -> FoundScenarios:
    """By name; a later folder overrides earlier ones. A refused file overrides nothing."""
    scenarios: dict[str, Scenario] = {}
    refused: list[ScenarioRefused] = []
    for folder in folders:
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
            try:
                scenarios |= {
                    scenario.name: scenario for scenario in load_scenarios(path)
                }
            except ScenarioRefused as refusal:
                refused.append(refusal)
    return FoundScenarios([scenarios[name] for name in sorted(scenarios)], refused)


def find_scenarios(names: list[str], folder: Path | None = None) -> FoundScenarios:
    """By name, file or folder; `all` is everything, an empty list the default scenario."""
    chosen: list[Scenario] = []
    refused: list[ScenarioRefused] = []
    known: FoundScenarios | None = None
    for name in names or [DEFAULT]:
        if Path(name).is_dir() and "/" in name:
            there = read_folders(Path(name))
            chosen += there.scenarios
            refused += there.refused
        elif name.endswith((".yaml", ".yml")) or "/" in name:
            try:
                chosen += load_scenarios(Path(name))
            except ScenarioRefused as refusal:
                refused.append(refusal)
        else:
            if known is None:
                known = read_folders(library_folder(), *([folder] if folder else []))
                refused += known.refused
            chosen += known.scenarios if name == "all" else [_pick(name, known)]
    return FoundScenarios(chosen, refused)


def _pick(name: str, known: FoundScenarios) -> Scenario:
    for refusal in known.refused:
        if Path(refusal.source).stem == name:
            raise refusal
    for scenario in known.scenarios:
        if scenario.name == name:
            return scenario
    close = difflib.get_close_matches(
        name, [scenario.name for scenario in known.scenarios], n=1
    )
    hint = (
        f"did you mean {close[0]!r}?"
        if close
        else "`aftercall test list` shows them all"
    )
    raise UnknownTestName(f"there is no scenario {name!r}; {hint}")


_SAFE = re.compile(r"[^A-Za-z0-9_-]+")
_HOW_TO_GO_ON = """\
# Say what should have happened: `expect:` below a turn, or a goal with what shows it.
# goal: What the caller wanted.
# success:
#   - judged: The appointment is booked for Tuesday at ten.
#     deed: book
#     details: [tuesday, ten]
# probes:                       # what was really done, asked of your own system
#   - {name: appointments, http: "http://127.0.0.1:3000/appointments", grows_by: 1}"""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ,.'-]*")


def scenario_yaml(
    call: Call, *, name: str = "", redactor: Redactor | None = None
) -> str:
    """A recorded call as a scenario file: what the caller said becomes a list of turns.

    Names, numbers and dates of birth are replaced unless the redactor is off.
    """
    clean = (redactor or Redactor()).clean
    title = name or "from_call_" + _SAFE.sub("_", call.id).lower()
    turns = [clean(text) for text in _caller_turns(call)]
    first = turns[0] if turns else clean("say nothing")
    agent_texts = [turn.text for turn in call.turns if turn.speaker == "agent"]
    questions = sum(len(questions_of(text)) for text in agent_texts)
    asked = sorted({field for text in agent_texts for field in asked_fields(text)})
    lines = [
        f"name: {title[:80]}",
        f"description: {_quote(f'From the call {call.id} of {call.started_at:%Y-%m-%d}.')}",
        "test_type: edge",
        "caller_context:",
        "  background: " + _quote(f"As in the call: {first[:120]}"),
        '  number: "+15550199"',
        "turns:",
        *(f"  - say: {_quote(text)}" for text in turns),
        *(() if turns else ("  - silence: 5",)),
        "limits:",
        f"  max_turns: {max(20, 4 * len(call.turns))}",
        f"# The agent asked {questions} questions, for: {', '.join(asked) or 'nothing'}.",
        _HOW_TO_GO_ON,
    ]
    return "\n".join(lines) + "\n"


def _caller_turns(call: Call) -> list[str]:
    """Joins what the recogniser split: everything until the agent speaks is one turn."""
    joined: list[str] = []
    last = ""
    for turn in call.turns:
        text = " ".join(turn.text.split())
        if turn.speaker == "caller" and text:
            if last == "caller":
                joined[-1] += f" {text}"
            else:
                joined.append(text)
        last = turn.speaker
    return joined


def _quote(text: str) -> str:
    if _PLAIN.fullmatch(text) and not text[-1].isspace():
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
