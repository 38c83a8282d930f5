"""How fast the reader by rules is, and how well it reads.

    python bench/bench_rules.py                        time to read a synthetic call of 40 turns
    python bench/bench_rules.py CALLS_DIR SCORER.py    and the figures of both halves of a
    folder of labelled calls

A labelled call is a JSON file `{"call": …, "gold": …}`; the scorer is run as `SCORER DIR
--predictions PREDICTIONS --json`.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.calls import Call, parse_call

EXCHANGES = (
    (
        "Bridge Street Cycles, good morning.",
        "Hi, this is Ottilie Marsh. I'd like to book my bike in for a service.",
    ),
    (
        "Of course. Which day suits you?",
        "Friday, if you can. No wait, Saturday, I work Fridays.",
    ),
    (
        "Saturday at ten?",
        (
            "Yes please. It's a 2019 touring bike with hydraulic brakes, and the rear one keeps "
            "squealing."
        ),
    ),
    (
        "I'll note the rear brake. Anything else?",
        (
            "Could you order me two inner tubes, and remind me the day before? Actually forget "
            "the tubes."
        ),
    ),
    (
        "All right. We'll text you on Friday.",
        "Great, texts are best for me. My sister Lena picks it up, she's got a key.",
    ),
)
# no round repeats another
THINGS = (
    ("bike", "Saturday"),
    ("tandem", "Sunday"),
    ("scooter", "Monday"),
    ("trailer", "Tuesday"),
)
READS = 200


def synthetic_call(turns: int = 40) -> Call:
    at = datetime(2026, 3, 3, 15, tzinfo=UTC)
    rounds = [THINGS[number % len(THINGS)] for number in range(turns // 10)]
    spoken = [
        line.replace("bike", thing).replace("Saturday", day)
        for thing, day in rounds
        for exchange in EXCHANGES
        for line in exchange
    ]
    listed = [
        {
            "speaker": ("agent", "caller")[number % 2],
            "text": text,
            "at": (at + timedelta(seconds=6 * number)).isoformat(),
        }
        for number, text in enumerate(spoken)
    ]
    ended_at = at + timedelta(seconds=6 * len(listed))
    return parse_call(
        {
            "source": "bench",
            "sid": "B1",
            "started_at": at.isoformat(),
            "ended_at": ended_at.isoformat(),
            "turns": listed,
        }
    )


def time_reads(call: Call, clock: Callable[[], float]) -> list[float]:
    reader = RulesReader()
    # the first read looks up which words each pattern needs, and lists the zones
    reader.read(call)
    times = []
    for _ in range(READS):
        start = clock()
        reader.read(call)
        times.append((clock() - start) * 1000)
    return sorted(times)


def score(files: Iterable[Path], scorer: Path) -> dict[str, Any]:
    reader = RulesReader()
    with tempfile.TemporaryDirectory() as folder:
        half, predictions = Path(folder, "half"), Path(folder, "predictions")
        half.mkdir()
        predictions.mkdir()
        for path in files:
            shutil.copy(path, half)
            reading = reader.read(parse_call(json.loads(path.read_text())["call"]))
            (predictions / path.name).write_text(reading.model_dump_json())
        command = [
            sys.executable,
            str(scorer),
            str(half),
            "--predictions",
            str(predictions),
            "--json",
        ]
        figures: dict[str, Any] = json.loads(
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
        )
    return figures


def flatten(figures: dict[str, Any]) -> dict[str, str]:
    return {
        key: " / ".join(
            f"{name} {value[name]}"
            for name in ("precision", "recall", "f1")
            if name in value
        )
        if isinstance(value, dict)
        else str(value)
        for key, value in figures.items()
    }


def print_times(console: Console) -> None:
    table = Table(
        "reading a call of 40 turns",
        "ms",
        "of them on the processor",
        title="The reader by rules",
    )
    waited, worked = (
        time_reads(synthetic_call(), clock)
        for clock in (time.perf_counter, time.process_time)
    )
    table.add_row(
        "median", f"{statistics.median(waited):.1f}", f"{statistics.median(worked):.1f}"
    )
    table.add_row(
        "95th percentile",
        *(f"{times[int(len(times) * 0.95)]:.1f}" for times in (waited, worked)),
    )
    console.print(table)


def print_scores(console: Console, folder: Path, scorer: Path) -> None:
    files = sorted(folder.glob("[A-Z]*[0-9].json"))
    if len(files) < 2:
        raise SystemExit(f"{folder}: no labelled calls to score")
    halves = [flatten(score(files[1::2], scorer)), flatten(score(files[::2], scorer))]
    table = Table(
        "figure", "every second call", "the others", title="Read against labels"
    )
    for key in halves[0]:
        table.add_row(key, *(half[key] for half in halves))
    console.print(table)


def main() -> None:
    console = Console()
    print_times(console)
    if len(sys.argv) == 3:
        print_scores(console, Path(sys.argv[1]), Path(sys.argv[2]))


if __name__ == "__main__":
    main()
