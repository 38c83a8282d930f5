"""How well the reader by rules reads labelled calls.

    python bench/bench_reading.py              our own calls, which its models were trained on
    python bench/bench_reading.py PATH …       any labelled calls, as files or folders of them
    python bench/bench_reading.py --ablate     each pattern of acts.toml switched off in turn

What unmet calls will give is lower: see docs/reference/figures.md. A pattern that helps only the
calls it was written for goes.
"""

import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

from aftercall.evaluation import Score
from aftercall.llm.rules import acts
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.calls import parse_call
from tables import met, print_table

FOLDER = Path(__file__).parent / "calls"
Figure = tuple[str, float, float, bool]


def gather(paths: Iterable[Path]) -> list[Path]:
    """The labelled calls under the paths; a path without any is an error, not a call read well."""
    files: list[Path] = []
    for path in paths:
        found = sorted(path.glob("*[0-9].json")) if path.is_dir() else [path]
        if not found or not all(file.is_file() for file in found):
            raise SystemExit(
                f"{path}: no labelled calls here; give files or folders of `{{call, gold}}` "
                "files named like B001.json"
            )
        files += found
    return files


def score(files: Iterable[Path]) -> Score:
    reader, total = RulesReader(), Score()
    for file in files:
        labelled = json.loads(file.read_text())
        if not isinstance(labelled, dict) or not {"call", "gold"} <= labelled.keys():
            raise SystemExit(f"{file}: not a labelled call; it needs `call` and `gold`")
        total.add(labelled["gold"], reader.read(parse_call(labelled["call"])))
    return total


def figures(total: Score) -> list[Figure]:
    """Name, measured, aim, and whether more is better."""
    return [
        (
            "requests, precision",
            total["requests, precision"].share,
            0.85,
            True,
        ),
        ("requests, recall", total["requests, recall"].share, 0.60, True),
        (
            "due day right, of those found",
            total["due day right"].share,
            0.90,
            True,
        ),
        (
            "called-off requests in the output",
            1 - total["called off and left out"].share,
            0.05,
            False,
        ),
        ("promises, F1", total.f1("promises"), 0.80, True),
        ("facts, precision", total["facts, precision"].share, 0.80, True),
        ("facts, recall", total["facts, recall"].share, 0.55, True),
        (
            "secrets marked secret",
            total["secrets marked secret"].share,
            1.0,
            True,
        ),
        ("profile, precision", total["profile, precision"].share, 0.95, True),
        ("profile, recall", total["profile, recall"].share, 0.85, True),
        (
            "forbidden strings",
            float(total["forbidden strings left out"].wrong),
            2.0,
            False,
        ),
    ]


def print_figures(columns: dict[str, list[Path]]) -> None:
    """The verdict is on the last column; a figure that nothing was counted for is not met."""
    measured = [figures(score(files)) for files in columns.values()]
    rows = []
    for line in zip(*measured, strict=True):
        name, value, aim, more = line[-1]
        shown = [
            f"{figure:.2f}" if math.isfinite(figure) else "nothing told"
            for _, figure, _, _ in line
        ]
        rows.append(
            [
                name,
                *shown,
                f"{'≥' if more else '≤'} {aim:g}",
                met(value >= aim if more else value <= aim),
            ]
        )
    heads = [f"{name} ({len(files)})" for name, files in columns.items()]
    print_table("The reader by rules on labelled calls", ["", *heads, "aim", ""], rows)


def ablate(files: list[Path]) -> None:
    """Requests lost and won when one pattern is switched off; nothing of either is dead weight."""
    load = acts.load_table
    whole = score(files)
    rows = []
    for speaker in ("caller", "agent"):
        table = load(speaker)
        for row in table:
            rest = tuple(other for other in table if other is not row)
            tables = {"caller": load("caller"), "agent": load("agent"), speaker: rest}
            with patch.object(acts, "load_table", tables.__getitem__):
                part = score(files)
            kept, told = (each["requests, precision"] for each in (part, whole))
            hits = kept.right - told.right
            made_up = kept.wrong - told.wrong
            pattern = row[2].pattern[13:73]
            rows.append([row[0], f"{hits:+}", f"{made_up:+}", pattern])
    print_table("One pattern less", ["act", "right", "wrong", "pattern"], rows)


def main(paths: list[Path]) -> None:
    if paths == [Path("--ablate")]:
        ablate(gather([FOLDER]))
        return
    if paths:
        print_figures({"calls": gather(paths)})
        return
    print_figures({"trained on": gather([FOLDER])})


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
