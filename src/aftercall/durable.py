"""The durable engine: configured, launched and ended here, once in a process.

What it runs stands where the work is (postcall, work). The version is ours and explicit: an
edited comment strands nothing. The parts are opened and their queues named first; then the
engine is launched, for it begins at once with what waits there.
"""

import asyncio
import logging
import sqlite3
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial, wraps
from pathlib import Path
from traceback import extract_tb
from typing import Any, ParamSpec, TypeVar

from dbos import (
    DBOS,
    DBOSClient,
    DBOSConfig,
    DBOSPortableJSONSerializer,
    EnqueueOptions,
    WorkflowHandleAsync,
)
from sqlalchemy import create_engine, inspect

from aftercall.errors import AftercallError, to_aftercall_error
from aftercall.log import get_logger
from aftercall.settings import Settings

APPLICATION_NAME = "aftercall"
APPLICATION_VERSION = "1"
# a look costs the engine more than a millisecond; what is in a hurry is begun without the queue
QUEUE_POLL_INTERVAL_S = 5.0
RESULT_POLL_INTERVAL_S = 60.0
ENGINE_DATABASE_FILE = "work.db"
ENGINE_SCHEMA = "dbos"
CONSOLE_HANDLER_NAME = "__dbos_console_log_handler__"
DELETE_BATCH_SIZE = 200
CLOSE_TIMEOUT_S = 5.0
REQUEUE_TIMEOUT_S = 5.0
# the engine's and, as it puts them under the loop, everybody's: long downloads must not hold up
# its own records
MAX_THREADS = 32

P = ParamSpec("P")
T = TypeVar("T")

log = get_logger("durable")

# By queue: what was begun without it. One at a time in a process, because the engine is one.
_direct_runs: dict[str, set["asyncio.Task[None]"]] = {}
_queue_options: dict[str, dict[str, Any]] = {}
_running: set["asyncio.Task[Any]"] = set()
_threads: ThreadPoolExecutor | None = None
_engine: DBOS | None = None


