"""The durable workflows of follow-up work. Only this file and the sweep know the durable engine.

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
    step,
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
    except Exception as error:  # noqa: BLE001 - the edge: only the journal entry is missing
        log.warning(
            "a journal entry could not be written",
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


@step("aftercall.gather", ATTEMPTS)
async def record_followups(conversation: str, run: int) -> list[str]:
    return await run_in_thread(work_context().record_followups, conversation, run)


@step("aftercall.do", ATTEMPTS)
async def deliver_request(followup_id: str) -> None:
    await run_in_thread(deliver.deliver_request, work_context(), followup_id)


@step("aftercall.run_agent", ATTEMPTS)
async def run_agent(todo: list[str]) -> None:
    await run_in_thread(deliver.run_agent, work_context(), todo)


@step("aftercall.give_up_agent", ATTEMPTS)
async def fail_agent_requests(todo: list[str], reason: str) -> None:
    log.warning("the agent's command failed", requests=len(todo))
    await run_in_thread(deliver.fail_agent_requests, work_context(), todo, reason)


@step("aftercall.give_up_request", ATTEMPTS)
async def fail_request(followup_id: str, reason: str) -> None:
    log.warning("a request failed", followup=followup_id)
    await run_in_thread(deliver.fail_request, work_context(), followup_id, reason)


@step("aftercall.close", ATTEMPTS)
async def finish_run(conversation: str, run: int) -> None:
    await run_in_thread(work_context().finish_run, conversation, run)


@step("aftercall.settle", ATTEMPTS)
async def settle_promises(conversation: str) -> None:
    context = work_context()
    await run_in_thread(lambda: context.settle_promises(context.read(conversation)))


@step("aftercall.fail_run", ATTEMPTS)
async def fail_run(conversation: str, run: int, reason: str) -> None:
    log.warning("a follow-up run failed", conversation=conversation)
    context = work_context()
    now = context.clock.now()
    await run_in_thread(context.runs.finish, conversation, run, "failed", reason, now)


@step("aftercall.notice", ATTEMPTS)
async def send_notice(conversation: str, run: int) -> None:
    await run_in_thread(deliver.notify, work_context(), conversation, run)


@step("aftercall.reminder", ATTEMPTS)
async def send_reminder(followup_id: str) -> None:
    await run_in_thread(deliver.remind, work_context(), followup_id)


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
