"""The durable engine (DBOS): configured, launched and closed here, once per process.

Workflows are defined where their work is (postcall, work, privacy). A part registers its queues
before the launch, because the engine starts waiting workflows at once. The application version
is a constant, so that a changed line of code does not strand waiting workflows.
"""

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from datetime import datetime
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from dbos import (
    DBOS,
    DBOSClient,
    DBOSConfig,
    DBOSPortableJSONSerializer,
    WorkflowHandleAsync,
)
from sqlalchemy import Engine, create_engine, event, inspect
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ProgrammingError

from aftercall.disk import open_locked
from aftercall.errors import AftercallError, to_aftercall_error
from aftercall.log import capture_library_logs, get_logger, get_place
from aftercall.model.json_fields import Json
from aftercall.settings import Settings
from aftercall.settings.sections import list_postgres_timeouts

APPLICATION_NAME = "aftercall"
APPLICATION_VERSION = "1"
# a poll costs more than a millisecond; urgent workflows start without the queue
QUEUE_POLL_INTERVAL_S = 5.0
RESULT_POLL_INTERVAL_S = 60.0
ENGINE_DATABASE_FILE = "work.db"
ENGINE_LOCK_FILE = "work.lock"
ENGINE_SCHEMA = "dbos"
DELETE_BATCH_SIZE = 200
MAX_DELETED_AT_ONCE = 10_000
CLOSE_TIMEOUT_S = 5.0
REQUEUE_TIMEOUT_S = 2.0
MAX_THREADS = 32  # the engine makes its pool the default of the loop
MAX_STEP_PAUSE_S = 600.0
MAX_REQUESTED_PAUSE_S = 3600.0
MAX_STEP_ATTEMPTS = 150  # about a day
SUBSECOND_SQLITE_VERSION = (3, 42)

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
AsyncFunction = Callable[P, Coroutine[Any, Any, T]]

log = get_logger("durable")

# Workflows that were started without their queue, by queue.
_direct_runs: dict[str, set["asyncio.Task[None]"]] = {}
_queue_options: dict[str, Json] = {}
_running: set["asyncio.Task[Any]"] = set()
_threads: ThreadPoolExecutor | None = None
_engine: DBOS | None = None


def workflow(
    name: str,
) -> Callable[[AsyncFunction[P, None]], AsyncFunction[P, None]]:
    """Registers a workflow that `close` waits for."""

    def register(
        body: AsyncFunction[P, None],
    ) -> AsyncFunction[P, None]:
        @wraps(body)
        async def run(*args: P.args, **kwargs: P.kwargs) -> None:
            task = asyncio.current_task()
            if task is not None:
                _running.add(task)
                task.add_done_callback(_running.discard)
            await body(*args, **kwargs)

        return DBOS.workflow(name=name)(run)

    return register


def step(
    name: str, attempts: int = 1
) -> Callable[[AsyncFunction[P, T]], AsyncFunction[P, T]]:
    """Registers a step. It is tried again with doubling pauses while its error is retryable.

    The engine stores errors as text. A final failure is therefore returned as a value with code
    and reason, and raised again from it, also by a replay in another process.
    """

    def register(
        body: AsyncFunction[P, T],
    ) -> AsyncFunction[P, T]:
        @DBOS.step(
            name=name,
            retries_allowed=attempts > 1,
            max_attempts=attempts,
            should_retry=is_retryable,
        )
        async def attempt(*args: P.args, **kwargs: P.kwargs) -> Json:
            try:
                return {"value": await body(*args, **kwargs)}
            except Exception as error:  # the edge of a step: the workflow records it
                if is_retryable(error) and not _is_last_attempt():
                    raise
                ours = to_step_error(error, step=name)
            return {"code": ours.code, "reason": str(ours)}

        @wraps(body)
        async def run(*args: P.args, **kwargs: P.kwargs) -> T:
            ended = await attempt(*args, **kwargs)
            if "code" in ended:
                failure = AftercallError(ended["reason"])
                failure.code = ended["code"]
                raise failure
            value: T = ended["value"]
            return value

        return run

    return register


