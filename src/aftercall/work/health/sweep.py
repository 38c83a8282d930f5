"""Once an hour over the last three days: what fell through is found and set going again. Sweeping twice changes nothing more."""

import asyncio
from datetime import datetime, timedelta

from aftercall import durable
from aftercall.errors import AftercallError
from aftercall.journal.record import Journal
from aftercall.log import get_logger
from aftercall.work.desk import DAY, WorkDesk
from aftercall.work.health.report import HOURS
from aftercall.work.health.store import HealthStore
from aftercall.work.promises import NO_WORK
from aftercall.work.store import Transition
from aftercall.work.workflow import run_id

EVERY = timedelta(hours=1)
STUCK = timedelta(minutes=30)

log = get_logger("sweep")


async def sweep_if_due(store: HealthStore, desk: WorkDesk, journal: Journal) -> dict[str, int] | None:
    """None if another process has swept, or we have, within the hour."""
    now = desk.clock.now()
    if not await asyncio.to_thread(store.claim_sweep, now, now - EVERY):
        return None
    return await sweep(store, desk, journal)


async def sweep(store: HealthStore, desk: WorkDesk, journal: Journal) -> dict[str, int]:
    now = desk.clock.now()
    since = now - timedelta(hours=HOURS)
    found = {
        "files": await asyncio.to_thread(adopt_files, journal, since),
        "calls": await asyncio.to_thread(store.start_missing, since),
        "timers": await asyncio.to_thread(store.time_missing, since, now),
        "stranded": await asyncio.to_thread(store.queue_stranded, now - STUCK),
        "expired": await asyncio.to_thread(expire, desk, now),
        "broken": await asyncio.to_thread(break_overdue, desk, now),
        "steps": await _revive_steps(store, since, now - STUCK),
        "runs": await _revive_runs(store, desk, since, now - STUCK),
    }
    await asyncio.to_thread(store.note_sweep, found)
    if any(found.values()):
        log.warning("the sweep repaired something", **found)
    return found


def adopt_files(journal: Journal, since: datetime) -> int:
    """Sealed files that the database does not know: the file is the record, the row is made again from it.

    A live call has a row before its file; one without a row counts as handed in.
    """
    known = {name for name, _, _ in journal.store.sealed_files().values()}
    first = f"{since:%Y%m%dT%H%M%SZ}"
    adopted = 0
    for name in journal.archive.place.names():
        if name in known or name < first or ".addendum-" in name:
            continue
        try:
            call, _ = journal.archive.read(name)
            adopted += journal.take_in(call, is_handed_in=True)[1]
        except (AftercallError, ValueError) as error:
            log.warning("a sealed file cannot be taken in", error=getattr(error, "code", type(error).__name__))
    return adopted


def expire(desk: WorkDesk, now: datetime) -> int:
    """What nobody approved for a month is not wanted any more."""
    old = desk.followups.held_before(now - timedelta(days=desk.settings.work.hold_days))
    transition = Transition("expired", "sweep", f"not approved within {desk.settings.work.hold_days} days")
    return sum(desk.followups.move(row.id, transition, now, only_from=("held",)) for row in old)


def break_overdue(desk: WorkDesk, now: datetime) -> int:
    """A promise of unknown outcome is broken once its day has passed and nothing kept it."""
    late = [row for row in desk.followups.unknown_before(now.date() + DAY) if desk.is_overdue(row)]
    transition = Transition("broken", "sweep", NO_WORK)
    return sum(desk.followups.move(row.id, transition, now, only_from=("unknown",)) for row in late)


async def _revive_steps(store: HealthStore, since: datetime, before: datetime) -> int:
    revived = 0
    for call_id in await asyncio.to_thread(store.stuck_calls, since, before):
        if not await durable.is_under_way(call_id):
            await durable.forget(call_id)
            await asyncio.to_thread(store.restart, call_id)
            revived += 1
    return revived


async def _revive_runs(store: HealthStore, desk: WorkDesk, since: datetime, before: datetime) -> int:
    revived = 0
    for conversation, number, state in await asyncio.to_thread(store.stuck_runs, since, before):
        if state == "failed" or not await durable.is_under_way(run_id(conversation, number)):
            await asyncio.to_thread(desk.runs.make_due, conversation, desk.clock.now())
            revived += 1
    return revived
