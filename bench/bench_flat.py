"""What a call costs as the store grows: calls are handed in to one `aftercall serve` on SQLite,
and the same figures are taken at several sizes.

python bench/bench_flat.py [--sizes 500 1000 2500 5000] [--idle 20]
python bench/bench_flat.py --full 20000

With `--full`, two servers run beside each other, one on an empty store and one on a store with so
many calls, and ten facts a call, that were written into its database in bulk. The same new callers
call both in turns, so that a busy machine slows both.

Processor time, memory and descriptors are those that Linux counts for the server. A caller
calls five times. The reconnect window is a second, so follow-up work is part of it; finished
workflows are removed after ten seconds instead of a day, so that their removal is seen here.
While idle, `/metrics` is read every five seconds, as a monitoring server would.
"""

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from aftercall.db.connect import Database
from aftercall.db.upgrade import prepare_database
from aftercall.model.calls import encode_call
from bench_idle import address_in, get, process
from fakes import make_call
from full_house import House
from tables import met, print_table

CALLS_A_CALLER = 5
MAX_GROWTH = 1.1
MAX_IDLE = 0.02
SCRAPE_S = 5.0
CATCH_UP_S = 900.0
OPENING = 200  # calls before the first figure: what is loaded once is loaded by then
FACTS_A_CALL = 10
NEW_CALLERS = 1_000_000  # numbers from here on belong to nobody in the filled store
WINDOW, WINDOWS = 100, 4
TOWNS = ("Graz", "Leeds", "Turin", "Lyon", "Ghent", "Porto", "Bergen")
THINGS = ("sink", "boiler", "gate", "roof", "lift", "fence", "oven", "heating")
OPTIONS = {
    "AFTERCALL_RECONNECT_WINDOW_S": "1",
    "AFTERCALL_MODEL": "rules",
    "AFTERCALL_RETENTION_WORKFLOWS_HOURS": "0.003",
}


@dataclass(frozen=True)
class Sample:
    calls: int
    cpu_s: float
    rss_mb: float
    descriptors: int
    idle: float
    page_s: float
    metrics_s: float
    database: int
    engine: int
    engine_rows: int
    workspace: int
    archive: int
    tables: dict[str, int]


def make_body(number: int) -> bytes:
    caller = number // CALLS_A_CALLER
    town, thing = TOWNS[number % len(TOWNS)], THINGS[number % len(THINGS)]
    said = (
        ("agent", "Hello, this is Wren."),
        ("caller", f"Hi, it's Bill Harker. I live in {town}, flat {number}."),
        ("agent", "What can I do for you?"),
        ("caller", f"Please call the plumber about the kitchen {thing}."),
        ("agent", "I will call the plumber."),
        ("caller", "Thank you, bye."),
    )
    began = datetime.now(UTC) - timedelta(minutes=2)
    return encode_call(make_call(said, caller=f"+1555{caller:07}", started_at=began))