class ThreadSteps(Generic[S]):
    """Makes steps that work in a thread, with a part that this process has opened."""

    def __init__(self, attempts: int, get_part: Callable[[], S]) -> None:
        self._attempts = attempts
        self._get_part = get_part

    def make(
        self, name: str, work: Callable[Concatenate[S, P], T]
    ) -> AsyncFunction[P, T]:
        @wraps(work)
        async def run(*args: P.args, **kwargs: P.kwargs) -> T:
            return await run_in_thread(work, self._get_part(), *args, **kwargs)

        return step(name, self._attempts)(run)


def to_step_error(error: BaseException, **about: str) -> AftercallError:
    """The error as it is recorded and shown.

    The log names the class and place of a foreign error. Its text may hold speech.
    """
    ours = to_aftercall_error(error)
    if ours is not error:
        name = type(error).__name__
        log.error("a step broke", error=name, place=get_place(error), **about)
    return ours


def is_retryable(error: BaseException) -> bool:
    return isinstance(error, AftercallError) and error.retryable


def next_pause_s(attempts: int, requested_s: float | None = None) -> float | None:
    """The pause after so many attempts: doubles up to ten minutes, ends after about a day.

    At least as long as the other side requested. None: give up.
    """
    if attempts >= MAX_STEP_ATTEMPTS:
        return None
    usual_s = min(2.0 ** min(attempts - 1, 20), MAX_STEP_PAUSE_S)
    return max(usual_s, min(requested_s or 0.0, MAX_REQUESTED_PAUSE_S))


def _is_last_attempt() -> bool:
    status = DBOS.step_status
    if status is None or status.current_attempt is None or status.max_attempts is None:
        return True
    return status.current_attempt + 1 >= status.max_attempts


