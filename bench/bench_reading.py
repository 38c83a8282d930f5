"""How well the reader by rules reads our labelled calls: the half its rules were written against, and the half kept unread.

python bench/bench_reading.py [FOLDER]

Keep it so: read the first half of the folder, never the second, when a rule is to be changed.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.calls import parse_call
from scoring import Score
from tables import met, print_table

FOLDER = Path(__file__).parent / "calls"


def score(files: Iterable[Path]) -> Score:
    reader, total = RulesReader(), Score()
    for file in files:
        labelled = json.loads(file.read_text())
        total.add(labelled["gold"], reader.read(parse_call(labelled["call"])))
    return total


def figures(total: Score) -> list[tuple[str, float, float, bool]]:
    """Name, measured, aim, and whether more is better."""
    leaked = total.counts["withdrawn leaked"] / max(1, total.counts["withdrawn told"])
    return [
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


def main(folder: Path) -> None:
    files = sorted(folder.glob("*[0-9].json"))
    half = len(files) // 2
    read, unread = figures(score(files[:half])), figures(score(files[half:]))
    print_table(
        f"The reader by rules on {len(files)} labelled calls",
        ["", "read", "kept unread", "aim", ""],
        [
            [name, f"{seen:.2f}", f"{value:.2f}", f"{'≥' if more else '≤'} {aim:g}", met(value >= aim if more else value <= aim)]
            for (name, seen, _, _), (_, value, aim, more) in zip(read, unread, strict=True)
        ],
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
