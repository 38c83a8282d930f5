"""Reconciling 10,000 listed calls of which 9,900 are known, and the start hook of a platform.

The lab's Bland lists the calls, in this process and without a socket: its own time is measured
beside. Memory is the growth of the process during the run; a second run over the same list should
add nothing.

python bench/bench_reconcile.py [--calls 10000] [--missing 100] [--starts 2000]
"""

import argparse
import asyncio
import resource
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx2
from fastapi import FastAPI
from pydantic import SecretStr
from sqlalchemy import insert

from aftercall.app import App, build
from aftercall.db.tables import calls
from aftercall.hosted import listings
from aftercall.journal.store import to_columns
from aftercall.lab.hosted import EmulatedBland, EmulatedVapi, LabHostedCall
from aftercall.lab.rest import REFUSALS
from aftercall.model.calls import LiveCall
from aftercall.settings import Settings
from aftercall.settings.providers import BlandSettings, VapiSettings
from aftercall.web.server import make_server
from tables import met, percentile, print_table

SECRET = "bench-0123456789abcdefghijklmnopqr"
LAB, PUBLIC = "http://lab.example", "https://calls.example"


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


async def measure_starts(folder: Path, count: int) -> None:
    secret = SecretStr(SECRET)
    vapi_settings = VapiSettings(webhook_secret=secret, assistant_id="a")
    app = build(Settings(home=folder / "home", vapi=vapi_settings))
    to_app = httpx2.ASGITransport(make_server(app))
    vapi = EmulatedVapi(SECRET, SECRET, clock=app.clock, transport=to_app)
    times = []
    for number in range(count):
        at = app.clock.now()
        call = LabHostedCall(
            f"c{number}", PUBLIC, f"+1555{number:07d}", "+15550101", at
        )
        began = time.perf_counter()
        message = {
            "type": "assistant-request",
            "call": {"id": call.id, "type": "inboundPhoneCall"},
            "customer": {"number": call.caller},
        }
        answer = await vapi.post(call, "", {"message": message})
        times.append((time.perf_counter() - began) * 1000)
        assert answer["assistantId"] == "a"
    await vapi.__aexit__(None, None, None)
    await app.journal.close()
    app.close()
    p99 = percentile(times, 0.99)
    half = f"{percentile(times, 0.5):.1f} ms"
    row = [f"{count:,}", half, f"{p99:.1f} ms", met(p99 <= 50)]
    head = ["start hooks", "p50", "p99", "≤ 50 ms"]
    print_table(
        "Vapi asks for an assistant; the call is opened and briefed", head, [row]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--missing", type=int, default=100)
    parser.add_argument("--starts", type=int, default=2_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure_reconcile(Path(folder), asked.calls, asked.missing))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure_starts(Path(folder), asked.starts))


if __name__ == "__main__":
    main()
