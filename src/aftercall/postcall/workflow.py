"""The durable workflow after a call. The only file here that knows the durable engine.

The workflow's id is the call's id, so a call is worked on once however often it is started;
names are ours and explicit. A step in flight at a crash runs again; one that finished does not.
A step that may pass comes back as a workflow of its own.
"""

import asyncio
from contextlib import ExitStack, nullcontext

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID

from aftercall.db.statements import chunked
from aftercall.durable import (
    BulkEnqueuer,
    count_free_slots,
    register_queue,
    start_workflow,
    step,
    workflow,
)
from aftercall.faults import fault_point
from aftercall.memory.extraction import limit_per_minute
from aftercall.postcall.office import Office
from aftercall.postcall.shift import Shift
from aftercall.postcall.steps import FIRST, LAST, RATIONED, names_for

QUEUE = "aftercall.post_call"
RATIONED_QUEUE = "aftercall.rationed"
AFTER_CALL = "aftercall.after_call"
MINUTE_S = 60.0
AT_ONCE = (
    64  # calls whose steps wait their turn together, so that the urgent one of each can come first
)
AT_ONCE_OF_SEVERAL = (
    32  # where other processes may be at work: who takes all of them leaves none to the others
)
TOGETHER = 25  # calls summed up in one go: nobody else writes meanwhile
# calls begun the moment they are due; when more end together the others queue, with one wait
# for the disk for all
AT_HAND = 16
POLL_S = 1.0
UNUSED_POLL_S = 10.0  # without a limit only what was begun under one is there
ATTEMPTS = 10  # with doubling pauses: a database that is away for a quarter of an hour


# One at a time in a process, because the durable engine is one.
_shift: Shift | None = None
_intake: BulkEnqueuer | None = None


def shift() -> Shift:
    if _shift is None:
        raise RuntimeError("the post-call work has not been opened")
    return _shift


def intake() -> BulkEnqueuer:
    if _intake is None:
        raise RuntimeError("the post-call work has not been opened")
    return _intake


@workflow(AFTER_CALL)
async def after_call(call_id: str, names: list[str], rationed: list[str]) -> None:
    """The names are told and not looked up: other settings or another version must not change
    what was begun.
    """
    for name in rationed:  # not waited for: it may queue for long, and the others shall not
        with SetWorkflowID(f"{call_id}.{name}"):
            await DBOS.enqueue_workflow_async(RATIONED_QUEUE, rationed_step, call_id, name)
    for name, pause_s in (await take_steps(call_id, names)).items():
        await come_back(call_id, name, 1, pause_s)


@workflow("aftercall.post_call")
async def post_call(call_id: str, names: list[str], rationed: list[str]) -> None:
    """Calls that an earlier version began: the engine goes on only where it finds the steps it
    has on record.
    """
    for name in rationed:
        with SetWorkflowID(f"{call_id}.{name}"):
            await DBOS.enqueue_workflow_async(RATIONED_QUEUE, rationed_step, call_id, name)
    first, last = (
        [name for name in names if name not in LAST],
        [name for name in names if name in LAST],
    )
    pauses = await asyncio.gather(*(take_step(call_id, name, 1) for name in first))
    pauses += [await take_step(call_id, name, 1) for name in last]
    for name, pause_s in zip([*first, *last], pauses, strict=True):
        await come_back(call_id, name, 1, pause_s)
    await take_late(call_id)


@workflow("aftercall.rationed_step")
async def rationed_step(call_id: str, name: str) -> None:
    await come_back(call_id, name, 1, await take_step(call_id, name, 1))


@workflow("aftercall.step_again")
async def step_again(call_id: str, name: str, number: int) -> None:
    pause_s = await take_step(call_id, name, number)
    await come_back(call_id, name, number, pause_s)
    if name == FIRST and pause_s is None:
        await take_late(call_id)


async def take_late(call_id: str) -> None:
    """Last in a workflow: the engine goes on with what an earlier version began only where it
    finds the steps on record.
    """
    for name, pause_s in (await take_left_behind(call_id)).items():
        await come_back(call_id, name, 1, pause_s)


