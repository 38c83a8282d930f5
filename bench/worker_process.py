"""Calls that leave something at every step, a reader that answers at once, and processes that
do nothing but the work after calls.
"""

import asyncio
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.synchronize import Event
from pathlib import Path

from sqlalchemy import func, select, update

from aftercall.app import App, build
from aftercall.db.tables import calls, steps
from aftercall.model.reading import (
    OPEN_STATES,
    FactDraft,
    Identity,
    Profile,
    Reading,
    Request,
)
from aftercall.postcall.steps import list_steps
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings, WorkSettings
from fakes import FakeReader

START_WITHIN_S = 60
LOOK_S = 0.05
SAID = (
    ("agent", "Hello, this is Wren."),
    (
        "caller",
        "Hi, it's Bill Harker. I live in Graz. Please call the plumber about the kitchen sink.",
    ),
    ("agent", "I will call the plumber."),
    ("caller", "Thank you, bye."),
)
FOUND = Reading(
    language="en",
    summary="Bill Harker asked for a call to the plumber about the kitchen sink.",
    profile=Profile(name="Bill Harker", call_name="Bill"),
    identity=Identity(name="Wren"),
    requests=(
        Request(
            kind="other",
            title="Call the plumber",
            turns=(2,),
            words="Please call the plumber",
        ),
    ),
    facts=(
        FactDraft(
            category="person",
            text="Bill Harker lives in Graz.",
            summary="Lives in Graz",
            visibility="shared",
            confidence=0.9,
            turns=(2,),
            words="I live in Graz",
        ),
    ),
)


class AtOnce(FakeReader):
    """Named as the reader without a ration: what is measured is not somebody's limit a minute."""

    name = "rules"

    def __init__(self) -> None:
        super().__init__(FOUND)


def open_app(home: Path, database: str) -> App:
    """Without the follow-up work, which comes five minutes later and has benches of its own."""
    settings = Settings(
        home=home,
        database=DatabaseSettings(url=database),
        model="rules",
        work=WorkSettings(enabled=False),
    )
    return replace(build(settings), reader=AtOnce())


async def until_finished(app: App, count: int) -> None:
    """In a database with no other calls.

    A look costs one count, so that looking is not what is measured.
    """
    wanted = count * len(list_steps(app.step_runner.context))
    while await asyncio.to_thread(_count_ended, app) < wanted:
        await asyncio.sleep(LOOK_S)


def _count_ended(app: App) -> int:
    query = (
        select(func.count()).select_from(steps).where(steps.c.state.not_in(OPEN_STATES))
    )
    with app.database.read() as connection:
        return int(connection.execute(query).scalar() or 0)


def mark(app: App, postcall: str | None) -> None:
    """Say of every call that its work is due, or that nobody is to begin it yet."""
    with app.database.write() as connection:
        connection.execute(update(calls).values(postcall=postcall))


@dataclass
class Load:
    """Processors busy while something ran: those of the whole machine, and those of each
    process that was looked at.
    """

    machine: float = 0.0
    processes: tuple[float, ...] = ()
    server: float = 0.0
    """A database server with all its children."""


@contextmanager
def measured_load(processes: list[int], server: int | None = None) -> Iterator[Load]:
    """By the counters of Linux; elsewhere the figures stay nothing."""
    load = Load()
    begun, before = time.perf_counter(), [*_seconds(processes), _family_seconds(server)]
    try:
        yield load
    finally:
        took = time.perf_counter() - begun
        after = [*_seconds(processes), _family_seconds(server)]
        machine, *each, family = (
            (now - then) / took for now, then in zip(after, before, strict=True)
        )
        load.machine, load.processes, load.server = machine, tuple(each), family


def _seconds(processes: list[int]) -> list[float]:
    try:
        tick = os.sysconf("SC_CLK_TCK")
        user, nice, system, _idle, _waiting, irq, soft, *_ = map(
            int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        )
        each = [
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            for pid in processes
        ]
    except (OSError, ValueError):
        return [0.0] * (1 + len(processes))
    return [
        (user + nice + system + irq + soft) / tick,
        *((int(fields[11]) + int(fields[12])) / tick for fields in each),
    ]


def _family_seconds(parent: int | None) -> float:
    """Of a process, of its children, and of those that have ended."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat") if parent else ():
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(stat.parent.name) == parent:
            total += sum(map(int, fields[11:15]))
        elif int(fields[1]) == parent:
            total += sum(map(int, fields[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


@contextmanager
def workers(number: int, home: Path, database: str) -> Iterator[list[int]]:
    """So many processes at work as `aftercall worker` is; their ids."""
    spawn = multiprocessing.get_context("spawn")
    stop, ready = spawn.Event(), [spawn.Event() for _ in range(number)]
    processes = [
        spawn.Process(target=_run, args=(str(home), database, is_ready, stop))
        for is_ready in ready
    ]
    for process, is_ready in zip(processes, ready, strict=True):
        process.start()
        is_ready.wait(START_WITHIN_S)
    try:
        yield [process.pid or 0 for process in processes]
    finally:
        stop.set()
        for process in processes:
            process.join()


def _run(home: str, database: str, is_ready: Event, stop: Event) -> None:
    asyncio.run(_work(open_app(Path(home), database), is_ready.set, stop))


async def _work(app: App, tell: Callable[[], None], stop: Event) -> None:
    async with running(app):
        tell()
        await asyncio.to_thread(stop.wait)
    app.close()
