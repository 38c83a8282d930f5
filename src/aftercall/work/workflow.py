"""The durable workflows of follow-up work.

The workflow id of a run is its conversation and number, that of an approval its follow-up and
round: starting one twice runs it once. A step in flight at a crash runs again; the ledger and
the keys of the sinks make that idempotent.

The hourly sweep finds lost work of the last three days and starts it again. It is idempotent.
"""

import asyncio
from datetime import datetime, timedelta

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID

from aftercall import durable
from aftercall.clock import format_instant
from aftercall.db.event_log import PUBLISH_BATCH
from aftercall.durable import (
    ThreadSteps,
    register_queue,
    run_in_thread,
    start_workflow,
    workflow,
)
from aftercall.errors import AftercallError, error_code, to_aftercall_error
from aftercall.faults import fault_point
from aftercall.ids import make_work_id
from aftercall.journal.journal import Journal
from aftercall.log import get_logger
from aftercall.work import deliver
from aftercall.work.context import DAY, WorkContext
from aftercall.work.events import Webhooks
from aftercall.work.health import REPORT_HOURS, HealthStore
from aftercall.work.requests import NO_WORK
from aftercall.work.store import FollowUpTransition

QUEUE = "aftercall.follow_up"
QUEUE_CONCURRENCY = 8
EVENT_CONCURRENCY = 4  # of one webhook
EVENT_POLL_S = 2.0
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


