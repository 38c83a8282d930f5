"""What comes after a call, against the durable engine doing nothing: calls a second through the whole workflow, in one run.

python bench/bench_postcall.py [--calls 100] [--database URL]
"""

import argparse
import asyncio
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from dbos import DBOS, SetWorkflowID

from aftercall import durable
from aftercall.app import App, build
from aftercall.ids import new_id
from aftercall.postcall.office import Office
from aftercall.postcall.steps import STEPS
from aftercall.postcall.view import are_finished
from aftercall.postcall.workflow import QUEUE, close_office, open_office, start_due
from aftercall.settings import DatabaseSettings, ExtractionSettings, Settings
from aftercall.testing import FakeReader, make_call
from tables import met, print_table


@DBOS.step(name="bench.nothing")
async def do_nothing(call_id: str, name: str) -> None:
    return


@DBOS.workflow(name="bench.bare")
async def bare(call_id: str) -> None:
    await asyncio.gather(*(do_nothing(call_id, name) for name in STEPS))


async def time_bare(count: int) -> float:
    begun = time.perf_counter()
    handles = []
    for _ in range(count):
        with SetWorkflowID(new_id()):
            handles.append(await DBOS.enqueue_workflow_async(QUEUE, bare, "x"))
    for handle in handles:
        await handle.get_result()
    return count / (time.perf_counter() - begun)


async def time_ours(app: App, office: Office, count: int) -> float:
    calls = [make_call([("agent", "Hello!"), ("caller", "Please call the plumber.")], caller=f"+1555010{n:04}") for n in range(count)]
    for call in calls:
        app.journal.take_in(call)
    begun = time.perf_counter()
    await start_due(office)
    for call in calls:
        while not are_finished(await asyncio.to_thread(app.steps.of_call, call.id)):  # noqa: ASYNC110 - as another process would look
            await asyncio.sleep(0.01)
    return count / (time.perf_counter() - begun)


async def measure(home: Path, database: str, count: int) -> None:
    unlimited = ExtractionSettings(max_per_minute=1_000_000)
    app = build(Settings(home=home, database=DatabaseSettings(url=database), extraction=unlimited))
    app = replace(app, reader=FakeReader())
    office = app.office
    await durable.launch(app.settings, app.presence.process)
    await open_office(office)
    await time_bare(10)
    theirs, ours = await time_bare(count), await time_ours(app, office, count)
    await durable.close()
    close_office()
    app.close()
    share = ours / theirs
    print_table(
        f"After a call, {app.database.dialect}, {count} calls ending together, a reader that answers at once",
        ["", "calls/s", "share", "aim", ""],
        [
            ["the durable engine, as many steps that do nothing", f"{theirs:.1f}", "1.00", "", ""],
            ["every step after a call", f"{ours:.1f}", f"{share:.2f}", "≥ 0.60", met(share >= 0.6)],
        ],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--database", default="")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as folder:
        asyncio.run(measure(Path(folder), arguments.database, arguments.calls))
