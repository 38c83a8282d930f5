"""The durable workflows of follow-up work. The only file here that knows the durable engine.

A run's id is its conversation and number, an approval's its follow-up and round: each is worked on once however often it is
started. A step in flight at a crash runs again; the ledger and the keys of the sinks make that the same deed.
"""

import asyncio
from datetime import datetime

from dbos import DBOS, SetWorkflowID
from dbos import error as engine_error

from aftercall.durable import begin, open_queue
from aftercall.errors import AftercallError
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


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, AftercallError) and error.retryable


@DBOS.workflow(name="aftercall.follow_up")
async def follow_up(conversation: str, run: int) -> None:
    try:
        todo = await gather(conversation, run)
        await attempt(todo)
        await close(conversation, run)
    except Exception as error:  # noqa: BLE001 - the edge of a run: it is recorded, shown, and swept up later
        await fail_run(conversation, run, _reason(error))
        return
    await attempt_notice(conversation, run)


@DBOS.workflow(name="aftercall.follow_up_one")
async def follow_up_one(followup_id: str, conversation: str) -> None:
    await attempt([followup_id])
    try:
        await settle(conversation)
    except Exception as error:  # noqa: BLE001 - the edge of a workflow: the request has ended, only the journal does not tell it yet
        log.warning("a journal entry could not be written", conversation=conversation, error=_code(error))


@DBOS.workflow(name="aftercall.remind")
async def remind(followup_id: str) -> None:
    try:
        await send_reminder(followup_id)
    except Exception as error:  # noqa: BLE001 - the edge of a reminder: its delivery shows that it failed
        log.warning("a reminder failed", followup=followup_id, error=_code(error))


async def attempt(todo: list[str]) -> None:
    """One request's failure never stops another. Failures are recorded in order: a replay must meet the same steps again."""
    if len(todo) > 1:
        await attempt_agent(todo)
    ends = await asyncio.gather(*(do(followup_id) for followup_id in todo), return_exceptions=True)
    for followup_id, end in zip(todo, ends, strict=True):
        if isinstance(end, Exception):
            await give_up(followup_id, _reason(end))
        elif end is not None:
            raise end


async def attempt_agent(todo: list[str]) -> None:
    try:
        await run_agent(todo)
    except Exception as error:  # noqa: BLE001 - the edge of the command: each of its requests fails with the reason
        await give_up_agent(todo, _reason(error))


async def attempt_notice(conversation: str, run: int) -> None:
    try:
        await send_notice(conversation, run)
    except Exception as error:  # noqa: BLE001 - the edge of a notice: the work is done, the delivery shows that nobody was told
        log.warning("a notice failed", conversation=conversation, error=_code(error))


@DBOS.step(name="aftercall.gather", retries_allowed=True, max_attempts=ATTEMPTS, should_retry=_may_pass)
async def gather(conversation: str, run: int) -> list[str]:
    return await asyncio.to_thread(desk().gather, conversation, run)


@DBOS.step(name="aftercall.do", retries_allowed=True, max_attempts=ATTEMPTS, should_retry=_may_pass)
async def do(followup_id: str) -> None:
    await asyncio.to_thread(handover.do, desk(), followup_id)


@DBOS.step(name="aftercall.run_agent", retries_allowed=True, max_attempts=ATTEMPTS, should_retry=_may_pass)
async def run_agent(todo: list[str]) -> None:
    await asyncio.to_thread(handover.run_agent, desk(), todo)


@DBOS.step(name="aftercall.give_up_agent")
async def give_up_agent(todo: list[str], reason: str) -> None:
    log.warning("the agent's command failed", requests=len(todo))
    await asyncio.to_thread(handover.give_up_agent, desk(), todo, reason)


@DBOS.step(name="aftercall.give_up_request")
async def give_up(followup_id: str, reason: str) -> None:
    log.warning("a request failed", followup=followup_id)
    await asyncio.to_thread(handover.give_up, desk(), followup_id, reason)


@DBOS.step(name="aftercall.close", retries_allowed=True, max_attempts=ATTEMPTS, should_retry=_may_pass)
async def close(conversation: str, run: int) -> None:
    await asyncio.to_thread(desk().close, conversation, run)


@DBOS.step(name="aftercall.settle", retries_allowed=True, max_attempts=ATTEMPTS, should_retry=_may_pass)
async def settle(conversation: str) -> None:
    def settle_now() -> None:
        desk().settle(desk().read(conversation))

    await asyncio.to_thread(settle_now)


@DBOS.step(name="aftercall.fail_run")
async def fail_run(conversation: str, run: int, reason: str) -> None:
    log.warning("a follow-up run failed", conversation=conversation)
    await asyncio.to_thread(desk().runs.finish, conversation, run, "failed", reason, desk().clock.now())


@DBOS.step(name="aftercall.notice", retries_allowed=True, max_attempts=ATTEMPTS, should_retry=_may_pass)
async def send_notice(conversation: str, run: int) -> None:
    await asyncio.to_thread(handover.notify, desk(), conversation, run)


@DBOS.step(name="aftercall.reminder", retries_allowed=True, max_attempts=ATTEMPTS, should_retry=_may_pass)
async def send_reminder(followup_id: str) -> None:
    await asyncio.to_thread(handover.remind, desk(), followup_id)


def _cause(error: Exception) -> Exception:
    return error.errors[-1] if isinstance(error, engine_error.DBOSMaxStepRetriesExceeded) and error.errors else error


def _reason(error: Exception) -> str:
    """What a person can act on; the text of foreign errors may hold speech and is left out."""
    cause = _cause(error)
    return str(cause) if isinstance(cause, AftercallError) else type(cause).__name__


def _code(error: Exception) -> str:
    cause = _cause(error)
    return cause.code if isinstance(cause, AftercallError) else type(cause).__name__


async def open_work(at: WorkDesk) -> None:
    """Take up the work; the durable engine has been launched."""
    global _desk
    _desk = at
    await open_queue(QUEUE, AT_ONCE)
    await start_due(at)


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
