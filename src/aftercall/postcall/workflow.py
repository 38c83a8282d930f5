"""The durable workflow after a call. The only file here that knows the durable engine.

The workflow's id is the call's id, so a call is worked on once however often it is started; names are ours and explicit.
A step in flight at a crash runs again; one that finished does not.
"""

import asyncio

from dbos import DBOS, SetWorkflowID
from dbos import error as engine_error

from aftercall.durable import open_queue
from aftercall.errors import AftercallError
from aftercall.faults import reach
from aftercall.log import get_logger
from aftercall.memory.extraction import limit_per_minute
from aftercall.postcall.office import Office
from aftercall.postcall.steps import RATIONED, STEPS

QUEUE = "aftercall.post_call"
RATIONED_QUEUE = "aftercall.rationed"
MINUTE_S = 60.0
AT_ONCE = 8
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
    with SetWorkflowID(f"{call_id}.{RATIONED}"):  # not waited for: it may queue for long, and the others shall not
        await DBOS.enqueue_workflow_async(RATIONED_QUEUE, rationed_step, call_id)
    await asyncio.gather(*(attempt(call_id, name) for name in STEPS if name != RATIONED))


@DBOS.workflow(name="aftercall.rationed_step")
async def rationed_step(call_id: str) -> None:
    await attempt(call_id, RATIONED)


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


async def open_office(at: Office) -> None:
    """Take up the work; the durable engine has been launched."""
    global _office
    _office = at
    await open_queue(QUEUE, AT_ONCE)
    await open_queue(RATIONED_QUEUE, AT_ONCE, limit=limit_per_minute(at.desk.settings, at.desk.reader), period_s=MINUTE_S)
    await start_due(at)


def close_office() -> None:
    """The durable engine has ended."""
    global _office
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
