"""Where scenarios are found: a folder of your own first, then the library that comes with
Aftercall.
"""

import difflib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from aftercall.errors import NotFound, ScenarioRefused
from aftercall.tester.forms import load_scenarios
from aftercall.tester.scenario import Scenario

DEFAULT = "appointment_scheduling"


def library_folder() -> Path:
    return Path(str(files("aftercall.tester") / "library"))


@dataclass(frozen=True)
class FoundScenario:
    """The scenarios of a choice, and the files that were refused on the way."""

    scenarios: list[Scenario]
    refused: list[ScenarioRefused]


def list_scenarios() -> list[Scenario]:
    """The library's own, by name."""
    return read_folders(library_folder()).scenarios


def read_folders(*folders: Path) -> FoundScenario:
    """By name; a later folder hides what earlier ones have under the same name.

    A file that does not fit hides no other.
    """
    scenarios: dict[str, Scenario] = {}
    refused: list[ScenarioRefused] = []
    for folder in folders:
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
            try:
                scenarios |= {scenario.name: scenario for scenario in load_scenarios(path)}
            except ScenarioRefused as refusal:
                refused.append(refusal)
    return FoundScenario([scenarios[name] for name in sorted(scenarios)], refused)


def find_scenarios(names: list[str], folder: Path | None = None) -> FoundScenario:
    """By name, file or folder; `all` is everything, nothing is the default scenario."""
    chosen: list[Scenario] = []
    refused: list[ScenarioRefused] = []
    known: FoundScenario | None = None
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
    return FoundScenario(chosen, refused)


def _pick(name: str, known: FoundScenario) -> Scenario:
    for refusal in known.refused:
        if Path(refusal.source).stem == name:
            raise refusal
    for scenario in known.scenarios:
        if scenario.name == name:
            return scenario
    close = difflib.get_close_matches(name, [scenario.name for scenario in known.scenarios], n=1)
    hint = f"did you mean {close[0]!r}?" if close else "`aftercall test list` shows them all"
    raise NotFound(f"there is no scenario {name!r}; {hint}")
