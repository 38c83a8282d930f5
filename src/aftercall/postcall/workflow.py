"""The durable workflow after a call. The only file here that knows the durable engine.

The workflow's id is the call's id, so a call is worked on once however often it is started. Version and names are ours
and explicit: an edited comment strands nothing. A step in flight at a crash runs again; one that finished does not.
"""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID
from dbos import error as engine_error

from aftercall.errors import AftercallError
from aftercall.faults import reach
from aftercall.log import get_logger
from aftercall.postcall.office import Office
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings

VERSION = "1"
QUEUE = "aftercall.post_call"
AT_ONCE = 8
POLL_S = 0.25
ATTEMPTS = 12  # with doubling pauses: a model that is away for an hour loses nothing

log = get_logger("postcall")


# One at a time in a process, because the durable engine is one.
_office: Office | None = None


def office() -> Office:
    if _office is None:
        raise RuntimeError("the post-call work has not been opened")
    return _office


@DBOS.workflow(name="aftercall.post_call")
async def post_call(call_id: str) -> None:
    await asyncio.gather(*(attempt(call_id, name) for name in STEPS))


async def attempt(call_id: str, name: str) -> None:
    """One step's failure never stops another."""
    try:
        await take_step(call_id, name)
    except Exception as error:  # noqa: BLE001 - the edge of a step: it is recorded, shown, and can be run again
        await give_up(call_id, name, _reason(error))


@DBOS.step(
    name="aftercall.take_step",
    retries_allowed=True,
    max_attempts=ATTEMPTS,
    should_retry=lambda error: isinstance(error, AftercallError) and error.retryable,
)
async def take_step(call_id: str, name: str) -> None:
    await asyncio.to_thread(office().do, call_id, name)


@DBOS.step(name="aftercall.give_up")
async def give_up(call_id: str, name: str, reason: str) -> None:
    log.warning("a step failed", call=call_id, step=name)
    await asyncio.to_thread(office().give_up, call_id, name, reason)


def _reason(error: Exception) -> str:
    """What a person can act on; the text of foreign errors may hold speech and is left out."""
    cause = error.errors[-1] if isinstance(error, engine_error.DBOSMaxStepRetriesExceeded) and error.errors else error
    return str(cause) if isinstance(cause, AftercallError) else type(cause).__name__


async def open_office(at: Office, settings: Settings) -> None:
    """Start the durable engine; unfinished work of dead processes is taken over."""
    global _office
    _office = at
    DBOS(config=_engine_config(settings, at.presence.process))
    DBOS.launch()
    await DBOS.register_queue_async(QUEUE, worker_concurrency=AT_ONCE, polling_interval_sec=POLL_S)
    await take_over(at)
    await start_due(at)


async def close_office(patience_s: int = 5) -> None:
    global _office
    await asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=patience_s)
    # The engine had put its own threads under this loop and has just ended them.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="aftercall"))
    _office = None


async def start_due(at: Office) -> list[str]:
    """Start the work of every sealed call that has none yet. A crash in between starts it again, which is the same."""
    due = await asyncio.to_thread(at.steps.due)
    for call_id in due:
        with SetWorkflowID(call_id):
            await DBOS.enqueue_workflow_async(QUEUE, post_call, call_id)
        reach("postcall.after_enqueue")
        await asyncio.to_thread(at.steps.mark_started, call_id, list(STEPS), at.desk.clock.now())
    return due


async def take_over(at: Office) -> list[str]:
    """Go on with workflows whose process is gone."""
    taken = []
    for status in await DBOS.list_workflows_async(status="PENDING", load_input=False, load_output=False):
        owner = status.executor_id or ""
        if not await asyncio.to_thread(at.presence.is_alive, owner, at.desk.clock.now()):
            await DBOS.resume_workflow_async(status.workflow_id, queue_name=QUEUE)
            taken.append(status.workflow_id)
    if taken:
        log.warning("took over unfinished work", workflows=len(taken))
    return taken


def _engine_config(settings: Settings, process: str) -> DBOSConfig:
    return {
        "name": "aftercall",
        "system_database_url": _engine_url(settings),
        "application_version": VERSION,
        "executor_id": process,
        "log_level": "ERROR",
        "serializer": DBOSPortableJSONSerializer(),
        "sys_db_pool_size": 4,
    }


def _engine_url(settings: Settings) -> str:
    """A file of its own beside ours on SQLite, a schema of its own on Postgres."""
    if not settings.database_url.startswith("sqlite"):
        return settings.database_url
    file = settings.home / "work.db"
    _write_ahead(file)
    return f"sqlite:///{file}"


def _write_ahead(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
