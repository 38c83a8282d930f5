"""The durable workflows of follow-up work.

The workflow id of a run is its conversation and number, that of an approval its follow-up and
round: starting one twice runs it once. A step in flight at a crash runs again; the ledger and
the keys of the sinks make that idempotent.
"""

import asyncio
from datetime import datetime

from dbos import SetWorkflowID

from aftercall.durable import (
    register_queue,
    run_in_thread,
    start_workflow,
    thread_step,
    workflow,
)
from aftercall.errors import to_aftercall_error
from aftercall.faults import fault_point
from aftercall.log import get_logger
from aftercall.work import deliver
from aftercall.work.context import WorkContext

QUEUE = "aftercall.follow_up"
QUEUE_CONCURRENCY = 8
MAX_DIRECT_RUNS = 8  # started at once; only more than these go through the queue
ATTEMPTS = (
    10  # with doubling pauses: enough for a sink that is down for a quarter of an hour
)

log = get_logger("work")

# The durable engine exists once in a process, and so does this.
_context: WorkContext | None = None


def work_context() -> WorkContext:
    if _context is None:
        raise RuntimeError("open_work has not been called")
    return _context


@workflow("aftercall.follow_up")
async def follow_up(conversation: str, run: int) -> None:
    try:
        todo = await record_followups(conversation, run)
        await deliver_requests(todo)
        await finish_run(conversation, run)
    except Exception as error:  # noqa: BLE001 - the edge of a run: the sweep retries it
        await fail_run(conversation, run, str(to_aftercall_error(error)))
        return
    await attempt_notice(conversation, run)


@workflow("aftercall.follow_up_one")
async def follow_up_one(followup_id: str, conversation: str) -> None:
    await deliver_requests([followup_id])
    try:
        await settle_promises(conversation)
    except Exception as error:  # noqa: BLE001 - the edge: only the page is not up to date
        log.warning(
            "the page of a conversation could not be written",
            conversation=conversation,
            error=to_aftercall_error(error).code,
        )


@workflow("aftercall.remind")
async def remind(followup_id: str) -> None:
    try:
        await send_reminder(followup_id)
    except Exception as error:  # noqa: BLE001 - the edge: its delivery shows the failure
        log.warning(
            "a reminder failed",
            followup=followup_id,
            error=to_aftercall_error(error).code,
        )


async def deliver_requests(todo: list[str]) -> None:
    """A failing request does not stop the others.

    Failures are recorded in order, because a replay must meet the same steps again.
    """
    if len(todo) > 1:
        await attempt_agent(todo)
    ends = await asyncio.gather(
        *(deliver_request(followup_id) for followup_id in todo), return_exceptions=True
    )
    for followup_id, end in zip(todo, ends, strict=True):
        if isinstance(end, Exception):
            await fail_request(followup_id, str(to_aftercall_error(end)))
        elif end is not None:
            raise end


async def attempt_agent(todo: list[str]) -> None:
    try:
        await run_agent(todo)
    except Exception as error:  # noqa: BLE001 - the edge: all requests fail with the reason
        await fail_agent_requests(todo, str(to_aftercall_error(error)))


async def attempt_notice(conversation: str, run: int) -> None:
    try:
        await send_notice(conversation, run)
    except Exception as error:  # noqa: BLE001 - the edge: its delivery shows the failure
        log.warning(
            "a notice failed",
            conversation=conversation,
            error=to_aftercall_error(error).code,
        )


record_followups = thread_step(
    "aftercall.record_followups", ATTEMPTS, work_context, WorkContext.record_followups
)
run_agent = thread_step(
    "aftercall.run_agent", ATTEMPTS, work_context, deliver.run_agent
)
deliver_request = thread_step(
    "aftercall.deliver_request", ATTEMPTS, work_context, deliver.deliver_request
)
fail_agent_requests = thread_step(
    "aftercall.fail_agent_requests", ATTEMPTS, work_context, deliver.fail_agent_requests
)
fail_request = thread_step(
    "aftercall.fail_request", ATTEMPTS, work_context, deliver.fail_request
)
finish_run = thread_step(
    "aftercall.finish_run", ATTEMPTS, work_context, WorkContext.finish_run
)
fail_run = thread_step(
    "aftercall.fail_run", ATTEMPTS, work_context, WorkContext.fail_run
)
settle_promises = thread_step(
    "aftercall.settle_promises", ATTEMPTS, work_context, WorkContext.settle_promises
)
send_notice = thread_step(
    "aftercall.send_notice", ATTEMPTS, work_context, deliver.notify
)
send_reminder = thread_step(
    "aftercall.send_reminder", ATTEMPTS, work_context, deliver.remind
)


def open_work(context: WorkContext) -> None:
    """Call before launching the durable engine."""
    global _context
    _context = context
    register_queue(QUEUE, QUEUE_CONCURRENCY)


def close_work() -> None:
    global _context
    _context = None


async def start_due(context: WorkContext) -> None:
    """Starts due runs, queued requests and due reminders. Idempotent."""
    now = context.clock.now()
    window_s = context.settings.reconnect_window_s
    for run in await run_in_thread(context.runs.due, now, window_s):
        number = run.run + 1
        with SetWorkflowID(run_id(run.conversation, number)):
            await start_workflow(
                QUEUE, MAX_DIRECT_RUNS, follow_up, run.conversation, number
            )
        fault_point("work.after_enqueue")
        await run_in_thread(
            context.runs.mark_running, run.conversation, number, context.clock.now()
        )
    for row in await run_in_thread(context.followups.queued):
        with SetWorkflowID(f"followup:{row.conversation}:{row.id}:{row.round}"):
            await start_workflow(
                QUEUE, MAX_DIRECT_RUNS, follow_up_one, row.id, row.conversation
            )
        fault_point("work.after_queue")
        await run_in_thread(context.followups.mark_queued_started, row.id, row.round)
    if not context.settings.work.reminders:
        return
    for row in await run_in_thread(
        context.followups.reminders_due, context.clock.now()
    ):
        with SetWorkflowID(f"reminder:{row.id}"):
            await start_workflow(QUEUE, MAX_DIRECT_RUNS, remind, row.id)
        await run_in_thread(context.followups.mark_reminder_started, row.id)


async def next_due(context: WorkContext) -> datetime | None:
    """When the next run or reminder becomes due by time alone."""
    moments = [
        await run_in_thread(context.runs.next_due, context.settings.reconnect_window_s)
    ]
    if context.settings.work.reminders:
        moments.append(await run_in_thread(context.followups.next_reminder))
    return min((moment for moment in moments if moment), default=None)


def run_id(conversation: str, run: int) -> str:
    return f"followup:{conversation}:{run}"
