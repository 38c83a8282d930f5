"""Reconciling 10,000 listed calls of which 9,900 are known, and the platforms' start hooks.

The lab's Bland lists the calls, in this process and without a socket: its own time is measured
beside. Memory is the growth of the process during the run; a second run over the same list should
add nothing.

The starts go to a server process in which calls of an agent elsewhere go on, a turn a second each.

python bench/bench_reconcile.py [--calls 10000] [--missing 100] [--starts 300] [--live 200]
"""

import argparse
import asyncio
import math
import os
import resource
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx2
from fastapi import FastAPI
from pydantic import SecretStr
from sqlalchemy import insert

from aftercall.app import App, build
from aftercall.client import Client
from aftercall.db.tables import calls
from aftercall.hosted import listings
from aftercall.journal.store import to_columns
from aftercall.lab.hosted import (
    EmulatedBland,
    EmulatedElevenLabs,
    EmulatedPlatform,
    EmulatedRetell,
    EmulatedVapi,
    LabHostedCall,
)
from aftercall.lab.rest import REFUSALS
from aftercall.model.calls import LiveCall
from aftercall.settings import Settings
from aftercall.settings.providers import BlandSettings
from bench_live import TOKEN, aftercall_server, talk_like_people
from tables import met, percentile, print_table

SECRET = "bench-0123456789abcdefghijklmnopqr"
LAB = "http://lab.example"
START_KINDS = (b"assistant-request", b"call_inbound")
START_PAUSE_S = 0.03
SETTLE_S = 5.0
MAX_START_MS = 50


def add_calls(app: App, bland: EmulatedBland, count: int, missing: int) -> None:
    """Evenly spread over two days; every so many-th is unknown to us."""
    now, every = app.clock.now(), count // missing
    rows = []
    for number in range(count):
        at = now - timedelta(minutes=10) - number * timedelta(days=2) / count
        caller = f"+1555{number % 500:07d}"
        call = LabHostedCall(f"call-{number}", "", caller, "+15550101", at)
        call.turns.append(("user", "Hello, could you send me the invoice?", at))
        call.ended_at = at + timedelta(seconds=30)
        bland.calls[call.id] = call
        if number % every:
            live = LiveCall(source="bland", sid=call.id, caller=caller, started_at=at)
            ended = {"state": "sealed", "owner": "bench", "ended_at": call.ended_at}
            rows.append(to_columns(live) | ended | {"end_reason": "completed"})
    with app.database.write() as connection:
        connection.execute(insert(calls), rows)


async def read_list(app: App, transport: httpx2.ASGITransport) -> float:
    """The API's own time: the pages alone."""
    began = time.perf_counter()
    (listing,) = listings.make_listings(app.settings, app.clock, transport)
    cursor: str | None = ""
    while cursor is not None:
        page = await listing.read_page(app.clock.now() - timedelta(days=3), cursor)
        cursor = page.cursor
    await listing.client.close()
    return time.perf_counter() - began


def get_memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def measure_reconcile(folder: Path, count: int, missing: int) -> None:
    secret = SecretStr(SECRET)
    bland_settings = BlandSettings(api_key=secret, api_url=LAB)
    app = build(Settings(home=folder / "home", bland=bland_settings))
    lab = FastAPI(exception_handlers=REFUSALS)
    bland = EmulatedBland(SECRET, SECRET, SECRET, clock=app.clock)
    lab.include_router(bland.make_router())
    transport = httpx2.ASGITransport(lab)
    app = replace(app, transport=transport)
    add_calls(app, bland, count, missing)
    api_s = await read_list(app, transport)
    rows = []
    for _ in range(2):
        before, began = get_memory_mb(), time.perf_counter()
        made = (await app.reconciler.run()).sources["bland"]
        took_s = time.perf_counter() - began
        grown = get_memory_mb() - before
        own_s = took_s - api_s
        rows.append(
            [
                f"{made.listed:,}",
                str(made.brought),
                f"{took_s:.2f} s",
                f"{api_s:.2f} s",
                f"{own_s:.2f} s",
                met(own_s <= 10),
                f"{grown:+.1f} MB",
            ]
        )
    await bland.__aexit__(None, None, None)
    await app.journal.close()
    app.close()
    head = ["listed", "brought", "run", "of it the API", "ours", "≤ 10 s", "memory"]
    print_table("A list of calls compared, twice", head, rows)


class StartTimer(httpx2.AsyncHTTPTransport):
    """Notes how long the answer to each start takes, and to nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        is_start = request.url.path.endswith("/start") or any(
            kind in body for kind in START_KINDS
        )
        began = time.perf_counter()
        answer = await super().handle_async_request(request)
        if is_start:
            self.times.append(1e3 * (time.perf_counter() - began))
        return answer


async def ring(make: type[EmulatedPlatform], address: str, count: int) -> list[float]:
    """Rings at the pace of a busy office; its calls go on."""
    timer = StartTimer()
    platform = make(SECRET, SECRET, SECRET, transport=timer)
    async with platform:
        for number in range(count):
            call = await platform.ring(address, caller=f"+1555{number:07d}")
            assert call.variables["first_words"]
            await asyncio.sleep(START_PAUSE_S)
    assert len(timer.times) == count
    return timer.times


async def talk(address: str, spool: Path, calls: int) -> None:
    """Live calls of an agent elsewhere, each with a turn a second, until cancelled."""
    async with Client(address, TOKEN, spool=spool) as client, AsyncExitStack() as stack:
        talks = []
        for number in range(calls):
            call = client.call(source="bench", sid=str(number), caller="+15550100")
            await stack.enter_async_context(call)
            talks.append(talk_like_people(call, math.inf, []))
        await asyncio.gather(*talks)


async def measure_starts(folder: Path, count: int, calls: int) -> None:
    settings = {
        "VAPI_ASSISTANT_ID": "a",
        "VAPI_WEBHOOK_SECRET": SECRET,
        "RETELL_API_KEY": SECRET,
        "AFTERCALL_RECONCILE_EVERY_MINUTES": "0",
        "AFTERCALL_LIMITS_LIVE_CALLS": "100000",
    }
    for name in ("BLAND", "ELEVENLABS"):
        for kind in ("WEBHOOK", "START"):
            settings[f"{name}_{kind}_SECRET"] = SECRET
    rows = []
    with aftercall_server(folder / "home", **settings) as (address, _):
        talking = asyncio.create_task(talk(address, folder / "spool", calls))
        await asyncio.sleep(SETTLE_S)
        for make in (EmulatedVapi, EmulatedRetell, EmulatedElevenLabs, EmulatedBland):
            times = await ring(make, address, count)
            p50, p99 = percentile(times, 0.5), percentile(times, 0.99)
            figures = [f"{p50:.1f} ms", f"{p99:.1f} ms", met(p99 <= MAX_START_MS)]
            rows.append([make.name, f"{count:,}", *figures])
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)
    head = ["", "starts", "p50", "p99", f"≤ {MAX_START_MS} ms"]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    title = f"Start hooks beside {calls} live calls (load of the machine {load})"
    print_table(title, head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--missing", type=int, default=100)
    parser.add_argument("--starts", type=int, default=300)
    parser.add_argument("--live", type=int, default=200)
    asked = parser.parse_args()
    if asked.calls:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure_reconcile(Path(folder), asked.calls, asked.missing))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure_starts(Path(folder), asked.starts, asked.live))


if __name__ == "__main__":
    main()
