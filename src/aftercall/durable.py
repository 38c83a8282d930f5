"""The durable engine: configured, launched and ended here, once in a process.

What it runs stands where the work is (postcall, work). The version is ours and explicit: an edited comment strands nothing.
"""

import asyncio
import logging
import sqlite3
import sys
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec

from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, EnqueueOptions, WorkflowHandleAsync
from sqlalchemy import create_engine, inspect

from aftercall.log import get_logger
from aftercall.settings import Settings

NAME = "aftercall"
VERSION = "1"
POLL_S = 5.0  # a look costs the engine more than a millisecond; what is in a hurry is begun without the queue
SELDOM_S = 60.0
FILE = "work.db"
SCHEMA = "dbos"
CONSOLE = "__dbos_console_log_handler__"
SOME = 200
THREADS = 32  # the engine's and, as it puts them under the loop, everybody's: long downloads must not hold up its own records

P = ParamSpec("P")

log = get_logger("durable")

# By queue: what was begun without it. One at a time in a process, because the engine is one.
_at_hand: dict[str, set["asyncio.Task[None]"]] = {}


async def launch(settings: Settings, process: str) -> None:
    """Start the engine in this loop, as the executor named after this process."""
    _point_logs_here()
    DBOS(config=_engine_config(settings, process))
    DBOS.launch()


def _point_logs_here() -> None:
    """The engine's log goes to what standard error is now: the one it first saw may be closed, and it flushes at every launch."""
    for handler in logging.getLogger("dbos").handlers:
        if isinstance(handler, logging.StreamHandler) and handler.name == CONSOLE:
            handler.stream = sys.stderr


async def close(patience_s: int = 5) -> None:
    await asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=patience_s)
    watching = [task for tasks in _at_hand.values() for task in tasks]
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    _at_hand.clear()
    # The engine had put its own threads under this loop and has just ended them.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="aftercall"))


async def open_queue(name: str, at_once: int, *, poll_s: float = POLL_S, limit: int | None = None, period_s: float = 60.0) -> None:
    """With a limit no more than so many begin in a period; the others wait their turn, and none is lost."""
    await DBOS.register_queue_async(
        name,
        worker_concurrency=at_once,
        limiter={"limit": limit, "period": period_s} if limit else None,
        polling_interval_sec=poll_s,
    )


def room_for(queue: str, few: int) -> int:
    """How many more can be begun without the queue."""
    return max(0, few - len(_at_hand.get(queue, ())))


async def begin(queue: str, few: int, workflow: Callable[P, Coroutine[Any, Any, None]], *args: P.args, **kwargs: P.kwargs) -> None:
    """Begin the workflow whose id has been set: here and now while a few are at hand, else in its turn in the queue.

    Either way it is on record before this returns, and one whose id is known already stays as it is.
    """
    if not room_for(queue, few):
        await DBOS.enqueue_workflow_async(queue, workflow, *args, **kwargs)
        return
    handle = await DBOS.start_workflow_async(workflow, *args, **kwargs)
    watching = asyncio.create_task(_watch(handle))
    mine = _at_hand.setdefault(queue, set())
    mine.add(watching)
    watching.add_done_callback(mine.discard)


async def _watch(handle: WorkflowHandleAsync[None]) -> None:
    with suppress(Exception):  # the edge of a workflow: how it failed is on record
        await handle.get_result(polling_interval_sec=SELDOM_S)


class Intake:
    """A way into the queues for many workflows at once: in one transaction, not each with a wait for the disk of its own."""

    def __init__(self, settings: Settings) -> None:
        url = _engine_url(settings)
        # On SQLite the write lock is taken at once: who reads first and then wants to write is refused instead of waiting.
        patience = {"isolation_level": "IMMEDIATE", "timeout": 30} if url.startswith("sqlite") else {}
        self._engine = create_engine(url, connect_args=patience, pool_pre_ping=True)
        self._client = DBOSClient(
            system_database_engine=self._engine,
            serializer=DBOSPortableJSONSerializer(),
            application_name=NAME,
            lazy=True,
            use_listen_notify=False,
        )

    def put(self, queue: str, workflow: str, entries: Sequence[tuple[str, Sequence[object]]]) -> None:
        """Each entry is an id and the arguments; one whose id is known already stays as it is."""
        with self._engine.begin() as connection:
            for workflow_id, arguments in entries:
                options: EnqueueOptions = {
                    "queue_name": queue,
                    "workflow_name": workflow,
                    "workflow_id": workflow_id,
                    "app_version": VERSION,
                }
                self._client.enqueue_in_transaction(connection, options, *arguments)

    def close(self) -> None:
        self._client.destroy()
        self._engine.dispose()


async def take_over(is_alive: Callable[[str], bool]) -> list[str]:
    """Go on with workflows whose process is gone, each on the queue it came from."""
    taken = []
    for status in await DBOS.list_workflows_async(status="PENDING", load_input=False, load_output=False):
        if not await asyncio.to_thread(is_alive, status.executor_id or ""):
            await DBOS.resume_workflow_async(status.workflow_id, queue_name=status.queue_name)
            taken.append(status.workflow_id)
    if taken:
        log.warning("took over unfinished work", workflows=len(taken))
    return taken


async def is_under_way(workflow_id: str) -> bool:
    """Whether a workflow runs, waits its turn, or will be taken over from a process that is gone."""
    status = await DBOS.get_workflow_status_async(workflow_id)
    return status is not None and status.status in ("PENDING", "ENQUEUED", "DELAYED")


async def forget(workflow_id: str) -> None:
    """Let go of a workflow that came to an end without finishing its work, so that it can be started anew under its name."""
    if await DBOS.get_workflow_status_async(workflow_id) is not None:
        await DBOS.delete_workflow_async(workflow_id)


def forget_workflows(settings: Settings, beginnings: Sequence[str]) -> int:
    """Take the state of ended workflows away, whose ids begin so; how many there were. Works beside a running server."""
    if not _has_run(settings):
        return 0
    client = DBOSClient(system_database_url=_engine_url(settings), serializer=DBOSPortableJSONSerializer())
    try:
        found: list[str] = []
        for start in range(0, len(beginnings), SOME):
            some = list(beginnings[start : start + SOME])
            found += [status.workflow_id for status in client.list_workflows(workflow_id_prefix=some, load_input=False, load_output=False)]
        if found:
            client.delete_workflows(found)
        return len(found)
    finally:
        client.destroy()


def _has_run(settings: Settings) -> bool:
    engine = create_engine(_engine_url(settings))
    try:
        return inspect(engine).has_table("workflow_status", schema=None if engine.dialect.name == "sqlite" else SCHEMA)
    finally:
        engine.dispose()


def scrub(settings: Settings) -> None:
    """Deleted rows linger in the engine's file until it is written anew."""
    if settings.database_url.startswith("sqlite"):
        connection = sqlite3.connect(settings.home / FILE, timeout=30)
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()


def _engine_config(settings: Settings, process: str) -> DBOSConfig:
    return {
        "name": NAME,
        "system_database_url": _engine_url(settings),
        "application_version": VERSION,
        "executor_id": process,
        "log_level": "ERROR",
        "serializer": DBOSPortableJSONSerializer(),
        "sys_db_pool_size": 4,
        "max_executor_threads": THREADS,
    }


def _engine_url(settings: Settings) -> str:
    """A file of its own beside ours on SQLite, a schema of its own on Postgres."""
    if not settings.database_url.startswith("sqlite"):
        return settings.database_url
    file = settings.home / FILE
    _write_ahead(file)
    return f"sqlite:///{file}"


def _write_ahead(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
