"""The durable workflow after a call. The only file here that knows the durable engine.

The workflow's id is the call's id, so a call is worked on once however often it is started; names are ours and explicit.
A step in flight at a crash runs again; one that finished does not. A step that may pass comes back as a workflow of its own.
"""

import asyncio

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID

from aftercall.durable import open_queue
from aftercall.errors import AftercallError
from aftercall.faults import reach
from aftercall.log import get_logger
from aftercall.memory.extraction import limit_per_minute
from aftercall.postcall.office import Office
from aftercall.postcall.patience import pause_after
from aftercall.postcall.steps import LAST, RATIONED, names_for

QUEUE = "aftercall.post_call"
RATIONED_QUEUE = "aftercall.rationed"
MINUTE_S = 60.0
AT_ONCE = 8

log = get_logger("postcall")


# One at a time in a process, because the durable engine is one.
_office: Office | None = None


def office() -> Office:
    if _office is None:
        raise RuntimeError("the post-call work has not been opened")
    return _office


@DBOS.workflow(name="aftercall.post_call")
async def post_call(call_id: str, names: list[str], rationed: list[str]) -> None:
    """The names are told and not looked up: other settings or another version must not change what was begun."""
    for name in rationed:  # not waited for: it may queue for long, and the others shall not
        with SetWorkflowID(f"{call_id}.{name}"):
            await DBOS.enqueue_workflow_async(RATIONED_QUEUE, rationed_step, call_id, name)
    await asyncio.to_thread(office().begin, call_id, names)
    first, last = [name for name in names if name not in LAST], [name for name in names if name in LAST]
    pauses = await asyncio.gather(*(take_step(call_id, name, 1) for name in first))
    pauses += [await take_step(call_id, name, 1) for name in last]
    for name, pause_s in zip([*first, *last], pauses, strict=True):
        await come_back(call_id, name, 1, pause_s)


@DBOS.workflow(name="aftercall.rationed_step")
async def rationed_step(call_id: str, name: str) -> None:
    await asyncio.to_thread(office().begin, call_id, [name])
    await come_back(call_id, name, 1, await take_step(call_id, name, 1))


@DBOS.workflow(name="aftercall.step_again")
async def step_again(call_id: str, name: str, number: int) -> None:
    await asyncio.to_thread(office().begin, call_id, [name])
    await come_back(call_id, name, number, await take_step(call_id, name, number))


async def come_back(call_id: str, name: str, number: int, pause_s: float | None) -> None:
    """Another workflow tries again when it is time, so that a step that waits holds no place in the queue."""
    if pause_s is None:
        return
    with SetWorkflowID(f"{call_id}:{name}:{number + 1}"), SetEnqueueOptions(delay_seconds=pause_s):
        await DBOS.enqueue_workflow_async(QUEUE, step_again, call_id, name, number + 1)


@DBOS.step(name="aftercall.take_step")
async def take_step(call_id: str, name: str, number: int) -> float | None:
    """Seconds until it should be tried again, or None: it ended. One step's failure never stops another."""
    try:
        await asyncio.to_thread(office().do, call_id, name)
    except Exception as error:  # noqa: BLE001 - the edge of a step: it is recorded, shown, and can be run again
        return await _put_off_or_give_up(call_id, name, number, error)
    return None


async def _put_off_or_give_up(call_id: str, name: str, number: int, error: Exception) -> float | None:
    ours = error if isinstance(error, AftercallError) else None
    # What a person can act on; the text of foreign errors may hold speech and is left out.
    reason = str(ours) if ours else type(error).__name__
    pause_s = pause_after(number, ours.retry_after_s) if ours and ours.retryable else None
    if pause_s is None:
        log.warning("a step failed", call=call_id, step=name)
        await asyncio.to_thread(office().give_up, call_id, name, reason)
    else:
        await asyncio.to_thread(office().put_off, call_id, name, reason, pause_s)
    return pause_s


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
    rationed = [RATIONED] if limit_per_minute(at.desk.settings, at.desk.reader) else []
    names = [name for name in names_for(at.desk) if name not in rationed]
    for call_id in due:
        with SetWorkflowID(call_id):
            await DBOS.enqueue_workflow_async(QUEUE, post_call, call_id, names, rationed)
        reach("postcall.after_enqueue")
        await asyncio.to_thread(at.steps.mark_started, call_id, [*names, *rationed], at.desk.clock.now())
    return due
