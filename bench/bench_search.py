"""Searching one caller's facts among many callers', against plain FTS5 on the same rows in the
same run.

python bench/bench_search.py [--sizes 1000,10000,100000,1000000] [--searches 300] [--database URL]

With --database the facts of one size are put into an empty Postgres database; plain FTS5 stays
what it is compared with.
"""

import argparse
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, islice
from pathlib import Path

from aftercall.clock import SystemClock
from aftercall.db.connect import Database
from aftercall.db.upgrade import prepare_database
from aftercall.memory.passage_store import add
from aftercall.memory.search import MemorySearch
from aftercall.memory.words import STOP_WORDS, split_words
from aftercall.model.passages import Passage, SearchScope
from fakes import START
from full_house import make_vocabulary
from tables import met, percentile, print_table

PER_CALLER = 100
WORDS = 12
BATCH = 20_000
AIMS_MS = {10_000: 5.0, 1_000_000: 20.0}


@dataclass
class Timing:
    p50: float
    p95: float
    cpu: float
    cpu_p95: float


def make_facts(rng: random.Random, count: int) -> Iterator[Passage]:
    """Facts of many callers in no order, their words as uneven as words are."""
    words = make_vocabulary(rng)
    categories = ("preference", "decision", "person", "technical", "routine")
    callers = max(1, count // PER_CALLER)
    cumulated = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    for number in range(count):
        said = " ".join(rng.choices(words, cum_weights=cumulated, k=WORDS))
        caller = f"+1555{rng.randrange(callers):07}"
        at = START - timedelta(hours=rng.randrange(20_000))
        yield Passage(
            "fact",
            "main",
            caller,
            None,
            said,
            at,
            ref=f"F{number:08}",
            category=rng.choice(categories),
        )


def fill(
    database: Database,
    plain: sqlite3.Connection,
    facts: Iterator[Passage],
    searches: int,
) -> list[Passage]:
    """Put the same rows into both; returns some to ask for."""
    plain.execute(
        "CREATE VIRTUAL TABLE facts USING fts5(scope, text, tokenize='porter unicode61')"
    )
    asked: list[Passage] = []
    while batch := list(islice(facts, BATCH)):
        asked += batch[:searches]
        with database.write() as connection:
            add(connection, batch)
        plain.executemany(
            "INSERT INTO facts VALUES (?, ?)",
            [(token(fact.caller), fact.text) for fact in batch],
        )
        plain.commit()
    return random.Random(0).sample(asked, searches)


def token(caller: str | None) -> str:
    return f"c{(caller or '')[1:]}"


def search_plainly(plain: sqlite3.Connection, caller: str | None, text: str) -> int:
    words = " OR ".join(
        f'"{word}"' for word in split_words(text) if word not in STOP_WORDS
    )
    match = f'scope:"{token(caller)}" AND text:({words})'
    return len(
        plain.execute(
            "SELECT rowid, text FROM facts WHERE facts MATCH ? ORDER BY bm25(facts) LIMIT 10",
            (match,),
        ).fetchall()
    )


def measure(
    search: Callable[[str | None, str], int], asked: list[Passage], rng: random.Random
) -> Timing:
    queries = [
        (fact.caller, " ".join(["what", *rng.sample(fact.text.split(), 4)]))
        for fact in asked
    ]
    for caller, text in queries[:20]:
        assert search(caller, text)
    wall, cpu = [], []
    for caller, text in queries:
        begun, burnt = time.perf_counter(), time.thread_time()
        search(caller, text)
        wall.append((time.perf_counter() - begun) * 1000)
        cpu.append((time.thread_time() - burnt) * 1000)
    return Timing(
        percentile(wall, 0.5),
        percentile(wall, 0.95),
        sum(cpu) / len(cpu),
        percentile(cpu, 0.95),
    )


def run(
    folder: Path, size: int, searches: int, url: str
) -> tuple[Timing, Timing, float]:
    rng = random.Random(size)
    database = Database(url or f"sqlite:///{folder / f'{size}.db'}")
    prepare_database(database)
    plain = sqlite3.connect(folder / f"{size}-plain.db")
    begun = time.perf_counter()
    asked = fill(database, plain, make_facts(rng, size), searches)
    took = time.perf_counter() - begun
    if database.dialect == "postgresql":
        with database.write() as connection:
            connection.exec_driver_sql("ANALYZE passages")
    searcher = MemorySearch(database, SystemClock())
    ours = measure(
        lambda caller, text: len(searcher.find(text, SearchScope("main", caller))),
        asked,
        random.Random(1),
    )
    theirs = measure(
        lambda caller, text: search_plainly(plain, caller, text),
        asked,
        random.Random(1),
    )
    plain.close()
    database.close()
    return ours, theirs, took


def figures(timing: Timing) -> list[str]:
    return [
        f"{value:.2f}" for value in (timing.p50, timing.p95, timing.cpu, timing.cpu_p95)
    ]


def main(sizes: list[int], searches: int, url: str) -> None:
    rows, first = [], 0.0
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as folder:
            ours, theirs, took = run(Path(folder), size, searches, url)
        first = first or ours.p95
        aim = AIMS_MS.get(size)
        said = [f"≤ {aim:g} ms", met(ours.p95 <= aim)] if aim else ["", ""]
        rows.append(
            [
                f"{size:,} ours",
                *figures(ours),
                f"{ours.cpu / theirs.cpu:.2f}",
                f"{ours.p95 / first:.2f}",
                *said,
            ]
        )
        print(
            f"{size:,}: p95 {ours.p95:.2f} ms, CPU {ours.cpu:.2f} ms, "
            f"{ours.cpu / theirs.cpu:.2f} times plain FTS5",
            file=sys.stderr,
        )
        rows.append(
            [
                f"{size:,} plain FTS5",
                *figures(theirs),
                "1.00",
                "",
                f"built in {took:.0f} s",
                "",
            ]
        )
    store = "Postgres" if url else "SQLite"
    title = (
        f"One caller's search, {PER_CALLER} facts a caller, {store}, ten results, ms"
    )
    print_table(
        title,
        [
            "facts",
            "p50",
            "p95",
            "CPU",
            "CPU p95",
            "CPU ratio",
            "p95 growth",
            "aim (p95)",
            "",
        ],
        rows,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    parser.add_argument("--searches", type=int, default=300)
    parser.add_argument(
        "--database", default="", help="an empty Postgres database, for one size"
    )
    arguments = parser.parse_args()
    main(
        [int(size) for size in arguments.sizes.split(",")],
        arguments.searches,
        arguments.database,
    )