def cpu_seconds(pid: int) -> float:
    """Of the server and the children that read calls for it."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(stat.parent.name) == pid or int(fields[1]) == pid:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def read_rss_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line[:6] == "VmRSS:") / 1024


def wait_until_done(address: str) -> None:
    """Until no call has unfinished work."""
    until = time.monotonic() + CATCH_UP_S
    while time.monotonic() < until:
        if "aftercall_oldest_pending_seconds 0.0" in get(f"{address}/metrics"):
            return
        time.sleep(2.0)
    raise SystemExit(f"not caught up within {CATCH_UP_S:g} s")


def timed(url: str) -> float:
    begun = time.perf_counter()
    get(url)
    return time.perf_counter() - begun


def watch_idle(pid: int, address: str, seconds: float) -> float:
    begun, before = time.monotonic(), cpu_seconds(pid)
    while time.monotonic() < begun + seconds:
        get(f"{address}/metrics")
        time.sleep(SCRAPE_S)
    return (cpu_seconds(pid) - before) / (time.monotonic() - begun)


def count_folder(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def count_tables(file: Path) -> dict[str, int]:
    """Bytes of each table and index; free pages are not among them."""
    query = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name"
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
        return dict(connection.execute(query).fetchall())


def count_workflows(file: Path) -> int:
    query = """
        SELECT (SELECT count(*) FROM workflow_status)
             + (SELECT count(*) FROM operation_outputs)
    """
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
        return int(connection.execute(query).fetchone()[0])


def take_samples(
    pid: int, address: str, home: Path, sizes: list[int], idle_s: float
) -> Iterator[Sample]:
    numbers = count()
    for _ in range(OPENING):
        get(f"{address}/api/calls", make_body(next(numbers)))
    wait_until_done(address)
    done = OPENING
    for size in sizes:
        before = cpu_seconds(pid)
        for _ in range(size - done):
            get(f"{address}/api/calls", make_body(next(numbers)))
        wait_until_done(address)
        cost = (cpu_seconds(pid) - before) / (size - done)
        done = size
        page_s, metrics_s = timed(address + "/"), timed(address + "/metrics")
        time.sleep(idle_s)
        idle = watch_idle(pid, address, idle_s)
        yield Sample(
            calls=size,
            cpu_s=cost,
            rss_mb=read_rss_mb(pid),
            descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())),
            idle=idle,
            page_s=page_s,
            metrics_s=metrics_s,
            database=(home / "aftercall.db").stat().st_size,
            engine=(home / "work.db").stat().st_size,
            engine_rows=count_workflows(home / "work.db"),
            workspace=count_folder(home / "workspace"),
            archive=count_folder(home / "archive"),
            tables=count_tables(home / "aftercall.db"),
        )


def show(samples: list[Sample]) -> None:
    columns = [
        *("calls", "CPU a call", "RSS", "files", "idle", "page", "/metrics"),
        *("db/call", "engine/call", "rows", "md/call", "archive"),
    ]
    rows = [
        [
            f"{each.calls:,}",
            f"{each.cpu_s * 1000:.0f} ms",
            f"{each.rss_mb:.0f} MB",
            str(each.descriptors),
            f"{each.idle:.1%}",
            f"{each.page_s * 1000:.0f} ms",
            f"{each.metrics_s * 1000:.0f} ms",
            f"{each.database / each.calls:,.0f}",
            f"{each.engine / each.calls:,.0f}",
            f"{each.engine_rows:,}",
            f"{each.workspace / each.calls:,.0f}",
            f"{each.archive / each.calls:,.0f}",
        ]
        for each in samples
    ]
    print_table("What a call costs as the store grows (bytes a call)", columns, rows)


def judge(first: Sample, last: Sample) -> None:
    span = last.calls - first.calls
    names = sorted(last.tables, key=lambda name: -last.tables[name])[:14]
    grown = {name: last.tables[name] - first.tables.get(name, 0) for name in names}
    rows = [[name, f"{size / span:,.0f}"] for name, size in grown.items()]
    print_table("Bytes a call, the largest tables and indexes", ["table", ""], rows)
    cost, memory = last.cpu_s / first.cpu_s, last.rss_mb / first.rss_mb
    print_table(
        f"{first.calls:,} → {last.calls:,} calls",
        ["", "measured", "aim", ""],
        [
            ["CPU a call", f"{cost:.2f} ×", "≤ 1.1 ×", met(cost <= MAX_GROWTH)],
            ["RSS", f"{memory:.2f} ×", "≤ 1.1 ×", met(memory <= MAX_GROWTH)],
            ["idle", f"{last.idle:.1%}", "≤ 2 %", met(last.idle <= MAX_IDLE)],
        ],
    )


def measure(sizes: list[int], idle_s: float) -> None:
    with tempfile.TemporaryDirectory(prefix="aftercall-flat-") as folder:
        home = Path(folder)
        serve = ["-m", "aftercall", "serve", "--port", "0"]
        with process(serve, home, OPTIONS) as (pid, line):
            samples = []
            for sample in take_samples(pid, address_in(line), home, sizes, idle_s):
                samples.append(sample)
                show(samples)
    judge(samples[0], samples[-1])


@dataclass
class Side:
    """One of two servers that are compared."""

    name: str
    home: Path
    pid: int
    address: str
    cpu_s: float = 0.0

    def hand_in(self, numbers: range) -> None:
        before = cpu_seconds(self.pid)
        for number in numbers:
            get(f"{self.address}/api/calls", make_body(number))
        wait_until_done(self.address)
        self.cpu_s += cpu_seconds(self.pid) - before


def fill(home: Path, calls: int) -> None:
    database = Database(f"sqlite:///{home / 'aftercall.db'}")
    prepare_database(database)
    yesterday = datetime.now(UTC) - timedelta(days=1)
    House(calls * FACTS_A_CALL, newest=yesterday).fill(database)
    database.close()


def compare(full: int, idle_s: float) -> None:
    serve = ["-m", "aftercall", "serve", "--port", "0"]
    with (
        tempfile.TemporaryDirectory(prefix="aftercall-flat-") as empty_home,
        tempfile.TemporaryDirectory(prefix="aftercall-flat-") as full_home,
    ):
        fill(Path(full_home), full)
        with (
            process(serve, Path(empty_home), OPTIONS) as (empty_pid, empty_line),
            process(serve, Path(full_home), OPTIONS) as (full_pid, full_line),
        ):
            empty = Side("empty", Path(empty_home), empty_pid, address_in(empty_line))
            filled = Side(
                f"{full:,} calls", Path(full_home), full_pid, address_in(full_line)
            )
            sides = (empty, filled)
            first = NEW_CALLERS * CALLS_A_CALLER
            for side in sides:
                side.hand_in(range(first, first + OPENING))
                side.cpu_s = 0.0
            first += OPENING
            for turn in range(WINDOWS):
                begins = first + turn * WINDOW
                for side in sides[:: 1 if turn % 2 else -1]:
                    side.hand_in(range(begins, begins + WINDOW))
            time.sleep(idle_s)
            show_sides(empty, filled, idle_s)


def show_sides(empty: Side, filled: Side, idle_s: float) -> None:
    rows, idle, memory = [], {}, {}
    for side in (empty, filled):
        idle[side.name] = watch_idle(side.pid, side.address, idle_s)
        memory[side.name] = read_rss_mb(side.pid)
        rows.append(
            [
                side.name,
                f"{side.cpu_s / (WINDOWS * WINDOW) * 1000:.0f} ms",
                f"{memory[side.name]:.0f} MB",
                f"{idle[side.name]:.1%}",
                f"{timed(side.address + '/') * 1000:.0f} ms",
                f"{timed(side.address + '/metrics') * 1000:.0f} ms",
            ]
        )
    print_table(
        f"{OPENING + WINDOWS * WINDOW} new calls on each store",
        ["store", "CPU a call", "RSS", "idle", "page", "/metrics"],
        rows,
    )
    cost = filled.cpu_s / empty.cpu_s
    grown = memory[filled.name] / memory[empty.name]
    print_table(
        f"{filled.name} against an empty store",
        ["", "measured", "aim", ""],
        [
            ["CPU a call", f"{cost:.2f} ×", "≤ 1.1 ×", met(cost <= MAX_GROWTH)],
            ["RSS", f"{grown:.2f} ×", "≤ 1.1 ×", met(grown <= MAX_GROWTH)],
            [
                "idle",
                f"{idle[filled.name]:.1%}",
                "≤ 2 %",
                met(idle[filled.name] <= MAX_IDLE),
            ],
        ],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2500, 5000])
    parser.add_argument("--idle", type=float, default=20.0)
    parser.add_argument("--full", type=int, help="compare with a store of so many")
    given = parser.parse_args()
    if given.full:
        compare(given.full, given.idle)
    else:
        measure(given.sizes, given.idle)
