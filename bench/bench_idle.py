"""What a server costs while nobody calls: processor time of `aftercall serve` before any call
and after twenty, on SQLite and on Postgres, beside a bare uvicorn; on Postgres its transactions.

python bench/bench_idle.py [--seconds 30]

Each is a process of its own, watched by the counters of Linux at the same time as the others:
the machine is busy with other things, too, and then only the ratio counts.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from aftercall.model.calls import encode_call
from bench_postcall import postgres
from fakes import make_call
from tables import met, percentile, print_table
from worker_process import SAID, measured_load

AIM = 0.015
MAX_TRANSACTIONS_PER_S = 10.0
ENGINE_START_S = 65.0  # in its first minute the durable engine polls more often
CALLS = 20
TOKEN = "a token for this bench, and for nothing else"
SETTLE_S = 8.0
BARE = """
import uvicorn
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
print("ready http://", flush=True)
uvicorn.run(app, port=0, log_level="error")
"""


@contextmanager
def process(
    arguments: Sequence[str],
    home: Path,
    options: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[int, str]]:
    """A process that says its address in its first line: its id, and that line."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AFTERCALL_")
    }
    environment = clean | {
        "AFTERCALL_HOME": str(home),
        "AFTERCALL_API_TOKEN": TOKEN,
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "200",
        **options,
    }
    started = subprocess.Popen(
        [sys.executable, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield started.pid, started.stdout.readline() if started.stdout else ""
    finally:
        started.terminate()
        started.wait(30)
        if started.stdout:
            started.stdout.close()


def address_in(line: str) -> str:
    found = re.search(r"http://[\d.:]+", line)
    if found is None:
        raise SystemExit(f"the server did not start: {line!r}")
    return found[0]


def get(url: str, body: bytes | None = None) -> str:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    if body:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(answer.read().decode())


def hand_in(address: str, number: int) -> float:
    """One finished call; seconds until its summary could be read."""
    call = make_call(SAID, caller=f"+1555010{number:04}")
    begun = time.perf_counter()
    get(f"{address}/api/calls", encode_call(call))
    while not has_summary(json.loads(get(f"{address}/api/calls/{call.id}"))):
        if time.perf_counter() > begun + 30:
            raise SystemExit("a summary did not come within 30 s")
        time.sleep(0.02)
    return time.perf_counter() - begun


def has_summary(shown: dict[str, Any]) -> bool:
    return any(
        step["name"] == "summary" and step["state"] == "done" for step in shown["steps"]
    )


@contextmanager
def counted_transactions(database_url: str) -> Iterator[list[int]]:
    """Adds how many the database had meanwhile. One that looks from elsewhere is not counted."""
    url = make_url(database_url)
    elsewhere = create_engine(url.set(database="postgres"))
    query = text(
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = :name"
    )

    def count() -> int:
        with elsewhere.connect() as connection:
            name = {"name": url.database}
            return int(connection.execute(query, name).scalar_one())

    found: list[int] = []
    before = count()
    yield found
    found.append(count() - before)
    elsewhere.dispose()


def watch(pids: list[int], seconds: float) -> tuple[float, ...]:
    with measured_load(pids) as load:
        time.sleep(seconds)
    if not load.processes[0]:
        raise SystemExit(
            "this system does not tell what a process costs (or it cost nothing, which is not so)"
        )
    return load.processes


def start_server(stack: ExitStack, home: Path, **options: str) -> tuple[int, str]:
    """Its process, and its address when it is ready."""
    arguments = ["-m", "aftercall", "serve", "--port", "0"]
    pid, line = stack.enter_context(process(arguments, home, options))
    address = address_in(line)
    get(f"{address}/readyz")
    return pid, address


def measure(seconds: float) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="aftercall-idle-") as folder,
        postgres() as (make_database, _),
        ExitStack() as stack,
    ):
        url = make_database()
        ours, address = start_server(stack, Path(folder) / "sqlite")
        shared, shared_address = start_server(
            stack, Path(folder) / "postgres", AFTERCALL_DATABASE_URL=url
        )
        bare, _ = stack.enter_context(process(["-c", BARE], Path(folder)))
        started = time.monotonic()
        time.sleep(SETTLE_S)
        before = watch([ours, shared, bare], seconds)
        waits = [hand_in(address, number) for number in range(CALLS)]
        shared_waits = [hand_in(shared_address, number) for number in range(CALLS)]
        time.sleep(max(SETTLE_S, started + ENGINE_START_S - time.monotonic()))
        with counted_transactions(url) as transactions:
            after = watch([ours, shared, bare], seconds)
    print_costs(before, after, seconds)
    for name, found in (("sqlite", waits), ("postgres", shared_waits)):
        print(
            f"summary readable after a call was handed in, one by one, {name}: p50 "
            f"{percentile(found, 0.5):.2f} s, at most {max(found):.2f} s"
        )
    rate = transactions[0] / seconds
    print(
        f"transactions of an idle server on Postgres: {rate:.1f} a second, aim "
        f"≤ {MAX_TRANSACTIONS_PER_S:g}: {met(rate <= MAX_TRANSACTIONS_PER_S)}"
    )


def print_costs(
    before: tuple[float, ...], after: tuple[float, ...], seconds: float
) -> None:
    rows = []
    for name, costs in (("before any call", before), (f"after {CALLS} calls", after)):
        floor = costs[-1]
        for database, cost in zip(("sqlite", "postgres"), costs, strict=False):
            rows.append(
                [
                    f"{name}, {database}",
                    f"{cost:.2%}",
                    f"{floor:.2%}",
                    f"{cost / max(floor, 1e-9):.1f}",
                    f"≤ {AIM:.1%}",
                    met(cost <= AIM),
                ]
            )
    columns = ["", "of a core", "bare uvicorn", "ratio", "aim", ""]
    print_table(f"A server while nobody calls, {seconds:g} s each", columns, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30.0)
    measure(parser.parse_args().seconds)