@workflow("aftercall.post_event")
async def post_event(key: str, sink: str, due: str, attempt: int) -> None:
    """One attempt. The next one is a delayed workflow, which holds no place in the queue."""
    pause_s = await send_event(key, attempt)
    if pause_s is None:
        return
    next_id = event_run_id(key, due, attempt + 1)
    with SetWorkflowID(next_id), SetEnqueueOptions(delay_seconds=pause_s):
        await DBOS.enqueue_workflow_async(
            event_queue(sink), post_event, key, sink, due, attempt + 1
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


_steps = ThreadSteps(ATTEMPTS, work_context)
record_followups = _steps.make(
    "aftercall.record_followups", WorkContext.record_followups
)
run_agent = _steps.make("aftercall.run_agent", deliver.run_agent)
deliver_request = _steps.make("aftercall.deliver_request", deliver.deliver_request)
fail_agent_requests = _steps.make(
    "aftercall.fail_agent_requests", deliver.fail_agent_requests
)
fail_request = _steps.make("aftercall.fail_request", deliver.fail_request)
finish_run = _steps.make("aftercall.finish_run", WorkContext.finish_run)
fail_run = _steps.make("aftercall.fail_run", WorkContext.fail_run)
settle_promises = _steps.make("aftercall.settle_promises", WorkContext.settle_promises)
send_notice = _steps.make("aftercall.send_notice", deliver.notify)
send_reminder = _steps.make("aftercall.send_reminder", deliver.remind)
send_event = _steps.make("aftercall.send_event", deliver.send_event)


def open_work(context: WorkContext) -> None:
    """Call before launching the durable engine."""
    global _context
    _context = context
    register_queue(QUEUE, QUEUE_CONCURRENCY)
    for hook in context.webhooks.hooks:
        register_queue(event_queue(hook.name), EVENT_CONCURRENCY, poll_s=EVENT_POLL_S)


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
    approved_before = now - timedelta(seconds=context.settings.work.undo_s)
    for row in await run_in_thread(context.followups.queued, approved_before):
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


async def start_due_events(webhooks: Webhooks) -> None:
    """Publishes new events and starts the deliveries that are due. Idempotent."""
    while await run_in_thread(webhooks.publish) == PUBLISH_BATCH:
        pass
    for key, sink, since in await run_in_thread(webhooks.list_due):
        due = format_instant(since)
        with SetWorkflowID(event_run_id(key, due, 1)):
            await start_workflow(
                event_queue(sink), EVENT_CONCURRENCY, post_event, key, sink, due, 1
            )
        fault_point("work.after_event_start")
        await run_in_thread(webhooks.mark_started, key)


def event_queue(sink: str) -> str:
    """One for each webhook: one that does not answer holds up no other."""
    return f"aftercall.{sink}"


def event_run_id(key: str, due: str, attempt: int) -> str:
    """`due` is when it was to be sent, at first or again."""
    return f"event:{key}:{due}:{attempt}"


async def next_due(context: WorkContext) -> datetime | None:
    """When the next run, approval or reminder becomes due by time alone."""
    moments = [
        await run_in_thread(context.runs.next_due, context.settings.reconnect_window_s)
    ]
    if approved_at := await run_in_thread(context.followups.next_approved):
        undo_s = context.settings.work.undo_s
        moments.append(approved_at + timedelta(seconds=undo_s))
    if context.settings.work.reminders:
        moments.append(await run_in_thread(context.followups.next_reminder))
    return min((moment for moment in moments if moment), default=None)


def run_id(conversation: str, run: int) -> str:
    return f"followup:{conversation}:{run}"


SWEEP_INTERVAL = timedelta(hours=1)
STUCK_AFTER = timedelta(minutes=30)


async def sweep_if_due(
    store: HealthStore, context: WorkContext, journal: Journal
) -> dict[str, int] | None:
    """None if a process has swept within the hour."""
    now = context.clock.now()
    if not await durable.run_in_thread(store.claim_sweep, now, now - SWEEP_INTERVAL):
        return None
    return await sweep(store, context, journal)


async def sweep(
    store: HealthStore, context: WorkContext, journal: Journal
) -> dict[str, int]:
    now = context.clock.now()
    since = now - timedelta(hours=REPORT_HOURS)
    stuck_before = now - STUCK_AFTER
    found = {
        "files": await durable.run_in_thread(import_missing_files, journal, since),
        "calls": await durable.run_in_thread(store.requeue_unstarted_calls, since),
        "timers": await durable.run_in_thread(context.runs.add_missing, since, now),
        "stranded": await durable.run_in_thread(
            store.requeue_stranded_requests, stuck_before
        ),
        "expired": await durable.run_in_thread(expire, context, now),
        "broken": await durable.run_in_thread(break_overdue, context, now),
        "steps": await _restart_steps(store, since, stuck_before),
        "runs": await _restart_runs(context, since, stuck_before),
    }
    await durable.run_in_thread(_tidy_events, context, now)
    await durable.run_in_thread(store.note_sweep, found)
    if any(found.values()):
        log.warning("the sweep repaired something", **found)
    return found


def _tidy_events(context: WorkContext, now: datetime) -> None:
    keep = timedelta(days=context.settings.events.keep_days)
    context.webhooks.log.delete_before(now - keep)
    context.webhooks.fail_removed()


def import_missing_files(journal: Journal, since: datetime) -> int:
    """Adds sealed files to the database that it does not know: the file is the record.

    A live call has a row before its file, so a file without a row counts as handed in.
    """
    sealed = journal.store.list_sealed_files(since.replace(microsecond=0))
    known = {name for name, _, _ in sealed.values()}
    first = f"{since:%Y%m%dT%H%M%SZ}"
    imported = 0
    for name in journal.archive.place.list_names():
        if name in known or name < first or ".addendum-" in name:
            continue
        try:
            call, _ = journal.archive.read(name)
            imported += journal.ingest(call, is_handed_in=True)[1]
        except (AftercallError, ValueError) as error:
            log.warning("a sealed file cannot be imported", error=error_code(error))
    return imported


def expire(context: WorkContext, now: datetime) -> int:
    """Expires requests that waited too long for approval."""
    days = context.settings.work.hold_days
    transition = FollowUpTransition(
        "expired", "sweep", f"not approved within {days} days"
    )
    return sum(
        context.followups.change_state(row.id, transition, now, only_from=("held",))
        for row in context.followups.held_before(now - timedelta(days=days))
    )


def break_overdue(context: WorkContext, now: datetime) -> int:
    """Marks promises of unknown outcome as broken once their day has passed."""
    transition = FollowUpTransition("broken", "sweep", NO_WORK)
    return sum(
        context.followups.change_state(row.id, transition, now, only_from=("unknown",))
        for row in context.followups.unknown_before(now.date() + DAY)
        if context.is_overdue(row)
    )


async def _restart_steps(store: HealthStore, since: datetime, before: datetime) -> int:
    restarted = 0
    stuck = await durable.run_in_thread(store.stuck_calls, since, before)
    for call_id, addenda in stuck.items():
        work_id = make_work_id(call_id, addenda)
        if not await durable.is_active(work_id):
            await durable.delete_workflow(work_id)
            await durable.run_in_thread(store.restart, call_id)
            restarted += 1
    return restarted


async def _restart_runs(context: WorkContext, since: datetime, before: datetime) -> int:
    restarted = 0
    for conversation, number, state in await durable.run_in_thread(
        context.runs.list_stuck, since, before
    ):
        if state == "failed" or not await durable.is_active(
            run_id(conversation, number)
        ):
            await durable.run_in_thread(
                context.runs.make_due, conversation, context.clock.now()
            )
            restarted += 1
    return restarted