async def run_in_thread(job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Like `asyncio.to_thread`, but `close` waits for the threads."""
    global _threads
    if _threads is None:
        _threads = ThreadPoolExecutor(
            MAX_THREADS, thread_name_prefix="aftercall-durable"
        )
    run = partial(copy_context().run, job, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_threads, run)


@event.listens_for(Engine, "connect")
def add_subsecond_clock(connection: Any, _record: Any) -> None:
    """From Python 3.12 on, DBOS calls `unixepoch('subsec')`, which is new in SQLite 3.42."""
    if (
        isinstance(connection, sqlite3.Connection)
        and sqlite3.sqlite_version_info < SUBSECOND_SQLITE_VERSION
    ):
        connection.create_function("unixepoch", 1, lambda _: round(time.time(), 3))


async def launch(settings: Settings, process: str) -> None:
    """Start the engine in this loop. Workflows and queues are registered by now."""
    global _engine
    capture_library_logs(logging.getLogger("dbos"))
    with _held_start(settings):
        await asyncio.to_thread(_update_queues, settings)
        _engine = DBOS(config=_engine_config(settings, process))
        DBOS.launch()
    for name, options in _queue_options.items():
        await DBOS.register_queue_async(name, **options, on_conflict="always_update")


@contextmanager
def _held_start(settings: Settings) -> Iterator[None]:
    """On SQLite, two processes that make the engine's tables at once would trip each other."""
    if make_url(settings.database_url).get_backend_name() != "sqlite":
        yield
        return
    lock = open_locked(settings.home / ENGINE_LOCK_FILE)
    try:
        yield
    finally:
        os.close(lock)


def is_launched() -> bool:
    """False in a process that serves pages only, as tests do."""
    return _engine is not None


def _update_queues(settings: Settings) -> None:
    """Store the queue options before the launch: the first poll reads stored options."""
    if not _has_engine_tables(settings):
        return
    client = DBOSClient(
        system_database_url=_engine_url(settings),
        serializer=DBOSPortableJSONSerializer(),
        application_name=APPLICATION_NAME,
    )
    try:
        with suppress(ProgrammingError):  # another process is making the tables
            for name, options in _queue_options.items():
                client.register_queue(name, **options, on_conflict="always_update")
    finally:
        client.destroy()


async def close(
    close_parts: Callable[[], None] = lambda: None, timeout_s: float = CLOSE_TIMEOUT_S
) -> None:
    """Stop the queues, wait for running workflows, requeue those that take longer, end the engine.

    `close_parts` closes what the workflows use.
    """
    global _threads, _engine
    if _engine is not None:
        for stop_event in _engine.background_thread_stop_events:
            stop_event.set()
    if _running:
        await asyncio.wait(_running, timeout=timeout_s)
    unfinished = len(_running)
    await _cancel(_running)
    await asyncio.to_thread(close_parts)
    if _threads is not None:
        await asyncio.to_thread(_threads.shutdown)
    if unfinished and _engine is not None:
        log.warning("unfinished workflows go back to their queue", workflows=unfinished)
        # After a timeout, other processes find this one gone and take over its workflows.
        with suppress(TimeoutError):
            await asyncio.wait_for(_requeue([DBOS.executor_id]), REQUEUE_TIMEOUT_S)
    await asyncio.to_thread(DBOS.destroy)
    await _cancel(task for tasks in _direct_runs.values() for task in tasks)
    _direct_runs.clear()
    _queue_options.clear()
    _threads = _engine = None
    # The engine had made its own pool the default of this loop and has just closed it.
    asyncio.get_running_loop().set_default_executor(
        ThreadPoolExecutor(thread_name_prefix="aftercall")
    )


async def _cancel(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def register_queue(
    name: str,
    concurrency: int,
    *,
    poll_s: float = QUEUE_POLL_INTERVAL_S,
    limit: int | None = None,
    period_s: float = 60.0,
) -> None:
    """Register a queue for `launch`. At most `limit` workflows start in a period."""
    _queue_options[name] = {
        "worker_concurrency": concurrency,
        "limiter": {"limit": limit, "period": period_s} if limit else None,
        "polling_interval_sec": poll_s,
    }


async def start_workflow(
    queue: str,
    max_direct: int,
    workflow: AsyncFunction[P, None],
    *args: P.args,
    **kwargs: P.kwargs,
) -> None:
    """Start the workflow whose id has been set: at once, or by the queue if `max_direct` run.

    The workflow is on record when this returns. A workflow with a known id is left as it is.
    """
    direct_runs = _direct_runs.setdefault(queue, set())
    if len(direct_runs) >= max_direct:
        await DBOS.enqueue_workflow_async(queue, workflow, *args, **kwargs)
        return
    handle = await DBOS.start_workflow_async(workflow, *args, **kwargs)
    run = asyncio.create_task(_wait_for(handle))
    direct_runs.add(run)
    run.add_done_callback(direct_runs.discard)


def count_free_places(queue: str, max_direct: int) -> int:
    """How many workflows `start_workflow` would start without their queue."""
    return max(0, max_direct - len(_direct_runs.get(queue, ())))


async def _wait_for(handle: WorkflowHandleAsync[None]) -> None:
    with suppress(Exception):  # the edge of a workflow: its failure is on record
        await handle.get_result(polling_interval_sec=RESULT_POLL_INTERVAL_S)


async def requeue_orphans(is_alive: Callable[[str], bool]) -> int:
    """Put workflows whose process is gone back into the queue each came from; how many there
    were.
    """
    pending = await DBOS.list_workflows_async(
        status="PENDING", load_input=False, load_output=False
    )
    owners = {status.executor_id for status in pending if status.executor_id}
    dead = [
        owner for owner in sorted(owners) if not await run_in_thread(is_alive, owner)
    ]
    taken = await _requeue(dead) if dead else 0
    if taken:
        log.warning("took over unfinished workflows", workflows=taken)
    return taken


async def _requeue(executors: list[str]) -> int:
    """Put the workflows of these executors back into their queues.

    A row changes only while it belongs to one of them, so a workflow that another process has
    taken over stays there. The public `resume_workflow` does not check the executor.
    """
    return len(await asyncio.to_thread(DBOS._recover_pending_workflows, executors))


async def is_active(workflow_id: str) -> bool:
    """True if a workflow runs, waits, or will be taken over from a dead process."""
    return await has_ended(workflow_id) is False


async def has_ended(workflow_id: str) -> bool | None:
    """None if there is no such workflow."""
    status = await DBOS.get_workflow_status_async(workflow_id)
    if status is None:
        return None
    return status.status not in ("PENDING", "ENQUEUED", "DELAYED")


async def delete_workflow(workflow_id: str) -> None:
    """Delete an ended workflow, so that it can be started again with the same id."""
    if await DBOS.get_workflow_status_async(workflow_id) is not None:
        await DBOS.delete_workflow_async(workflow_id)


async def delete_finished(before: datetime) -> int:
    """Delete workflows that ended before a time, oldest first; returns their number.

    Our own tables say what was done. An ended workflow is kept for a while only because one
    that is started twice then runs once.
    """
    deleted = 0
    while deleted < MAX_DELETED_AT_ONCE:
        ended = await DBOS.list_workflows_async(
            status=["SUCCESS", "ERROR", "CANCELLED"],
            completed_before=before.isoformat(),
            limit=DELETE_BATCH_SIZE,
            load_input=False,
            load_output=False,
        )
        if not ended:
            break
        await DBOS.delete_workflows_async([status.workflow_id for status in ended])
        deleted += len(ended)
    return deleted


def delete_workflows(settings: Settings, id_prefixes: Sequence[str]) -> int:
    """Delete the state of ended workflows whose ids have these prefixes; returns their number.

    Works while a server runs.
    """
    if not _has_engine_tables(settings):
        return 0
    client = DBOSClient(
        system_database_url=_engine_url(settings),
        serializer=DBOSPortableJSONSerializer(),
    )
    try:
        found: list[str] = []
        for start in range(0, len(id_prefixes), DELETE_BATCH_SIZE):
            some = list(id_prefixes[start : start + DELETE_BATCH_SIZE])
            found += [
                status.workflow_id
                for status in client.list_workflows(
                    workflow_id_prefix=some, load_input=False, load_output=False
                )
            ]
        if found:
            client.delete_workflows(found)
        return len(found)
    finally:
        client.destroy()


def _has_engine_tables(settings: Settings) -> bool:
    engine = create_engine(_engine_url(settings), hide_parameters=True)
    try:
        return inspect(engine).has_table(
            "workflow_status",
            schema=None if engine.dialect.name == "sqlite" else ENGINE_SCHEMA,
        )
    finally:
        engine.dispose()


def create_engine_tables(settings: Settings) -> None:
    """Creates the engine's tables, as its launch would: for a backup to be loaded into."""
    capture_library_logs(logging.getLogger("dbos"))
    DBOS.migrate(_engine_url(settings), schema=ENGINE_SCHEMA)


def vacuum(settings: Settings) -> None:
    """Rewrite the engine's file: SQLite keeps deleted rows until then."""
    if settings.database_url.startswith("sqlite"):
        connection = sqlite3.connect(settings.home / ENGINE_DATABASE_FILE, timeout=30)
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()


def _engine_config(settings: Settings, process: str) -> DBOSConfig:
    return {
        "name": APPLICATION_NAME,
        "system_database_url": _engine_url(settings),
        "application_version": APPLICATION_VERSION,
        "executor_id": process,
        "log_level": "ERROR",
        "serializer": DBOSPortableJSONSerializer(),
        "sys_db_pool_size": 4,
        "db_engine_kwargs": _engine_options(settings),
        "max_executor_threads": MAX_THREADS,
    }


def _engine_options(settings: Settings) -> Json:
    """A broken network is noticed as fast as by our own connections."""
    url = make_url(settings.database_url)
    if url.get_backend_name() == "sqlite":
        return {}
    limits = list_postgres_timeouts(url.query)
    # `db/connect.py` looks at each connection before it is used
    return {"connect_args": limits, "pool_pre_ping": False}


def _engine_url(settings: Settings) -> str:
    """A second file on SQLite, a schema on Postgres."""
    if not settings.database_url.startswith("sqlite"):
        return settings.database_url
    file = settings.home / ENGINE_DATABASE_FILE
    _enable_wal(file)
    return f"sqlite:///{file}"


def _enable_wal(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
