"""What a server costs while nobody calls: processor time of `aftercall serve` before any call
and after twenty, beside a bare uvicorn.

python bench/bench_idle.py [--seconds 30]

Each is a process of its own, on SQLite, watched by the counters of Linux at the same time as
the others: the machine is busy with other things, too, and then only the ratio counts.
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

from aftercall.model.calls import encode_call
from aftercall.testing import make_call
from tables import met, percentile, print_table
from worker_process import SAID, measured_load

AIM = 0.015
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


def watch(pids: list[int], seconds: float) -> tuple[float, ...]:
    with measured_load(pids) as load:
        time.sleep(seconds)
    if not load.processes[0]:
        raise SystemExit(
            "this system does not tell what a process costs (or it cost nothing, which is not so)"
        )
    return load.processes


def measure(seconds: float) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="aftercall-idle-") as folder,
        ExitStack() as stack,
    ):
        ours, line = stack.enter_context(
            process(["-m", "aftercall", "serve", "--port", "0"], Path(folder))
        )
        bare, _ = stack.enter_context(process(["-c", BARE], Path(folder)))
        address = address_in(line)
        get(f"{address}/readyz")
        time.sleep(SETTLE_S)
        before = watch([ours, bare], seconds)
        waits = [hand_in(address, number) for number in range(CALLS)]
        time.sleep(SETTLE_S)
        after = watch([ours, bare], seconds)
    rows = []
    for name, (cost, floor) in (
        ("before any call", before),
        (f"after {CALLS} calls", after),
    ):
        rows.append(
            [
                name,
                f"{cost:.2%}",
                f"{floor:.2%}",
                f"{cost / max(floor, 1e-9):.1f}",
                f"≤ {AIM:.1%}",
                met(cost <= AIM),
            ]
        )
    columns = ["", "of a core", "bare uvicorn", "ratio", "aim", ""]
    print_table(
        f"A server while nobody calls, sqlite, {seconds:g} s each", columns, rows
    )
    print(
        "summary readable after a call was handed in, one by one: p50 "
        f"{percentile(waits, 0.5):.2f} s, at most {max(waits):.2f} s"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30.0)
    measure(parser.parse_args().seconds)
