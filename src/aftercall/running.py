"""The app at work: what a crash left is recovered, what is due is done, and at the end every
live call is sealed.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import datetime

from aftercall import durable
from aftercall.app import App
from aftercall.briefing import compose
from aftercall.change_trigger import ChangeTrigger
from aftercall.db.connect import TableChanges
from aftercall.errors import AftercallError
from aftercall.journal.presence import HEARTBEAT_INTERVAL_S
from aftercall.journal.record import RECOVERY_INTERVAL_S, recover
from aftercall.memory.pins import board
from aftercall.postcall.office import Office
from aftercall.postcall.recording import open_recordings, start_due_recordings
from aftercall.postcall.workflow import close_office, open_office, start_due
from aftercall.privacy import retention
from aftercall.privacy.retention_workflow import close_retention, open_retention, start_retention
from aftercall.work import workflow as work
from aftercall.work.sweep import sweep_if_due

CHANGE_POLL_INTERVAL_S = 0.2  # a part of how long a summary is waited for
POSTCALL_INTERVAL_S = (
    0.25  # how long at least between two looks of a kind, however much is written meanwhile
)
DUE_WORK_INTERVAL_S = 0.5
SWEEP_CHECK_INTERVAL_S = 10.0  # how often to look whether the hourly sweep is due


@asynccontextmanager
async def running(app: App) -> AsyncIterator[App]:
    office = app.office
    await asyncio.to_thread(app.warm_up)
    await asyncio.to_thread(recover, app.journal)
    await asyncio.to_thread(app.briefings.invalidate_other_forms, app.composer.settings_hash)
    open_office(office)
    work.open_work(app.work)
    open_recordings(app.recording_desk)
    open_retention(app.retention)
    await durable.launch(app.settings, app.presence.process)
    await start_due(office)
    await work.start_due(app.work)
    await start_due_recordings(app.recording_desk)
    await _requeue_orphans(app)
    changes = TableChanges(app.database)
    upkeep = [
        asyncio.create_task(job)
        for job in (*_periodic_jobs(app), *_triggered_jobs(app, office, changes))
    ]
    try:
        yield app
    finally:
        for task in upkeep:
            task.cancel()
        await asyncio.gather(*upkeep, return_exceptions=True)
        changes.close()
        for record in app.journal.live_recorders:
            with suppress(AftercallError):  # recovery will seal it at the next start
                await app.journal.seal(record, end_reason="server_stopped")
        await app.journal.close()
        await durable.close(_close_parts)


def _close_parts() -> None:
    close_office()
    work.close_work()
    close_retention()


def _periodic_jobs(app: App) -> list[Coroutine[None, None, None]]:
    async def sweep() -> None:
        await asyncio.to_thread(recover, app.journal)
        await asyncio.to_thread(app.resume.delete_expired, app.clock.now())
        await _requeue_orphans(app)
        await asyncio.to_thread(app.database.truncate_wal)

    keep_doing = app.upkeep.run_repeatedly
    return [
        keep_doing(
            "heartbeat",
            HEARTBEAT_INTERVAL_S,
            lambda: asyncio.to_thread(app.presence.send_heartbeat, app.upkeep.failures),
        ),
        keep_doing("recovery", RECOVERY_INTERVAL_S, sweep),
        keep_doing(
            "the hourly sweep",
            SWEEP_CHECK_INTERVAL_S,
            lambda: sweep_if_due(app.health, app.work, app.journal),
        ),
        keep_doing(
            "retention", retention.RETENTION_INTERVAL_S, lambda: start_retention(app.retention)
        ),
        keep_doing("pins", board.SWEEP_INTERVAL_S, lambda: asyncio.to_thread(app.pins.sweep)),
    ]


def _triggered_jobs(
    app: App, office: Office, changes: TableChanges
) -> list[Coroutine[None, None, None]]:
    lookout = ChangeTrigger(changes, app.clock)

    async def look_at_work() -> datetime | None:
        await work.start_due(app.work)
        return await work.next_due(app.work)

    def prepare_briefings() -> Awaitable[object]:
        return asyncio.to_thread(compose.fill_cache, app.composer)

    keep_doing = app.upkeep.run_repeatedly
    return [
        keep_doing("post-call work", POSTCALL_INTERVAL_S, lookout.wrap(lambda: start_due(office))),
        keep_doing("follow-up work", DUE_WORK_INTERVAL_S, lookout.wrap(look_at_work)),
        keep_doing(
            "recordings",
            DUE_WORK_INTERVAL_S,
            lookout.wrap(lambda: start_due_recordings(app.recording_desk)),
        ),
        keep_doing("briefings", compose.FILL_INTERVAL_S, lookout.wrap(prepare_briefings)),
        keep_doing("looking for changes", CHANGE_POLL_INTERVAL_S, lookout.poll),
    ]


async def _requeue_orphans(app: App) -> None:
    await durable.requeue_orphans(lambda process: app.presence.is_alive(process, app.clock.now()))
