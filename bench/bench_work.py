"""Follow-up work of many conversations that become due together, against the durable engine
doing nothing, in one run.

python bench/bench_work.py [--conversations 50] [--database URL]
"""

import argparse
import asyncio
import tempfile
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

from dbos import DBOS, SetWorkflowID

from aftercall import durable
from aftercall.app import App, build
from aftercall.ids import new_id
from aftercall.model.reading import Reading, Request
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from aftercall.work.workflow import QUEUE, close_work, open_work, start_due
from fakes import FakeReader, make_calls
from tables import print_table

ASKED = Reading(
    language="en",
    summary="Three things.",
    requests=(
        Request(
            kind="task", title="Order paper for the printer", turns=(2,), words="paper"
        ),
        Request(
            kind="reminder",
            title="Remind me to call Markus",
            due=date(2030, 2, 17),
            turns=(2,),
            words="Markus",
        ),
        Request(
            kind="note",
            title="Note that the cat is fine",
            person="Anna",
            turns=(2,),
            words="cat",
        ),
    ),
)
STEPS = 6  # of a run: gather, three requests, close, notice


@DBOS.step(name="bench.nothing_more")
async def do_nothing(number: int) -> None:
    return


@DBOS.workflow(name="bench.bare_run")
async def bare() -> None:
    for number in range(STEPS):
        await do_nothing(number)


async def time_bare(count: int) -> float:
    begun = time.perf_counter()
    handles = []
    for _ in range(count):
        with SetWorkflowID(new_id()):
            handles.append(await DBOS.enqueue_workflow_async(QUEUE, bare))
    for handle in handles:
        await handle.get_result()
    return count / (time.perf_counter() - begun)


async def time_ours(app: App, count: int) -> float:
    calls = make_calls(
        count, [("agent", "Hello!"), ("caller", "Three things, please.")]
    )
    for call in calls:
        app.journal.ingest(call)
    begun = time.perf_counter()
    while await asyncio.to_thread(app.work.runs.due, app.clock.now(), 0):
        await start_due(app.work)
    for call in calls:
        while (
            await asyncio.to_thread(app.work.runs.get, call.conversation)
        ).state != "done":
            await asyncio.sleep(0.01)
    return count / (time.perf_counter() - begun)


async def measure(home: Path, database: str, count: int) -> None:
    app = replace(
        build(
            Settings(
                home=home, database=DatabaseSettings(url=database), reconnect_window_s=0
            )
        ),
        reader=FakeReader(ASKED),
    )
    open_work(app.work)
    await durable.launch(app.settings, app.presence.process)
    await time_bare(5)
    theirs, ours = await time_bare(count), await time_ours(app, count)
    await durable.close(close_work)
    tasks = len(list((home / "workspace" / "tasks").glob("*.md")))
    app.close()
    rows = [
        [f"the durable engine, {STEPS} steps that do nothing", f"{theirs:.1f}", "1.00"],
        [
            f"three requests each, journal, promises; {tasks} task files made",
            f"{ours:.1f}",
            f"{ours / theirs:.2f}",
        ],
    ]
    print_table(
        f"Follow-up work, {app.database.dialect}, {count} conversations due together",
        ["", "conversations/s", "share"],
        rows,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--conversations", type=int, default=50)
    parser.add_argument("--database", default="")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as folder:
        asyncio.run(measure(Path(folder), arguments.database, arguments.conversations))
