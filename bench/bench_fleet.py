"""Two servers on one Postgres beside one, with an emulated carrier and engine: ring to first audio
when the webhook and the stream of a call meet one process, and when they meet two; and the live
calls that two processes carry as a multiple of one.

A machine of two cores cannot hold two full servers, their database and the callers. So the second
figure is computed: a process is full when its core is, so it is the processor time of a call in one
process, divided by that of a call in two, times two. Everybody talks all the time.

python bench/bench_fleet.py [--rings 20] [--live 40] [--seconds 15]
"""

import argparse
import asyncio
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from aftercall.lab.deepgram import EmulatedDeepgram
from aftercall.lab.media import MediaPhone
from aftercall.lab.twilio import EmulatedTwilio
from aftercall.lab.twiml import Connect
from aftercall.phone.carrier_frames import TwilioFrames
from bench_bridge import connect, cpu_s
from bench_postcall import postgres
from bridge_load import Load
from tables import median, met, percentile, print_table

TOKEN = KEY = "bench"
PUBLIC = "http://calls.example"
MAX_RATIO = 2.0
MIN_CARRIED = 1.8
ROUNDS = 3


class FleetTwilio(EmulatedTwilio):
    """Signs for the public address, and chooses the server of each request."""

    webhook = stream = 0  # ports

    async def post_form(self, url: str, form: dict[str, str]) -> httpx2.Response:
        headers = {"X-Twilio-Signature": self.sign(url, form)}
        inside = f"http://127.0.0.1:{self.webhook}{urlsplit(url).path}"
        return await self.http.post(inside, data=form, headers=headers)

    async def open_stream(
        self, sid: str, stream: Connect, speed: float = 1.0
    ) -> MediaPhone:
        return await MediaPhone.dial(
            f"ws://127.0.0.1:{self.stream}{urlsplit(stream.url).path}",
            TwilioFrames(sid, self.account_sid),
            parameters=dict(stream.parameters),
            headers={"x-twilio-signature": self.sign(stream.url, {})},
            speed=speed,
        )


@asynccontextmanager
async def serving(
    home: str, database: str, engine: str, public: str = PUBLIC
) -> AsyncIterator[tuple[int, int]]:
    """`aftercall serve`, ready for calls: its port and its process id."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = {
        "AFTERCALL_HOME": home,
        "AFTERCALL_DATABASE_URL": database,
        "AFTERCALL_PUBLIC_URL": public or f"http://127.0.0.1:{port}",
        "AFTERCALL_ENGINE": "deepgram",
        "AFTERCALL_DEEPGRAM_URL": engine,
        "AFTERCALL_BRIDGE_DRAIN_S": "0",
        "DEEPGRAM_API_KEY": KEY,
        "TWILIO_AUTH_TOKEN": TOKEN,
    }
    arguments = (sys.executable, "-m", "aftercall", "serve", "--port", str(port))
    server = await asyncio.create_subprocess_exec(
        *arguments,
        env=os.environ | own,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert server.stdout is not None
    await server.stdout.readline()
    async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
        await http.get(f"http://127.0.0.1:{port}/readyz")
    try:
        yield port, server.pid
    finally:
        server.terminate()
        await server.communicate()


async def measure_ring(twilio: FleetTwilio, number: int) -> float:
    """Seconds from the ring to the first audio of the agent."""
    started = time.perf_counter()
    call = await twilio.ring(f"{PUBLIC}/twilio/voice", caller=f"+1555{number:07}")
    assert call.phone is not None, call.fault
    await call.phone.wait_for_audio(1)
    seconds = time.perf_counter() - started
    await twilio.hang_up(call)
    return seconds


async def measure(home: str, database: str, rings: int) -> tuple[list[float], ...]:
    """Rings that meet one process and two, in turns."""
    one: list[float] = []
    two: list[float] = []
    callers = count(100)
    async with (
        EmulatedDeepgram(KEY, lambda heard: "Yes.") as engine,
        FleetTwilio(TOKEN, speed=10.0) as twilio,
        serving(home, database, engine.url) as (first, _),
        serving(home, database, engine.url) as (second, _),
    ):
        for number in range(-2, rings):
            twilio.webhook, other = (first, second) if number % 2 else (second, first)
            for taken, stream in ((one, twilio.webhook), (two, other)):
                twilio.stream = stream
                seconds = await measure_ring(twilio, next(callers))
                if number >= 0:  # the first rings open connections
                    taken.append(seconds)
    return one, two


async def measure_live(
    home: str, database: str, calls: int, seconds: float
) -> tuple[list[float], list[float]]:
    """Processor time of a call and second: with one server on the line, and with two; in turns,
    so that what else the machine does meets both.
    """
    load = Load()
    agent = await load.serve_engine()
    one: list[float] = []
    two: list[float] = []
    async with (
        serving(home, database, agent, public="") as first,
        serving(home, database, agent, public="") as second,
    ):
        callers = count(1_000, calls)
        for number in range(2 * ROUNDS):
            servers, costs = ([first], one) if number % 2 else ([first, second], two)
            for port, _ in servers:
                address = f"http://127.0.0.1:{port}"
                await connect(load, "aftercall", address, calls, next(callers))
            await asyncio.sleep(2)
            began, spent = time.monotonic(), sum(cpu_s(pid) for _, pid in servers)
            await asyncio.sleep(seconds)
            spent = sum(cpu_s(pid) for _, pid in servers) - spent
            costs.append(spent / (time.monotonic() - began) / (calls * len(servers)))
            load.hang_up()
            await asyncio.sleep(8)  # follow-up work is not the price of a live call
        await load.stop()
    return one, two


def show_live(one: list[float], two: list[float], calls: int) -> None:
    carried = 2 * median(one) / median(two)
    print_table(
        f"Processor time of a live call, {calls} on each process, Postgres",
        ("processes", *(f"round {number + 1}" for number in range(ROUNDS)), "median"),
        [
            (name, *(f"{100 * cost:.2f} %" for cost in (*costs, median(costs))))
            for name, costs in (("one", one), ("two", two))
        ],
    )
    goal = f"goal ≥ {MIN_CARRIED:g}: {met(carried >= MIN_CARRIED)}"
    print(f"two processes carry {carried:.2f} × the live calls of one, {goal}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rings", type=int, default=20)
    parser.add_argument("--live", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=15.0)
    options = parser.parse_args()
    rings, live = options.rings, options.live
    with postgres() as (make_database, _), tempfile.TemporaryDirectory() as home:
        one, two = asyncio.run(measure(str(Path(home)), make_database(), rings))
    with postgres() as (make_database, _), tempfile.TemporaryDirectory() as home:
        costs = asyncio.run(measure_live(home, make_database(), live, options.seconds))
    show_live(*costs, live)
    ratio = median(two) / median(one)
    rows = [
        (name, f"{median(s) * 1e3:.0f}", f"{percentile(s, 0.95) * 1e3:.0f}")
        for name, s in (("one process", one), ("two processes", two))
    ]
    print_table(
        f"Ring to first audio, {rings} rings each, Postgres (ms)",
        ("webhook and stream meet", "median", "p95"),
        rows,
    )
    print(f"ratio {ratio:.2f}, goal ≤ {MAX_RATIO:g}: {met(ratio <= MAX_RATIO)}")


if __name__ == "__main__":
    main()