async def come_back(call_id: str, name: str, number: int, pause_s: float | None) -> None:
    """Another workflow tries again when it is time, so that a step that waits holds no place in
    the queue.
    """
    if pause_s is None:
        return
    with SetWorkflowID(f"{call_id}:{name}:{number + 1}"), SetEnqueueOptions(delay_seconds=pause_s):
        await DBOS.enqueue_workflow_async(QUEUE, step_again, call_id, name, number + 1)


@step("aftercall.take_steps", ATTEMPTS)
async def take_steps(call_id: str, names: list[str]) -> dict[str, float]:
    """One step to the engine: each of ours is on record by itself, in the transaction of what
    it made.
    """
    return await shift().take(call_id, names, 1)


@step("aftercall.take_step", ATTEMPTS)
async def take_step(call_id: str, name: str, number: int) -> float | None:
    """Seconds until it should be tried again, or None: it ended."""
    return (await shift().take(call_id, [name], number)).get(name)


@step("aftercall.take_left_behind", ATTEMPTS)
async def take_left_behind(call_id: str) -> dict[str, float]:
    return await shift().take_left_behind(call_id)


def open_office(at: Office) -> None:
    """Call before the durable engine is launched."""
    global _shift, _intake
    _shift, _intake = Shift.of(at), BulkEnqueuer(at.desk.settings)
    at_once = AT_ONCE if at.desk.database.dialect == "sqlite" else min(AT_ONCE, AT_ONCE_OF_SEVERAL)
    register_queue(QUEUE, at_once, poll_s=POLL_S)
    limit = limit_per_minute(at.desk.settings, at.desk.reader)
    register_queue(
        RATIONED_QUEUE,
        at_once,
        poll_s=POLL_S if limit else UNUSED_POLL_S,
        limit=limit,
        period_s=MINUTE_S,
    )


def close_office() -> None:
    """The durable engine has ended."""
    global _shift, _intake
    if _shift is not None:
        _shift.end()
    if _intake is not None:
        _intake.close()
    _shift = _intake = None


async def start_due(at: Office) -> list[str]:
    """Start the work of every sealed call that has none yet.

    A crash in between starts it again, which is the same.
    """
    due = await asyncio.to_thread(at.steps.due)
    if not due:
        return []
    with ExitStack() as stack:
        is_alone = await asyncio.to_thread(stack.enter_context, at.steps.alone())
        return await _start(at, await asyncio.to_thread(at.steps.due)) if is_alone else []


async def _start(at: Office, due: list[str]) -> list[str]:
    rationed = [RATIONED] if limit_per_minute(at.desk.settings, at.desk.reader) else []
    names = [name for name in names_for(at.desk) if name not in rationed]
    due = await _make_ready(at, due, [*names, *rationed])
    room = count_free_slots(QUEUE, AT_HAND)
    if due[room:]:
        await asyncio.to_thread(
            intake().enqueue,
            QUEUE,
            AFTER_CALL,
            [(call_id, (call_id, names, rationed)) for call_id in due[room:]],
        )
    for call_id in due[:room]:
        with SetWorkflowID(call_id):
            await start_workflow(QUEUE, AT_HAND, after_call, call_id, names, rationed)
    fault_point("postcall.after_enqueue")
    await asyncio.to_thread(at.steps.mark_started, due)
    return due


async def _make_ready(at: Office, due: list[str], names: list[str]) -> list[str]:
    """Show the steps, and sum up ahead where that is quick; calls that fall due meanwhile do
    not wait until the others are started.
    """
    ready: list[str] = []
    with shift().crew.only_urgent() if shift().sums_up_ahead else nullcontext():
        while due:
            for some in chunked(due, TOGETHER):
                await asyncio.to_thread(at.steps.await_start, some, names, at.desk.clock.now())
                if shift().sums_up_ahead:
                    await shift().sum_up_ahead(some)
            ready += due
            more = await asyncio.to_thread(at.steps.due) if shift().sums_up_ahead else []
            due = [
                call_id for call_id in more if call_id not in ready
            ]  # of the hundred oldest: this comes to an end
    return ready
