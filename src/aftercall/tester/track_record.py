"""How often findings were right about agents that strangers wrote: printed with every report.

`bench/bench_tester.py --strangers FOLDER… --save` writes `track_record.json`. Nobody who wrote
those agents had read the tester.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from aftercall.tester.statistics import speak_rate


@dataclass(frozen=True)
class TrackRecord:
    """Counts of agents; `kinds` has for each kind of bug: right, and reported."""

    faults: int
    found: int
    correct: int
    accused: int
    kinds: dict[str, tuple[int, int]]

    @property
    def sentence(self) -> str:
        found = f"{self.found} of {self.faults} faults found"
        accused = f"{self.accused} of {self.correct} correct ones accused"
        return f"on agents that strangers wrote: {found}, {accused}"

    def speak_kind(self, kind: str) -> str:
        """How often such a bug was right."""
        right, reported = self.kinds.get(kind, (0, 0))
        if not reported:
            return "not yet seen in an agent that a stranger wrote"
        agents = f"{right} of {reported} agents that strangers wrote"
        return f"right for {agents}, {speak_rate(right, reported)}"


@cache
def load_track_record() -> TrackRecord:
    path = files("aftercall.tester") / "track_record.json"
    data = json.loads(path.read_text("utf-8"))
    kinds = {name: (right, seen) for name, (right, seen) in data["kinds"].items()}
    counts = {name: data[name] for name in ("faults", "found", "correct", "accused")}
    return TrackRecord(**counts, kinds=kinds)