def workflow(
    name: str,
) -> Callable[[Callable[P, Coroutine[Any, Any, None]]], Callable[P, Coroutine[Any, Any, None]]]:
    """A workflow of the engine that `close` waits for."""

    def register(
        body: Callable[P, Coroutine[Any, Any, None]],
    ) -> Callable[P, Coroutine[Any, Any, None]]:
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
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """A step of a workflow, tried again with doubling pauses while its error may pass.

    The engine keeps errors as text under their class's name. So it is given how a step failed
    as a value: our code and our sentence, which a replay in another process raises again as
    they were.
    """

    def register(body: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @DBOS.step(
            name=name,
            retries_allowed=attempts > 1,
            max_attempts=attempts,
            should_retry=_is_retryable,
        )
        async def attempt(*args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
            try:
                return {"value": await body(*args, **kwargs)}
            except Exception as error:  # the edge of a step: whoever runs the workflow records it
                if _is_retryable(error) and not _is_last_attempt():
                    raise
                ours = to_step_error(error, step=name)
            return {"code": ours.code, "reason": str(ours)}

        @wraps(body)
        async def take(*args: P.args, **kwargs: P.kwargs) -> T:
            ended = await attempt(*args, **kwargs)
            if "code" in ended:
                failure = AftercallError(ended["reason"])
                failure.code = ended["code"]
                raise failure
            value: T = ended["value"]
            return value

        return take

    return register


def to_step_error(error: BaseException, **about: str) -> AftercallError:
    """How a step failed, as it is recorded.

    The log names a foreign error and its place, not its text, which may hold speech.
    """
    ours = to_aftercall_error(error)
    if ours is not error:
        last = extract_tb(error.__traceback__)[-1:]
        place = f"{Path(last[0].filename).name}:{last[0].lineno}" if last else ""
        log.error("a step broke", error=type(error).__name__, place=place, **about)
    return ours


def _is_retryable(error: BaseException) -> bool:
    return isinstance(error, AftercallError) and error.retryable


def _is_last_attempt() -> bool:
    status = DBOS.step_status
    if status is None or status.current_attempt is None or status.max_attempts is None:
        return True
    return status.current_attempt + 1 >= status.max_attempts


async def run_in_thread(job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `asyncio.to_thread`, in threads whose end `close` waits for: what a step does is done
    before the process leaves.
    """
    global _threads
    if _threads is None:
        _threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="aftercall-durable")
    run = partial(copy_context().run, job, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_threads, run)


async def launch(settings: Settings, process: str) -> None:
    """Start the engine in this loop, as the executor named after this process; everything it
    may run has been opened.
    """
    global _engine
    _redirect_engine_logs()
    await asyncio.to_thread(_update_queues, settings)
    _engine = DBOS(config=_engine_config(settings, process))
    DBOS.launch()
    for name, options in _queue_options.items():
        await DBOS.register_queue_async(name, **options, on_conflict="always_update")


def _update_queues(settings: Settings) -> None:
    """Before the engine begins: its first look into a queue goes by what an earlier start
    registered.
    """
    if not _has_engine_tables(settings):
        return
    client = DBOSClient(
        system_database_url=_engine_url(settings),
        serializer=DBOSPortableJSONSerializer(),
        application_name=APPLICATION_NAME,
    )
    try:
        for name, options in _queue_options.items():
            client.register_queue(name, **options, on_conflict="always_update")
    finally:
        client.destroy()


def _redirect_engine_logs() -> None:
    """The engine's log goes to what standard error is now: the one it first saw may be closed,
    and it flushes at every launch.
    """
    for handler in logging.getLogger("dbos").handlers:
        if isinstance(handler, logging.StreamHandler) and handler.name == CONSOLE_HANDLER_NAME:
            handler.stream = sys.stderr


async def close(
    close_parts: Callable[[], None] = lambda: None, timeout_s: float = CLOSE_TIMEOUT_S
) -> None:
    """Take no new work, wait for what is in hand, hand over what takes longer, and end the engine.

    `close_parts` ends what the workflows stand on; what a thread is doing is done when it returns.
    """
    global _threads, _engine
    if _engine is not None:
        for queue_is_left in _engine.background_thread_stop_events:
            queue_is_left.set()
    if _running:
        await asyncio.wait(_running, timeout=timeout_s)
    unfinished = len(_running)
    await _cancel(_running)
    await asyncio.to_thread(close_parts)
    if _threads is not None:
        await asyncio.to_thread(_threads.shutdown)
    if unfinished and _engine is not None:
        log.warning("unfinished work is left to whoever runs next", workflows=unfinished)
        with suppress(
            TimeoutError
        ):  # the engine waits for its database; then the others find that this process is gone
            await asyncio.wait_for(_requeue([DBOS.executor_id]), REQUEUE_TIMEOUT_S)
    await asyncio.to_thread(DBOS.destroy)
    await _cancel(task for tasks in _direct_runs.values() for task in tasks)
    _direct_runs.clear()
    _queue_options.clear()
    _threads = _engine = None
    # The engine had put its own threads under this loop and has just ended them.
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
    """Name a queue for `launch`.

    With a limit no more than so many begin in a period; the others wait, and none is lost.
    """
    _queue_options[name] = {
        "worker_concurrency": concurrency,
        "limiter": {"limit": limit, "period": period_s} if limit else None,
        "polling_interval_sec": poll_s,
    }


def count_free_slots(queue: str, max_direct: int) -> int:
    """How many more can be begun without the queue."""
    return max(0, max_direct - len(_direct_runs.get(queue, ())))


async def start_workflow(
    queue: str,
    max_direct: int,
    workflow: Callable[P, Coroutine[Any, Any, None]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> None:
    """Begin the workflow whose id has been set: here and now while a few are at hand, else in
    its turn in the queue.

    Either way it is on record before this returns, and one whose id is known already stays as
    it is.
    """
    if not count_free_slots(queue, max_direct):
        await DBOS.enqueue_workflow_async(queue, workflow, *args, **kwargs)
        return
    handle = await DBOS.start_workflow_async(workflow, *args, **kwargs)
    watching = asyncio.create_task(_watch(handle))
    mine = _direct_runs.setdefault(queue, set())
    mine.add(watching)
    watching.add_done_callback(mine.discard)


async def _watch(handle: WorkflowHandleAsync[None]) -> None:
    with suppress(Exception):  # the edge of a workflow: how it failed is on record
        await handle.get_result(polling_interval_sec=RESULT_POLL_INTERVAL_S)


class BulkEnqueuer:
    """A way into the queues for many workflows at once: in one transaction, not each with a
    wait for the disk of its own.
    """

    def __init__(self, settings: Settings) -> None:
        url = _engine_url(settings)
        # On SQLite the write lock is taken at once: who reads first and then wants to write is
        # refused instead of waiting.
        patience = (
            {"isolation_level": "IMMEDIATE", "timeout": 30} if url.startswith("sqlite") else {}
        )
        self._engine = create_engine(url, connect_args=patience, pool_pre_ping=True)
        self._client = DBOSClient(
            system_database_engine=self._engine,
            serializer=DBOSPortableJSONSerializer(),
            application_name=APPLICATION_NAME,
            lazy=True,
            use_listen_notify=False,
        )

    def enqueue(
        self, queue: str, workflow: str, entries: Sequence[tuple[str, Sequence[object]]]
    ) -> None:
        """Each entry is an id and the arguments; one whose id is known already stays as it is."""
        with self._engine.begin() as connection:
            for workflow_id, arguments in entries:
                options: EnqueueOptions = {
                    "queue_name": queue,
                    "workflow_name": workflow,
                    "workflow_id": workflow_id,
                    "app_version": APPLICATION_VERSION,
                }
                self._client.enqueue_in_transaction(connection, options, *arguments)

    def close(self) -> None:
        self._client.destroy()
        self._engine.dispose()


async def requeue_orphans(is_alive: Callable[[str], bool]) -> int:
    """Put workflows whose process is gone back into the queue each came from; how many there
    were.
    """
    pending = await DBOS.list_workflows_async(status="PENDING", load_input=False, load_output=False)
    owners = {status.executor_id for status in pending if status.executor_id}
    dead = [owner for owner in sorted(owners) if not await asyncio.to_thread(is_alive, owner)]
    taken = await _requeue(dead) if dead else 0
    if taken:
        log.warning("took over unfinished work", workflows=taken)
    return taken


async def _requeue(executors: list[str]) -> int:
    """Put what these executors have begun back into its queue.

    A row is changed only while it still belongs to one of them. Of several processes that find
    the same one dead none takes back what another has begun by then; the public
    `resume_workflow` does not look whose a workflow is.
    """
    return len(await asyncio.to_thread(DBOS._recover_pending_workflows, executors))


async def is_active(workflow_id: str) -> bool:
    """Whether a workflow runs, waits its turn, or will be taken over from a process that is
    gone.
    """
    status = await DBOS.get_workflow_status_async(workflow_id)
    return status is not None and status.status in ("PENDING", "ENQUEUED", "DELAYED")


async def delete_workflow(workflow_id: str) -> None:
    """Let go of a workflow that came to an end without finishing its work, so that it can be
    started anew under its name.
    """
    if await DBOS.get_workflow_status_async(workflow_id) is not None:
        await DBOS.delete_workflow_async(workflow_id)


def delete_workflows(settings: Settings, id_prefixes: Sequence[str]) -> int:
    """Take the state of ended workflows away, whose ids begin so; how many there were.

    Works beside a running server.
    """
    if not _has_engine_tables(settings):
        return 0
    client = DBOSClient(
        system_database_url=_engine_url(settings), serializer=DBOSPortableJSONSerializer()
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
    engine = create_engine(_engine_url(settings))
    try:
        return inspect(engine).has_table(
            "workflow_status", schema=None if engine.dialect.name == "sqlite" else ENGINE_SCHEMA
        )
    finally:
        engine.dispose()


def vacuum(settings: Settings) -> None:
    """Deleted rows linger in the engine's file until it is written anew."""
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
        "max_executor_threads": MAX_THREADS,
    }


def _engine_url(settings: Settings) -> str:
    """A file of its own beside ours on SQLite, a schema of its own on Postgres."""
    if not settings.database_url.startswith("sqlite"):
        return settings.database_url
    file = settings.home / ENGINE_DATABASE_FILE
    _enable_wal(file)
    return f"sqlite:///{file}"


def _enable_wal(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
