"""What 10,000 calls at once would need: costs are measured here in a short run of one server on
Postgres, and carried over to a fleet by simulating a balancer that knows nothing.

python bench/simulate_fleet.py [--calls 100 1000 3000 10000] [--live 10] [--seconds 20]

Costs are processor time that Linux counts for the server and for Postgres, so a busy machine
changes them little. The cost of a process is that of one with a single call: only one that
nobody calls looks for work less often. What is not measured is an argument: the length of a
call, the cores of the Postgres machine and the price of a core. The simulation spreads calls
over processes by chance and lets them come and go, so the busiest process counts and not the
average one.
"""

import argparse
import asyncio
import math
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, create_engine, text

from aftercall.lab.deepgram import EmulatedDeepgram
from bench_fleet import KEY, PUBLIC, TOKEN, FleetTwilio
from bench_idle import address_in, get, process
from bench_postcall import postgres
from tables import print_table

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SETTLE_S = 10.0
PAUSE_S = 2.0  # a caller speaks, listens, speaks
MAX_CORE_SHARE = 0.7  # of the core that a process has: more makes audio late
TURNOVERS = 3
SECONDS_AN_HOUR = 3600


@dataclass(frozen=True)
class Sample:
    """What was used until now, by the server and by Postgres."""

    at_s: float
    server_cpu_s: float
    postgres_cpu_s: float
    commits: int
    wal_bytes: int
    rss_bytes: int
    connections: int


@dataclass(frozen=True)
class Costs:
    """Of a call while it goes on (a second), of one after its end, and of a process with one."""

    live_cores: float
    live_postgres_cores: float
    live_commits: float
    live_bytes: float
    after_cpu_s: float
    after_postgres_cpu_s: float
    after_commits: float
    call_wal_bytes: float
    alone_cores: float
    alone_postgres_cores: float
    alone_commits: float
    alone_bytes: float
    connections: int
    max_connections: int


@dataclass(frozen=True)
class Fleet:
    """What a number of calls at once needs."""

    calls: int
    processes: int
    busiest_cores: float
    connections: int
    postgres_cores: float
    commits: float
    wal_bytes: float
    memory_bytes: float


