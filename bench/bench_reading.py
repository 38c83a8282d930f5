"""How well the reader by rules reads our labelled calls.

python bench/bench_reading.py [FOLDER]
"""

import json
import sys
from pathlib import Path

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.calls import parse_call
from scoring import Score
from tables import met, print_table

FOLDER = Path(__file__).parent / "calls"


def score(folder: Path) -> tuple[int, Score]:
    reader, total = RulesReader(), Score()
    files = sorted(folder.glob("*.json"))
    for file in files:
        labelled = json.loads(file.read_text())
        total.add(labelled["gold"], reader.read(parse_call(labelled["call"])))
    return len(files), total


def main(folder: Path) -> None:
    calls, total = score(folder)
    leaked = total.counts["withdrawn leaked"] / max(1, total.counts["withdrawn told"])
    rows = [
        ("requests, F1", total.f1("requests"), 0.80, True),
        ("due day right, of those found", total.share("due right", "due of"), 0.90, True),
        ("called-off requests in the output", leaked, 0.05, False),
        ("promises, F1", total.f1("promises"), 0.80, True),
        ("facts, precision", total.share("facts sound", "facts found"), 0.80, True),
        ("facts, recall", total.share("facts hit", "facts told"), 0.55, True),
        ("secrets marked secret", total.share("secrets marked", "secrets told"), 1.0, True),
        ("profile, precision", total.share("profile hit", "profile found"), 0.97, True),
        ("profile, recall", total.share("profile hit", "profile told"), 0.85, True),
        ("forbidden strings", float(total.counts["forbidden"]), 2.0, False),
    ]
    print_table(
        f"The reader by rules on {calls} labelled calls",
        ["", "measured", "aim", ""],
        [
            [name, f"{value:.2f}", f"{'≥' if more else '≤'} {aim:g}", met(value >= aim if more else value <= aim)]
            for name, value, aim, more in rows
        ],
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
