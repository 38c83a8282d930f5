"""Once an hour over the last three days: what fell through is found and set going again.

Sweeping twice changes nothing more.
"""

import asyncio
from datetime import datetime, timedelta

from aftercall import durable
from aftercall.errors import AftercallError
from aftercall.journal.record import Journal
from aftercall.log import get_logger
from aftercall.work.context import DAY, WorkContext
from aftercall.work.health.report import REPORT_HOURS
from aftercall.work.health.store import HealthStore
from aftercall.work.promises import NO_WORK
from aftercall.work.store import FollowUpTransition
from aftercall.work.workflow import run_id

SWEEP_INTERVAL = timedelta(hours=1)
STUCK_AFTER = timedelta(minutes=30)

log = get_logger("sweep")


async def sweep_if_due(
    store: HealthStore, context: WorkContext, journal: Journal
) -> dict[str, int] | None:
    """None if another process has swept, or we have, within the hour."""
    now = context.clock.now()
    if not await asyncio.to_thread(store.claim_sweep, now, now - SWEEP_INTERVAL):
        return None
    return await sweep(store, context, journal)


async def sweep(store: HealthStore, context: WorkContext, journal: Journal) -> dict[str, int]:
    now = context.clock.now()
    since = now - timedelta(hours=REPORT_HOURS)
    found = {
        "files": await asyncio.to_thread(import_missing_files, journal, since),
        "calls": await asyncio.to_thread(store.requeue_unstarted_calls, since),
        "timers": await asyncio.to_thread(store.add_missing_runs, since, now),
        "stranded": await asyncio.to_thread(store.requeue_stranded_requests, now - STUCK_AFTER),
        "expired": await asyncio.to_thread(expire, context, now),
        "broken": await asyncio.to_thread(break_overdue, context, now),
        "steps": await _revive_steps(store, since, now - STUCK_AFTER),
        "runs": await _revive_runs(store, context, since, now - STUCK_AFTER),
    }
    await asyncio.to_thread(store.note_sweep, found)
    if any(found.values()):
        log.warning("the sweep repaired something", **found)
    return found


def import_missing_files(journal: Journal, since: datetime) -> int:
    """Sealed files that the database does not know: the file is the record, the row is made
    again from it.

    A live call has a row before its file; one without a row counts as handed in.
    """
    known = {name for name, _, _ in journal.store.list_sealed_files().values()}
    first = f"{since:%Y%m%dT%H%M%SZ}"
    adopted = 0
    for name in journal.archive.place.list_names():
        if name in known or name < first or ".addendum-" in name:
            continue
        try:
            call, _ = journal.archive.read(name)
            adopted += journal.ingest(call, is_handed_in=True)[1]
        except (AftercallError, ValueError) as error:
            log.warning(
                "a sealed file cannot be taken in",
                error=getattr(error, "code", type(error).__name__),
            )
    return adopted


def expire(context: WorkContext, now: datetime) -> int:
    """What nobody approved for a month is not wanted any more."""
    old = context.followups.held_before(now - timedelta(days=context.settings.work.hold_days))
    transition = FollowUpTransition(
        "expired", "sweep", f"not approved within {context.settings.work.hold_days} days"
    )
    return sum(
        context.followups.change_state(row.id, transition, now, only_from=("held",)) for row in old
    )


def break_overdue(context: WorkContext, now: datetime) -> int:
    """A promise of unknown outcome is broken once its day has passed and nothing kept it."""
    late = [
        row for row in context.followups.unknown_before(now.date() + DAY) if context.is_overdue(row)
    ]
    transition = FollowUpTransition("broken", "sweep", NO_WORK)
    return sum(
        context.followups.change_state(row.id, transition, now, only_from=("unknown",))
        for row in late
    )


async def _revive_steps(store: HealthStore, since: datetime, before: datetime) -> int:
    revived = 0
    for call_id in await asyncio.to_thread(store.stuck_calls, since, before):
        if not await durable.is_active(call_id):
            await durable.delete_workflow(call_id)
            await asyncio.to_thread(store.restart, call_id)
            revived += 1
    return revived


async def _revive_runs(
    store: HealthStore, context: WorkContext, since: datetime, before: datetime
) -> int:
    revived = 0
    for conversation, number, state in await asyncio.to_thread(store.stuck_runs, since, before):
        if state == "failed" or not await durable.is_active(run_id(conversation, number)):
            await asyncio.to_thread(context.runs.make_due, conversation, context.clock.now())
            revived += 1
    return revived
