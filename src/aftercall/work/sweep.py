"""The hourly sweep: finds lost work of the last three days and starts it again. Idempotent."""

from datetime import datetime, timedelta

from aftercall import durable
from aftercall.errors import AftercallError, error_code
from aftercall.journal.journal import Journal
from aftercall.log import get_logger
from aftercall.work.context import DAY, WorkContext
from aftercall.work.health import REPORT_HOURS, HealthStore
from aftercall.work.promises import NO_WORK
from aftercall.work.store import FollowUpTransition
from aftercall.work.workflow import run_id

SWEEP_INTERVAL = timedelta(hours=1)
STUCK_AFTER = timedelta(minutes=30)

log = get_logger("sweep")


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
        "timers": await durable.run_in_thread(store.add_missing_runs, since, now),
        "stranded": await durable.run_in_thread(
            store.requeue_stranded_requests, stuck_before
        ),
        "expired": await durable.run_in_thread(expire, context, now),
        "broken": await durable.run_in_thread(break_overdue, context, now),
        "steps": await _restart_steps(store, since, stuck_before),
        "runs": await _restart_runs(store, context, since, stuck_before),
    }
    await durable.run_in_thread(store.note_sweep, found)
    if any(found.values()):
        log.warning("the sweep repaired something", **found)
    return found


def import_missing_files(journal: Journal, since: datetime) -> int:
    """Adds sealed files to the database that it does not know: the file is the record.

    A live call has a row before its file, so a file without a row counts as handed in.
    """
    known = {name for name, _, _ in journal.store.list_sealed_files().values()}
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
    for call_id in await durable.run_in_thread(store.stuck_calls, since, before):
        if not await durable.is_active(call_id):
            await durable.delete_workflow(call_id)
            await durable.run_in_thread(store.restart, call_id)
            restarted += 1
    return restarted


async def _restart_runs(
    store: HealthStore, context: WorkContext, since: datetime, before: datetime
) -> int:
    restarted = 0
    for conversation, number, state in await durable.run_in_thread(
        store.stuck_runs, since, before
    ):
        if state == "failed" or not await durable.is_active(
            run_id(conversation, number)
        ):
            await durable.run_in_thread(
                context.runs.make_due, conversation, context.clock.now()
            )
            restarted += 1
    return restarted
