"""Where scenarios are found: a folder of your own first, then the library that comes with Aftercall."""

import difflib
from importlib.resources import files
from pathlib import Path

from aftercall.errors import NotFound
from aftercall.tester.forms import load_scenarios
from aftercall.tester.scenario import Scenario

DEFAULT = "appointment_scheduling"


def library_folder() -> Path:
    return Path(str(files("aftercall.tester") / "library"))


def list_scenarios(folder: Path | None = None) -> list[Scenario]:
    """By name; one of your own hides the library's of the same name. The first file that does not fit is refused."""
    found: dict[str, Scenario] = {}
    for place in (library_folder(), folder):
        if place is None or not place.is_dir():
            continue
        for path in sorted([*place.glob("*.yaml"), *place.glob("*.yml")]):
            found |= {scenario.name: scenario for scenario in load_scenarios(path)}
    return [found[name] for name in sorted(found)]


def find_scenarios(names: list[str], folder: Path | None = None) -> list[Scenario]:
    """By name or by file; `all` is everything, nothing is the default scenario."""
    if not names:
        names = [DEFAULT]
    chosen: list[Scenario] = []
    known: list[Scenario] | None = None
    for name in names:
        if name.endswith((".yaml", ".yml")) or "/" in name:
            chosen += load_scenarios(Path(name))
            continue
        known = known if known is not None else list_scenarios(folder)
        chosen += known if name == "all" else [_pick(name, known)]
    return chosen


def _pick(name: str, known: list[Scenario]) -> Scenario:
    for scenario in known:
        if scenario.name == name:
            return scenario
    close = difflib.get_close_matches(name, [scenario.name for scenario in known], n=1)
    hint = f"did you mean {close[0]!r}?" if close else "`aftercall test list` shows them all"
    raise NotFound(f"there is no scenario {name!r}; {hint}")
