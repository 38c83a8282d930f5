"""Live calls by API, over the websocket, from one agent process to one server process.

At full speed each call sends its next turn when the last one is stored; at the pace of talk each
call sends one turn a second. Beside the clock's figures stand the server's CPU seconds: on a busy
machine these tell more. The bare row is the same load on a websocket server that stores nothing.

python bench/bench_live.py [--calls 200] [--seconds 8]
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop
from websockets.asyncio.server import ServerConnection, serve

from aftercall.client import Client, ClientCall
from tables import median, met, percentile, print_table

TOKEN = "bench-0123456789abcdefghijklmnopqr"
TEXT = "Hi, I'm looking for a good chicken recipe, something quick for tonight"
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Load:
    turns_a_second: float
    times: list[float]
    cpu_ms_a_turn: float


@contextmanager
def aftercall_server(folder: Path, **settings: str) -> Iterator[tuple[str, int]]:
    """Its address and its process."""
    folder.mkdir(mode=0o700)
    environment = os.environ | {
        "AFTERCALL_HOME": str(folder),
        "AFTERCALL_API_TOKEN": TOKEN,
        "PYTHONUNBUFFERED": "1",
        **settings,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "aftercall", "serve", "--port", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        words = process.stdout.readline().split()
        yield next(word for word in words if word.startswith("http")), process.pid
    finally:
        process.terminate()
        process.wait()


@contextmanager
def bare_server(folder: Path) -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = multiprocessing.Process(target=run_bare, args=(port,))
    process.start()
    try:
        yield f"http://127.0.0.1:{port}", process.pid or 0
    finally:
        process.kill()
        process.join()


def run_bare(port: int) -> None:
    """Answers at once, and stores nothing."""
    briefing = {"first_words": "", "text": "", "caller_name": None, "resumes": None}
    started = {"turns": 0, "lease_s": 60, "briefing": briefing, "tools": []}

    async def answer(link: ServerConnection) -> None:
        async for frame in link:
            message = json.loads(frame)
            result = started | {"call": message.get("sid")}
            await link.send(json.dumps({"ref": message["ref"], "result": result}))

    async def run() -> None:
        async with serve(answer, "127.0.0.1", port, compression=None) as server:
            await server.serve_forever()

    uvloop.run(run())


def read_cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


Talk = Callable[[ClientCall, float, list[float]], Awaitable[None]]


async def talk_fast(call: ClientCall, until_s: float, times: list[float]) -> None:
    while time.perf_counter() < until_s:
        begun = time.perf_counter()
        await call.turn("caller", TEXT)
        times.append(time.perf_counter() - begun)


async def talk_like_people(
    call: ClientCall, until_s: float, times: list[float]
) -> None:
    await asyncio.sleep(random.random())
    while time.perf_counter() < until_s:
        begun = time.perf_counter()
        await call.turn("caller", TEXT)
        times.append(time.perf_counter() - begun)
        await asyncio.sleep(1)


async def run_calls(
    address: str, process: int, spool: Path, calls: int, seconds: float, talk: Talk
) -> Load:
    times: list[float] = []
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(address, TOKEN, spool=spool))
        opened = [
            client.call(source="bench", sid=f"{talk.__name__}{number}", caller=None)
            for number in range(calls)
        ]
        for call in opened:
            await stack.enter_async_context(call)
        cpu_s, begun = read_cpu_s(process), time.perf_counter()
        await asyncio.gather(*(talk(call, begun + seconds, times) for call in opened))
        elapsed_s, cpu_s = time.perf_counter() - begun, read_cpu_s(process) - cpu_s
    return Load(len(times) / elapsed_s, times, 1e3 * cpu_s / len(times))


def measure(folder: Path, calls: int, seconds: float) -> None:
    rows = []
    for name, server in (("Aftercall", aftercall_server), ("bare", bare_server)):
        for pace, talk in (("full speed", talk_fast), ("talk", talk_like_people)):
            with server(folder / f"{name}-{talk.__name__}") as (address, process):
                spool = folder / f"spool-{name}-{talk.__name__}"
                running = run_calls(address, process, spool, calls, seconds, talk)
                load = uvloop.run(running)
            worst = percentile(load.times, 0.99)
            is_met = ""
            if name == "Aftercall":
                is_fast = talk is talk_fast
                is_met = met(load.turns_a_second >= 2_000 if is_fast else worst <= 0.02)
            rows.append(
                [
                    f"{name}, {calls} calls, {pace}",
                    f"{load.turns_a_second:,.0f}",
                    f"{median(load.times) * 1e3:.1f}",
                    f"{worst * 1e3:.1f}",
                    f"{load.cpu_ms_a_turn:.2f}",
                    "≥ 2,000/s" if talk is talk_fast else "p99 ≤ 20",
                    is_met,
                ]
            )
    columns = ["", "turns/s", "p50 ms", "p99 ms", "server CPU ms/turn", "aim", ""]
    print_table("Turns stored through the live-call API", columns, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=8)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as name:
        measure(Path(name), given.calls, given.seconds)
