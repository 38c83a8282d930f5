"""The durable workflows of follow-up work. The only file here that knows the durable engine.

A run's id is its conversation and number, an approval's its follow-up and round: each is worked on once however often it is
started. A step in flight at a crash runs again; the ledger and the keys of the sinks make that the same deed.
"""

import asyncio
from datetime import datetime

from dbos import SetWorkflowID

from aftercall.durable import begin, in_thread, open_queue, step, workflow
from aftercall.errors import to_own_error
from aftercall.faults import reach
from aftercall.log import get_logger
from aftercall.work import handover
from aftercall.work.desk import WorkDesk

QUEUE = "aftercall.follow_up"
AT_ONCE = 8
AT_HAND = 8  # begun without the queue; only when there are more of them does anybody wait for it
ATTEMPTS = 10  # with doubling pauses: a sink that is away for a quarter of an hour loses nothing

log = get_logger("work")

# One at a time in a process, because the durable engine is one.
_desk: WorkDesk | None = None


def desk() -> WorkDesk:
    if _desk is None:
        raise RuntimeError("the follow-up work has not been opened")
    return _desk


@workflow("aftercall.follow_up")
async def follow_up(conversation: str, run: int) -> None:
    try:
        todo = await gather(conversation, run)
        await attempt(todo)
        await close(conversation, run)
    except Exception as error:  # noqa: BLE001 - the edge of a run: it is recorded, shown, and swept up later
        await fail_run(conversation, run, str(to_own_error(error)))
        return
    await attempt_notice(conversation, run)


@workflow("aftercall.follow_up_one")
async def follow_up_one(followup_id: str, conversation: str) -> None:
    await attempt([followup_id])
    try:
        await settle(conversation)
    except Exception as error:  # noqa: BLE001 - the edge of a workflow: the request has ended, only the journal does not tell it yet
        log.warning("a journal entry could not be written", conversation=conversation, error=to_own_error(error).code)


@workflow("aftercall.remind")
async def remind(followup_id: str) -> None:
    try:
        await send_reminder(followup_id)
    except Exception as error:  # noqa: BLE001 - the edge of a reminder: its delivery shows that it failed
        log.warning("a reminder failed", followup=followup_id, error=to_own_error(error).code)


async def attempt(todo: list[str]) -> None:
    """One request's failure never stops another. Failures are recorded in order: a replay must meet the same steps again."""
    if len(todo) > 1:
        await attempt_agent(todo)
    ends = await asyncio.gather(*(do(followup_id) for followup_id in todo), return_exceptions=True)
    for followup_id, end in zip(todo, ends, strict=True):
        if isinstance(end, Exception):
            await give_up(followup_id, str(to_own_error(end)))
        elif end is not None:
            raise end


async def attempt_agent(todo: list[str]) -> None:
    try:
        await run_agent(todo)
    except Exception as error:  # noqa: BLE001 - the edge of the command: each of its requests fails with the reason
        await give_up_agent(todo, str(to_own_error(error)))


async def attempt_notice(conversation: str, run: int) -> None:
    try:
        await send_notice(conversation, run)
    except Exception as error:  # noqa: BLE001 - the edge of a notice: the work is done, the delivery shows that nobody was told
        log.warning("a notice failed", conversation=conversation, error=to_own_error(error).code)


@step("aftercall.gather", ATTEMPTS)
async def gather(conversation: str, run: int) -> list[str]:
    return await in_thread(desk().gather, conversation, run)


@step("aftercall.do", ATTEMPTS)
async def do(followup_id: str) -> None:
    await in_thread(handover.do, desk(), followup_id)


@step("aftercall.run_agent", ATTEMPTS)
async def run_agent(todo: list[str]) -> None:
    await in_thread(handover.run_agent, desk(), todo)


@step("aftercall.give_up_agent", ATTEMPTS)
async def give_up_agent(todo: list[str], reason: str) -> None:
    log.warning("the agent's command failed", requests=len(todo))
    await in_thread(handover.give_up_agent, desk(), todo, reason)


@step("aftercall.give_up_request", ATTEMPTS)
async def give_up(followup_id: str, reason: str) -> None:
    log.warning("a request failed", followup=followup_id)
    await in_thread(handover.give_up, desk(), followup_id, reason)


@step("aftercall.close", ATTEMPTS)
async def close(conversation: str, run: int) -> None:
    await in_thread(desk().close, conversation, run)


@step("aftercall.settle", ATTEMPTS)
async def settle(conversation: str) -> None:
    def settle_now() -> None:
        desk().settle(desk().read(conversation))

    await in_thread(settle_now)


@step("aftercall.fail_run", ATTEMPTS)
async def fail_run(conversation: str, run: int, reason: str) -> None:
    log.warning("a follow-up run failed", conversation=conversation)
    await in_thread(desk().runs.finish, conversation, run, "failed", reason, desk().clock.now())


@step("aftercall.notice", ATTEMPTS)
async def send_notice(conversation: str, run: int) -> None:
    await in_thread(handover.notify, desk(), conversation, run)


@step("aftercall.reminder", ATTEMPTS)
async def send_reminder(followup_id: str) -> None:
    await in_thread(handover.remind, desk(), followup_id)


def open_work(at: WorkDesk) -> None:
    """Call before the durable engine is launched."""
    global _desk
    _desk = at
    open_queue(QUEUE, AT_ONCE)


def close_work() -> None:
    """The durable engine has ended."""
    global _desk
    _desk = None


async def start_due(at: WorkDesk) -> None:
    """Start what is due: conversations whose window has passed, approvals, reminders. Starting twice is starting once."""
    for run in await asyncio.to_thread(at.runs.due, at.clock.now(), at.settings.reconnect_window_s):
        number = run.run + 1
        with SetWorkflowID(run_id(run.conversation, number)):
            await begin(QUEUE, AT_HAND, follow_up, run.conversation, number)
        reach("work.after_enqueue")
        await asyncio.to_thread(at.runs.mark_running, run.conversation, number, at.clock.now())
    for row in await asyncio.to_thread(at.followups.queued):
        with SetWorkflowID(f"followup:{row.conversation}:{row.id}:{row.round}"):
            await begin(QUEUE, AT_HAND, follow_up_one, row.id, row.conversation)
        reach("work.after_queue")
        await asyncio.to_thread(at.followups.mark_queued_started, row.id, row.round)
    for row in await asyncio.to_thread(at.followups.reminders_due, at.clock.now()) if at.settings.work.reminders else ():
        with SetWorkflowID(f"reminder:{row.id}"):
            await begin(QUEUE, AT_HAND, remind, row.id)
        await asyncio.to_thread(at.followups.mark_reminder_started, row.id)


async def next_due(at: WorkDesk) -> datetime | None:
    """When time alone will make something due; anything sooner is written first."""
    moments = [await asyncio.to_thread(at.runs.next_due, at.settings.reconnect_window_s)]
    if at.settings.work.reminders:
        moments.append(await asyncio.to_thread(at.followups.next_reminder))
    return min((moment for moment in moments if moment), default=None)


def run_id(conversation: str, run: int) -> str:
    return f"followup:{conversation}:{run}"
