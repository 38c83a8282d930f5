"""Processes that do nothing but the work after calls, as `aftercall worker` does, with a reader that answers at once."""

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.synchronize import Event
from pathlib import Path

from aftercall.app import build
from aftercall.running import running
from aftercall.settings import DatabaseSettings, Settings
from aftercall.testing import FakeReader

START_WITHIN_S = 60


@contextmanager
def offices(number: int, home: Path, database: str) -> Iterator[None]:
    spawn = multiprocessing.get_context("spawn")
    stop, ready = spawn.Event(), [spawn.Event() for _ in range(number)]
    processes = [spawn.Process(target=_run, args=(str(home), database, is_ready, stop)) for is_ready in ready]
    for process, is_ready in zip(processes, ready, strict=True):
        process.start()
        is_ready.wait(START_WITHIN_S)
    try:
        yield
    finally:
        stop.set()
        for process in processes:
            process.join()


def _run(home: str, database: str, is_ready: Event, stop: Event) -> None:
    asyncio.run(_work(home, database, is_ready, stop))


async def _work(home: str, database: str, is_ready: Event, stop: Event) -> None:
    app = replace(build(Settings(home=Path(home), database=DatabaseSettings(url=database), model="rules")), reader=FakeReader())
    async with running(app):
        is_ready.set()
        await asyncio.to_thread(stop.wait)
    app.close()
