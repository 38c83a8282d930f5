"""The durable workflows of follow-up work. The only file here that knows the durable engine.

A run's id is its conversation and number, an approval's its follow-up and round: each is worked
on once however often it is started. A step in flight at a crash runs again; the ledger and the
keys of the sinks make that the same deed.
"""

import asyncio
from datetime import datetime

from dbos import SetWorkflowID

from aftercall.durable import register_queue, run_in_thread, start_workflow, step, workflow
from aftercall.errors import to_aftercall_error
from aftercall.faults import fault_point
from aftercall.log import get_logger
from aftercall.work import deliver
from aftercall.work.context import WorkContext

QUEUE = "aftercall.follow_up"
QUEUE_CONCURRENCY = 8
MAX_DIRECT_RUNS = (
    8  # begun without the queue; only when there are more of them does anybody wait for it
)
ATTEMPTS = 10  # with doubling pauses: a sink that is away for a quarter of an hour loses nothing

log = get_logger("work")

# One at a time in a process, because the durable engine is one.
_context: WorkContext | None = None


def work_context() -> WorkContext:
    if _context is None:
        raise RuntimeError("the follow-up work has not been opened")
    return _context


@workflow("aftercall.follow_up")
async def follow_up(conversation: str, run: int) -> None:
    try:
        todo = await record_followups(conversation, run)
        await deliver_requests(todo)
        await finish_run(conversation, run)
    except Exception as error:  # noqa: BLE001 - the edge of a run: it is recorded, shown, and swept up later
        await fail_run(conversation, run, str(to_aftercall_error(error)))
        return
    await attempt_notice(conversation, run)


@workflow("aftercall.follow_up_one")
async def follow_up_one(followup_id: str, conversation: str) -> None:
    await deliver_requests([followup_id])
    try:
        await settle_promises(conversation)
    except Exception as error:  # noqa: BLE001 - the edge of a workflow: the request has ended, only the journal does not tell it yet
        log.warning(
            "a journal entry could not be written",
            conversation=conversation,
            error=to_aftercall_error(error).code,
        )


@workflow("aftercall.remind")
async def remind(followup_id: str) -> None:
    try:
        await send_reminder(followup_id)
    except Exception as error:  # noqa: BLE001 - the edge of a reminder: its delivery shows that it failed
        log.warning("a reminder failed", followup=followup_id, error=to_aftercall_error(error).code)


async def deliver_requests(todo: list[str]) -> None:
    """One request's failure never stops another.

    Failures are recorded in order: a replay must meet the same steps again.
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
    except Exception as error:  # noqa: BLE001 - the edge of the command: each of its requests fails with the reason
        await fail_agent_requests(todo, str(to_aftercall_error(error)))


async def attempt_notice(conversation: str, run: int) -> None:
    try:
        await send_notice(conversation, run)
    except Exception as error:  # noqa: BLE001 - the edge of a notice: the work is done, the delivery shows that nobody was told
        log.warning(
            "a notice failed", conversation=conversation, error=to_aftercall_error(error).code
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
    def settle_now() -> None:
        work_context().settle_promises(work_context().read(conversation))

    await run_in_thread(settle_now)


@step("aftercall.fail_run", ATTEMPTS)
async def fail_run(conversation: str, run: int, reason: str) -> None:
    log.warning("a follow-up run failed", conversation=conversation)
    await run_in_thread(
        work_context().runs.finish, conversation, run, "failed", reason, work_context().clock.now()
    )


@step("aftercall.notice", ATTEMPTS)
async def send_notice(conversation: str, run: int) -> None:
    await run_in_thread(deliver.notify, work_context(), conversation, run)


@step("aftercall.reminder", ATTEMPTS)
async def send_reminder(followup_id: str) -> None:
    await run_in_thread(deliver.remind, work_context(), followup_id)


def open_work(context: WorkContext) -> None:
    """Call before the durable engine is launched."""
    global _context
    _context = context
    register_queue(QUEUE, QUEUE_CONCURRENCY)


def close_work() -> None:
    """The durable engine has ended."""
    global _context
    _context = None


async def start_due(context: WorkContext) -> None:
    """Start what is due: conversations whose window has passed, approvals, reminders.

    Starting twice is starting once.
    """
    for run in await asyncio.to_thread(
        context.runs.due, context.clock.now(), context.settings.reconnect_window_s
    ):
        number = run.run + 1
        with SetWorkflowID(run_id(run.conversation, number)):
            await start_workflow(QUEUE, MAX_DIRECT_RUNS, follow_up, run.conversation, number)
        fault_point("work.after_enqueue")
        await asyncio.to_thread(
            context.runs.mark_running, run.conversation, number, context.clock.now()
        )
    for row in await asyncio.to_thread(context.followups.queued):
        with SetWorkflowID(f"followup:{row.conversation}:{row.id}:{row.round}"):
            await start_workflow(QUEUE, MAX_DIRECT_RUNS, follow_up_one, row.id, row.conversation)
        fault_point("work.after_queue")
        await asyncio.to_thread(context.followups.mark_queued_started, row.id, row.round)
    for row in (
        await asyncio.to_thread(context.followups.reminders_due, context.clock.now())
        if context.settings.work.reminders
        else ()
    ):
        with SetWorkflowID(f"reminder:{row.id}"):
            await start_workflow(QUEUE, MAX_DIRECT_RUNS, remind, row.id)
        await asyncio.to_thread(context.followups.mark_reminder_started, row.id)


async def next_due(context: WorkContext) -> datetime | None:
    """When time alone will make something due; anything sooner is written first."""
    moments = [await asyncio.to_thread(context.runs.next_due, context.settings.reconnect_window_s)]
    if context.settings.work.reminders:
        moments.append(await asyncio.to_thread(context.followups.next_reminder))
    return min((moment for moment in moments if moment), default=None)


def run_id(conversation: str, run: int) -> str:
    return f"followup:{conversation}:{run}"
