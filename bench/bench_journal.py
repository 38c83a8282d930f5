"""The ground floor in figures: append, group commit, sealing, the list of calls, memory.

Ratios within one run.

python bench/bench_journal.py [--folder DIR]        the disk that DIR lies on is the one measured
"""

import argparse
import asyncio
import gc
import json
import os
import tempfile
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import uvloop
from sqlalchemy import insert

from aftercall.app import App, build
from aftercall.db.tables import calls as calls_table
from aftercall.journal.recorder import CallRecorder
from aftercall.journal.replay import to_entry
from aftercall.journal.store import to_columns
from aftercall.journal.view import row_json
from aftercall.model.calls import Turn
from aftercall.settings import Settings
from fakes import START, make_call, make_live_call
from tables import median, met, percentile, print_table

TEXT = "Hi, I'm looking for a good chicken recipe, something quick for tonight"
ROUNDS = 5


def turn(seq: int) -> Turn:
    return Turn(
        seq=seq,
        speaker="caller",
        text=TEXT,
        at=START + timedelta(seconds=seq),
        confidence=0.93,
    )


BYTES = json.dumps(to_entry("01J0000000000000000000000", turn(1))).encode() + b"\n"


def time_bare(folder: Path, count: int) -> list[float]:
    """write + fsync of the bytes that an append carries."""
    file = os.open(folder / "bare.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        os.write(file, BYTES)
        os.fsync(file)
        times.append(time.perf_counter() - begun)
    os.close(file)
    return times


async def time_appends(record: CallRecorder, count: int) -> list[float]:
    turns = [turn(record.next_turn_seq + number) for number in range(count)]
    times = []
    for item in turns:
        begun = time.perf_counter()
        await record.append(item)
        times.append(time.perf_counter() - begun)
    return times


async def rate(records: list[CallRecorder], each: int) -> float:
    """Turns a second of all these calls appending together; the turns are made beforehand."""
    work = [
        [turn(record.next_turn_seq + number) for number in range(each)]
        for record in records
    ]

    async def append_all(record: CallRecorder, turns: list[Turn]) -> None:
        for item in turns:
            await record.append(item)

    begun = time.perf_counter()
    await asyncio.gather(
        *(
            append_all(record, turns)
            for record, turns in zip(records, work, strict=True)
        )
    )
    return len(records) * each / (time.perf_counter() - begun)


async def time_bare_off_the_loop(folder: Path, count: int) -> list[float]:
    """The same, done in a thread and awaited: what any durable write costs an event loop that
    must not block.
    """
    file = os.open(folder / "thread.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    pool = ThreadPoolExecutor(1)
    loop = asyncio.get_running_loop()

    def write() -> None:
        os.write(file, BYTES)
        os.fsync(file)

    times = []
    for _ in range(count):
        begun = time.perf_counter()
        await loop.run_in_executor(pool, write)
        times.append(time.perf_counter() - begun)
    pool.shutdown()
    os.close(file)
    return times


async def measure_appends(app: App, folder: Path) -> None:
    alone = await app.journal.open(make_live_call())
    crowd = [await app.journal.open(make_live_call()) for _ in range(200)]
    # until SQLite reuses its log instead of growing it
    await time_appends(alone, 2_000)
    bare: list[float] = []
    thread: list[float] = []
    ours: list[float] = []
    gains = []
    for _ in range(ROUNDS):
        # interleaved, so that a busy moment of the machine hits all
        bare += time_bare(folder, 400)
        thread += await time_bare_off_the_loop(folder, 400)
        ours += await time_appends(alone, 400)
        one, many = await rate([alone], 400), await rate(crowd, 20)
        gains.append((many / one, one, many))
    ratio = median(ours) / median(bare)

    def line(name: str, times: list[float], *verdict: str) -> list[str]:
        figures = [
            f"{median(times) * 1e6:.0f}",
            f"{percentile(times, 0.95) * 1e6:.0f}",
            f"{median(times) / median(bare):.2f}",
        ]
        return [name, *figures, *(verdict or ("", ""))]

    print_table(
        "Durable append (ratio of medians)",
        ["", "p50 µs", "p95 µs", "ratio", "aim", ""],
        [
            line("bare write + fsync, in a loop that does nothing else", bare),
            line("bare write + fsync in a thread, awaited", thread),
            line("append, one call, awaited", ours, "≤ 2", met(ratio <= 2)),
        ],
    )
    gain, one, many = sorted(gains)[len(gains) // 2]
    print_table(
        "Group commit",
        ["", "turns/s", "ratio", "aim", ""],
        [
            ["one call alone", f"{one:,.0f}", "1.0", "", ""],
            [
                "200 calls together",
                f"{many:,.0f}",
                f"{gain:.1f}",
                "≥ 10",
                met(gain >= 10),
            ],
        ],
    )


def measure_sealing(app: App) -> None:
    times = []
    for _ in range(50):
        call = make_call([("caller" if n % 2 else "agent", TEXT) for n in range(200)])
        begun = time.perf_counter()
        app.journal.ingest(call)
        times.append(time.perf_counter() - begun)
    worst = percentile(times, 0.95)
    print_table(
        "Sealing a 200-turn call (taken in, filed, chained, marked)",
        ["p50 ms", "p95 ms", "aim", ""],
        [
            [
                f"{median(times) * 1e3:.1f}",
                f"{worst * 1e3:.1f}",
                "≤ 20",
                met(worst <= 0.020),
            ]
        ],
    )


async def measure_memory(app: App) -> None:
    gc.collect()
    tracemalloc.start()
    records = [await app.journal.open(make_live_call()) for _ in range(100)]
    await rate(records, 100)
    gc.collect()
    each = tracemalloc.get_traced_memory()[0] / 100 / 1024
    tracemalloc.stop()
    print_table(
        "Memory per live call (100 turns kept)",
        ["KB", "aim", ""],
        [[f"{each:.0f}", "≤ 100", met(each <= 100)]],
    )


def measure_list(app: App) -> None:
    template = to_columns(make_live_call()) | {
        "state": "sealed",
        "owner": "bench",
        "turn_count": 12,
        "archive_name": "x",
        "archive_sha256": "y",
    }
    rows = [
        template
        | {
            "id": f"bench{n:08}",
            "sid": f"B{n}",
            "started_at": START - timedelta(minutes=n),
        }
        for n in range(100_000)
    ]
    with app.database.write() as connection:
        connection.execute(insert(calls_table), rows)
    times = []
    for _ in range(50):
        begun = time.perf_counter()
        page = app.store.list_page(limit=50)
        json.dumps([row_json(row) for row in page])
        times.append(time.perf_counter() - begun)
    last = page[-1].live
    for _ in range(50):
        begun = time.perf_counter()
        app.store.list_page(
            limit=50, before=(last.started_at - timedelta(days=50), last.id)
        )
        times.append(time.perf_counter() - begun)
    worst = percentile(times, 0.95)
    print_table(
        "Opening the list of 100,000 calls (a page of 50, first and far down)",
        ["p50 ms", "p95 ms", "aim", ""],
        [
            [
                f"{median(times) * 1e3:.1f}",
                f"{worst * 1e3:.1f}",
                "≤ 50",
                met(worst <= 0.050),
            ]
        ],
    )


async def measure(folder: Path) -> None:
    app = build(Settings(home=folder / "home"))
    await measure_appends(app, folder)
    measure_sealing(app)
    await measure_memory(app)
    measure_list(app)
    await app.journal.close()
    app.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=None)
    with tempfile.TemporaryDirectory(
        prefix="aftercall-bench-", dir=parser.parse_args().folder
    ) as name:
        uvloop.run(measure(Path(name)))
