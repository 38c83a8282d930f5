"""Every page with very many calls and facts behind it, and how soon a spoken turn is on the
pages of many viewers.

python bench/bench_pages.py [--facts 1000000] [--viewers 100] [--looks 10]
"""

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from websockets.asyncio.client import connect

from aftercall.db.connect import Database
from aftercall.db.upgrade import prepare_database
from full_house import House
from tables import met, percentile, print_table

PAGE_AIM_MS, TURN_AIM_MS, SIZE_AIM_KB = 100.0, 300.0, 150.0
TURNS = 20
TOKEN = "a token for this bench, and for nothing else"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def server(home: Path) -> Iterator[tuple[str, int]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments = [sys.executable, "-m", "aftercall", "serve", "--port", str(port)]
    environment = os.environ | {
        "AFTERCALL_HOME": str(home),
        "AFTERCALL_API_TOKEN": TOKEN,
        "AFTERCALL_ENGINE": "receptionist",
        "AFTERCALL_MODEL": "rules",
    }
    process = subprocess.Popen(
        arguments,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert "http://" in process.stdout.readline(), "the server did not start"
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait()
        if process.stdout:
            process.stdout.close()


def paths(house: House, call_id: str) -> list[str]:
    caller, word = house.caller(7), house.content(7).split()[0]
    fact = house.fact_id(7)
    return [
        "/",
        "/calls",
        f"/calls?q={word}",
        f"/calls?caller={caller.replace('+', '%2B')}",
        f"/calls/{call_id}",
        "/people",
        f"/people/{caller}",
        "/memory",
        f"/memory?q={word}",
        f"/memory?q={word}&caller={caller.replace('+', '%2B')}",
        f"/memory/facts/{fact}",
        "/followups",
        "/followups?shelf=done",
        "/tests",
        "/phone",
        "/settings",
    ]


async def look(address: str, pid: int, house: House, looks: int) -> None:
    rows = []
    async with httpx2.AsyncClient(
        base_url=address, headers=BEARER, trust_env=False, timeout=60
    ) as http:
        call = {
            "source": "bench",
            "sid": "one",
            "caller": house.caller(7),
            "started_at": "2026-02-13T15:41:12Z",
            "ended_at": "2026-02-13T15:45:34Z",
            "turns": [
                {
                    "speaker": "caller",
                    "text": house.content(number),
                    "at": "2026-02-13T15:42:00Z",
                }
                for number in range(40)
            ],
        }
        call_id = (
            (await http.post("/api/calls", json=call)).raise_for_status().json()["id"]
        )
        await asyncio.sleep(3)
        for path in paths(house, call_id):
            took, size, burnt = [], 0, 0.0
            for number in range(looks + 1):
                burnt = burnt if number > 1 else cpu_s(pid)
                began = time.perf_counter()
                answer = await http.get(path)
                took.append((time.perf_counter() - began) * 1_000)
                size = len(answer.content)
                assert answer.status_code == 200, f"{path}: {answer.status_code}"
            half, most, cpu = (
                percentile(took[1:], 0.5),
                max(took[1:]),
                1_000 * (cpu_s(pid) - burnt) / looks,
            )
            kept = half <= PAGE_AIM_MS and size <= 1_000 * SIZE_AIM_KB
            times = [f"{value:.1f}" for value in (took[0], half, most, cpu)]
            rows.append([path[:48], *times, f"{size / 1_000:.0f} KB", met(kept)])
    title = (
        "Pages, ms seen by a client, and ms of CPU of the server; the aims are "
        f"{PAGE_AIM_MS:g} ms and {SIZE_AIM_KB:g} KB"
    )
    print_table(title, ("page", "first", "p50", "most", "CPU", "size", ""), rows)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def view(address: str, seen: asyncio.Queue[float], ready: asyncio.Event) -> None:
    async with (
        httpx2.AsyncClient(
            base_url=address, headers=BEARER, trust_env=False, timeout=60
        ) as http,
        http.stream("GET", "/live") as feed,
    ):
        async for line in feed.aiter_lines():
            ready.set()
            if line.startswith("event: turn-"):
                seen.put_nowait(time.perf_counter())


async def listen(address: str, viewers: int) -> None:
    """One call of typed turns, and how long after each answer of the agent the last viewer has
    it.
    """
    seen: asyncio.Queue[float] = asyncio.Queue()
    readies = [asyncio.Event() for _ in range(viewers)]
    watching = [asyncio.create_task(view(address, seen, ready)) for ready in readies]
    await asyncio.wait_for(asyncio.gather(*(ready.wait() for ready in readies)), 60)
    late: list[float] = []
    async with connect(
        f"{address.replace('http', 'ws')}/browser/call",
        origin=address,  # type: ignore[arg-type]
        additional_headers=BEARER,
        proxy=None,
        compression=None,
    ) as phone:
        await phone.recv()
        await collect(seen, viewers, time.perf_counter())
        for number in range(TURNS):
            await phone.send(
                f'{{"type": "say", "text": "Please note that the number is {number}."}}'
            )
            await phone.recv()
            late += await collect(seen, 2 * viewers, time.perf_counter())
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    half, most = percentile(late, 0.5), max(late)
    row = [
        str(viewers),
        f"{half:.0f}",
        f"{percentile(late, 0.95):.0f}",
        f"{most:.0f}",
        met(percentile(late, 0.95) <= TURN_AIM_MS),
    ]
    print_table(
        f"A turn on the page after it was answered, ms; the aim is {TURN_AIM_MS:g} ms",
        ("viewers", "p50", "p95", "most", ""),
        [row],
    )


async def collect(seen: asyncio.Queue[float], count: int, since: float) -> list[float]:
    return [
        max(0.0, (await asyncio.wait_for(seen.get(), 30)) - since) * 1_000
        for _ in range(count)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--facts", type=int, default=1_000_000, help="facts; a tenth as many calls"
    )
    parser.add_argument("--viewers", type=int, default=100)
    parser.add_argument("--looks", type=int, default=10)
    parser.add_argument(
        "--home", type=Path, help="keep the home here, or use the one that is here"
    )
    options = parser.parse_args()
    house = House(options.facts)
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as folder:
        home = options.home or Path(folder)
        if not (home / "aftercall.db").exists():
            home.mkdir(parents=True, exist_ok=True)
            database = Database(f"sqlite:///{home / 'aftercall.db'}")
            prepare_database(database)
            began = time.perf_counter()
            house.fill(database)
            database.close()
            print(
                f"{house.calls:,} calls and {house.facts:,} facts written in "
                f"{time.perf_counter() - began:.0f} s"
            )
        with server(home) as (address, pid):
            asyncio.run(look(address, pid, house, options.looks))
            asyncio.run(listen(address, options.viewers))


if __name__ == "__main__":
    main()