def read_cpu_s(pid: int) -> float:
    """Of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / TICKS_A_SECOND


def read_tree_cpu_s(parent: int) -> float:
    total = read_cpu_s(parent)
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    for pid in children.split():
        try:
            total += read_cpu_s(int(pid))
        except FileNotFoundError:  # it has just ended, and its parent has its time
            continue
    return total


class Meter:
    def __init__(self, server: int, postgres_pid: int, engine: Engine) -> None:
        self._server = server
        self._postgres = postgres_pid
        self._engine = engine

    def read(self) -> Sample:
        with self._engine.connect() as connection:
            commits, connections, wal = connection.execute(
                text(
                    "SELECT xact_commit, numbackends, pg_current_wal_lsn() - '0/0' "
                    "FROM pg_stat_database WHERE datname = current_database()"
                )
            ).one()
        pages = Path(f"/proc/{self._server}/statm").read_text().split()[1]
        return Sample(
            time.perf_counter(),
            read_tree_cpu_s(self._server),
            read_tree_cpu_s(self._postgres),
            commits,
            int(wal),
            int(pages) * PAGE_BYTES,
            connections - 1,  # without this one
        )

    def read_max_connections(self) -> int:
        with self._engine.connect() as connection:
            return int(connection.execute(text("SHOW max_connections")).scalar_one())


@contextmanager
def serving(home: str, database: str, engine: str) -> Iterator[tuple[int, str]]:
    """`aftercall serve`, ready for calls: its process and its address."""
    options = {
        "AFTERCALL_DATABASE_URL": database,
        "AFTERCALL_PUBLIC_URL": PUBLIC,
        "AFTERCALL_ENGINE": "deepgram",
        "AFTERCALL_DEEPGRAM_URL": engine,
        "AFTERCALL_RECONNECT_WINDOW_S": "1",
        "DEEPGRAM_API_KEY": KEY,
        "TWILIO_AUTH_TOKEN": TOKEN,
    }
    arguments = ["-m", "aftercall", "serve", "--port", "0"]
    with process(arguments, Path(home), options) as (pid, line):
        address = address_in(line)
        get(f"{address}/readyz")
        yield pid, address


async def talk(twilio: FleetTwilio, number: int, until_s: float) -> None:
    call = await twilio.ring(f"{PUBLIC}/twilio/voice", caller=f"+1555{number:07}")
    assert call.phone is not None, call.fault
    await call.phone.wait_for_audio(1)
    while time.perf_counter() < until_s:
        call.phone.queue_text(f"Please call plumber {number}.")
        await asyncio.sleep(PAUSE_S)
    await twilio.hang_up(call)


async def wait_for_work(address: str, calls: int) -> None:
    """Until every call has been sealed and its work is over."""
    sealed = 0
    while sealed < calls:
        await asyncio.sleep(1)
        metrics = await asyncio.to_thread(get, f"{address}/metrics")
        values = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line)
        is_pending = float(values["aftercall_oldest_pending_seconds"]) > 0
        is_live = float(values["aftercall_live_calls"]) > 0
        sealed = 0 if is_pending or is_live else calls


async def measure(home: str, database: str, pid: int, live: int, s: float) -> Costs:
    engine = create_engine(database, isolation_level="AUTOCOMMIT")
    async with (
        EmulatedDeepgram(KEY, lambda heard: "Taken down.") as voice,
        FleetTwilio(TOKEN) as twilio,
    ):
        with serving(home, database, voice.url) as (server, address):
            twilio.webhook = twilio.stream = int(address.rpartition(":")[2])
            meter = Meter(server, pid, engine)
            until_s = time.perf_counter() + 2 * SETTLE_S + s
            first = asyncio.create_task(talk(twilio, live, until_s))
            await asyncio.sleep(SETTLE_S)  # opens what is opened once
            begun = await asyncio.to_thread(meter.read)
            await asyncio.sleep(SETTLE_S)
            alone = await asyncio.to_thread(meter.read)
            talking = [talk(twilio, number, until_s) for number in range(live)]
            calls = asyncio.gather(*talking)
            await asyncio.sleep(s)
            busy = await asyncio.to_thread(meter.read)
            await asyncio.gather(first, calls)
            await wait_for_work(address, live + 1)
            done = await asyncio.to_thread(meter.read)
            most = meter.read_max_connections()
    engine.dispose()
    return compute_costs((begun, alone, busy, done), live, most)


def compute_costs(samples: Sequence[Sample], live: int, max_connections: int) -> Costs:
    begun, alone, busy, done = samples
    alone_s, busy_s, done_s = (
        after.at_s - before.at_s
        for before, after in ((begun, alone), (alone, busy), (busy, done))
    )
    alone_cores = (alone.server_cpu_s - begun.server_cpu_s) / alone_s
    alone_postgres = (alone.postgres_cpu_s - begun.postgres_cpu_s) / alone_s
    alone_commits = (alone.commits - begun.commits) / alone_s

    def share(total: float, alone_rate: float, seconds: float) -> float:
        """Of one call, without what the process costs anyway."""
        return max(0.0, total - alone_rate * seconds) / live

    return Costs(
        share(busy.server_cpu_s - alone.server_cpu_s, alone_cores, busy_s) / busy_s,
        share(busy.postgres_cpu_s - alone.postgres_cpu_s, alone_postgres, busy_s)
        / busy_s,
        share(busy.commits - alone.commits, alone_commits, busy_s) / busy_s,
        max(0, busy.rss_bytes - alone.rss_bytes) / live,
        share(done.server_cpu_s - busy.server_cpu_s, alone_cores, done_s),
        share(done.postgres_cpu_s - busy.postgres_cpu_s, alone_postgres, done_s),
        share(done.commits - busy.commits, alone_commits, done_s),
        (done.wal_bytes - alone.wal_bytes) / live,
        alone_cores,
        alone_postgres,
        alone_commits,
        alone.rss_bytes,
        max(sample.connections for sample in samples),
        max_connections,
    )


def find_busiest(calls: int, processes: int, luck: random.Random) -> int:
    """The most calls that one process has while calls come and go."""
    owners = [luck.randrange(processes) for _ in range(calls)]
    loads = [0] * processes
    for owner in owners:
        loads[owner] += 1
    most = max(loads)
    for _ in range(calls * TURNOVERS):
        ended = luck.randrange(calls)
        loads[owners[ended]] -= 1
        owners[ended] = luck.randrange(processes)
        loads[owners[ended]] += 1
        most = max(most, loads[owners[ended]])
    return most


def simulate(costs: Costs, calls: int, call_s: float) -> Fleet:
    """The fewest processes of which the busiest keeps up with its audio."""
    cores = costs.live_cores + costs.after_cpu_s / call_s
    processes = max(1, math.ceil(calls * cores / (MAX_CORE_SHARE - costs.alone_cores)))
    luck = random.Random(calls)
    while True:
        busiest = find_busiest(calls, processes, luck) * cores + costs.alone_cores
        if busiest <= MAX_CORE_SHARE:
            break
        processes += max(1, processes // 50)
    rings = calls / call_s
    return Fleet(
        calls,
        processes,
        busiest,
        processes * costs.connections,
        calls * costs.live_postgres_cores
        + rings * costs.after_postgres_cpu_s
        + processes * costs.alone_postgres_cores,
        calls * costs.live_commits
        + rings * costs.after_commits
        + processes * costs.alone_commits,
        rings * costs.call_wal_bytes,
        processes * costs.alone_bytes + calls * costs.live_bytes,
    )


def name_first_limit(fleet: Fleet, costs: Costs, postgres_cores: int) -> str:
    """What is passed most, if anything is."""
    shares = {
        "Postgres connections": fleet.connections / costs.max_connections,
        "Postgres cores": fleet.postgres_cores / postgres_cores,
    }
    name = max(shares, key=lambda one: shares[one])
    return f"{name} ({shares[name]:.1f} ×)" if shares[name] > 1 else "none"


def print_costs(costs: Costs, live: int) -> None:
    rows = [
        (
            "a call while it goes on",
            f"{costs.live_cores * 1e3:.1f}",
            f"{costs.live_postgres_cores * 1e3:.1f}",
            f"{costs.live_commits:.2f}",
        ),
        (
            "a process with one",
            f"{costs.alone_cores * 1e3:.1f}",
            f"{costs.alone_postgres_cores * 1e3:.1f}",
            f"{costs.alone_commits:.2f}",
        ),
        (
            "after a call, in all",
            f"{costs.after_cpu_s * 1e3:.0f}",
            f"{costs.after_postgres_cpu_s * 1e3:.0f}",
            f"{costs.after_commits:.0f}",
        ),
    ]
    columns = ("", "server, ms", "Postgres, ms", "transactions")
    print_table(f"Measured with {live} live calls, each second", columns, rows)
    print(
        f"memory: {costs.alone_bytes / 1e6:.0f} MB a process and "
        f"{costs.live_bytes / 1e6:.2f} MB a live call; {costs.connections} connections a "
        f"process; {costs.call_wal_bytes / 1e3:.0f} kB of Postgres log a call"
    )


def print_fleets(
    fleets: Sequence[Fleet], costs: Costs, postgres_cores: int, core_usd: float
) -> None:
    rows = []
    for fleet in fleets:
        cores = fleet.processes + fleet.postgres_cores
        usd = cores * core_usd
        minutes = fleet.calls * SECONDS_AN_HOUR / 60
        rows.append(
            (
                f"{fleet.calls:,}",
                f"{fleet.processes:,}",
                f"{fleet.memory_bytes / 1e9:.1f}",
                f"{fleet.connections:,}",
                f"{fleet.postgres_cores:.1f}",
                f"{fleet.commits:,.0f}",
                f"{fleet.calls / fleet.processes:.0f}",
                f"{usd:.2f}",
                f"{usd / minutes * 1e3:.3f}",
                name_first_limit(fleet, costs, postgres_cores),
            )
        )
    columns = (
        "calls",
        "processes",
        "GB",
        "connections",
        "pg cores",
        "tx/s",
        "lost/kill",
        "$/h",
        "$/1,000 min",
        "passed first",
    )
    print_table("Calls at once, one core a process", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = [100, 1_000, 3_000, 10_000]
    parser.add_argument("--calls", type=int, nargs="+", default=sizes)
    parser.add_argument("--live", type=int, default=10, help="calls that are measured")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--call-seconds", type=float, default=180.0)
    parser.add_argument("--postgres-cores", type=int, default=16)
    parser.add_argument("--core-usd", type=float, default=0.04, help="a core, an hour")
    given = parser.parse_args()
    print(f"load of this machine before: {os.getloadavg()[0]:.1f}")
    with postgres() as (make_database, pid), tempfile.TemporaryDirectory() as home:
        assert pid is not None
        database = make_database()
        costs = asyncio.run(measure(home, database, pid, given.live, given.seconds))
    print_costs(costs, given.live)
    fleets = [simulate(costs, calls, given.call_seconds) for calls in given.calls]
    print_fleets(fleets, costs, given.postgres_cores, given.core_usd)


if __name__ == "__main__":
    main()
