"""Runs the app: recovers after a crash, does what is due, and seals live calls at the end.

A job runs only when the database has changed or when the time that the job named has come. One
cheap query per tick serves all jobs, so an idle server costs almost nothing.
Heartbeats change the database too, so every job runs every few seconds even if a change was
missed.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial

from aftercall import __version__, durable, telemetry
from aftercall.app import App
from aftercall.bridge.caller_tracker import WRITE_TIMEOUT_S
from aftercall.briefing import composer
from aftercall.clock import Clock
from aftercall.db.connect import DatabaseChanges
from aftercall.errors import AftercallError, DatabaseUnreachable
from aftercall.journal.handover import HEARTBEAT_INTERVAL_S
from aftercall.journal.journal import RECOVERY_INTERVAL_S, recover
from aftercall.journal.recording_files import RecordingFolder, move_recordings
from aftercall.memory.pins import board
from aftercall.postcall.recordings import open_recordings, start_due_recordings
from aftercall.postcall.workflow import close_postcall, open_postcall, start_due
from aftercall.privacy import retention
from aftercall.privacy.retention import (
    close_retention,
    open_retention,
    start_retention,
)
from aftercall.reconcile import RECONCILE_JOB
from aftercall.test_runs import close_test_runs, open_test_runs
from aftercall.work import workflow as work
from aftercall.work.workflow import sweep_if_due
from aftercall.workspace.pages import FOLLOW_INTERVAL_S, PageTable

Job = Callable[[], Awaitable[object]]
"""Does what is due. May return the time at which more will be due."""


class ChangeTrigger:
    """Runs jobs when the database changed, instead of often."""

    def __init__(self, changes: DatabaseChanges, clock: Clock) -> None:
        self._changes = changes
        self._clock = clock
        self._last_version: object = None
        self._wake_events: dict[asyncio.Event, datetime | None] = {}

    async def poll(self) -> None:
        """Wake the jobs that have a reason to run."""
        if self._changes.is_snapshot_due():
            await durable.run_in_thread(self._changes.read_snapshot)
        version = self._changes.read_version()
        is_changed = version != self._last_version
        self._last_version = version
        for wake, due_at in self._wake_events.items():
            if is_changed or (due_at is not None and due_at <= self._clock.now()):
                wake.set()

    def wrap(self, job: Job) -> Job:
        """The job, made to wait for a reason. It runs at once the first time."""
        wake = asyncio.Event()
        wake.set()
        self._wake_events[wake] = None

        async def run_when_woken() -> None:
            await wake.wait()
            wake.clear()  # before the job: a change during the job wakes it again
            try:
                due_at = await job()
            except BaseException:  # a failed job runs again
                wake.set()
                raise
            self._wake_events[wake] = due_at if isinstance(due_at, datetime) else None

        return run_when_woken


CHANGE_POLL_INTERVAL_S = 0.2  # part of the wait for a summary
POSTCALL_INTERVAL_S = 0.25  # least time between two runs of a job, however much changes
DUE_WORK_INTERVAL_S = 0.5
POSTCALL_JOB, WORK_JOB = "post-call work", "follow-up work"
RECORDINGS_JOB, RECOVERY_JOB = "recordings", "recovery"
EVENTS_JOB = "events"
UPLOAD_JOB = "object storage"
COPIES_INTERVAL_S = 30.0
PAGES_JOB = "pages of the workspace"
LEASE_CHECK_INTERVAL_S = 1.0
RECONCILE_CHECK_INTERVAL_S = 60.0
SWEEP_CHECK_INTERVAL_S = 10.0  # how often to check whether the hourly sweep is due


def read_gauges(app: App) -> list[telemetry.Gauge]:
    """What `/metrics` shows besides what was counted."""
    stored, is_away = [], app.journal.outage.is_active
    if not is_away:
        try:
            stored = _read_stored_gauges(app)
        except DatabaseUnreachable:
            is_away = True
    gauges: dict[str, float] = {
        "live_calls": len(app.journal.live_recorders),
        "database_away": is_away,
        "failing_jobs": len(app.upkeep.failures),
    }
    return [
        *((name, {}, value) for name, value in gauges.items()),
        *stored,
        *(("limit", {"limit": name}, most) for name, most in app.load.limits.items()),
        ("info", {"version": __version__}, 1),
    ]


def _read_stored_gauges(app: App) -> list[telemetry.Gauge]:
    """Left out while the database is away."""
    health = app.report_health(only_open=True)
    now, pending = app.clock.now(), health.oldest_pending
    gauges: dict[str, float] = {
        "oldest_pending_seconds": (now - pending).total_seconds() if pending else 0,
        "failed_calls": health.by_state["failed"],
        "held_requests": health.counts.held,
        "unsent_notices": health.counts.dead,
        "waiting_uploads": app.archive.place.count_waiting(),
    }
    return [
        *((name, {}, value) for name, value in gauges.items()),
        *(
            ("queue_depth", {"queue": queue}, depth)
            for queue, depth in health.counts.queues.items()
        ),
    ]


@asynccontextmanager
async def running(app: App) -> AsyncIterator[App]:
    """A process at work: what a dead one left is taken over first, then jobs and workflows run."""
    telemetry.start()
    await asyncio.to_thread(app.warm_up)
    await asyncio.to_thread(recover, app.journal)
    await asyncio.to_thread(
        app.briefings.invalidate_other_forms, app.composer.settings_hash
    )
    open_postcall(app.step_runner)
    work.open_work(app.work)
    open_recordings(app.recording_fetcher)
    open_retention(app.retention)
    open_test_runs(app.settings)
    await durable.launch(app.settings, app.presence.process)
    # Awaited: a process that stops at once must leave no query behind.
    for job, look in (
        (POSTCALL_JOB, partial(start_due, app.step_runner)),
        (WORK_JOB, partial(work.start_due, app.work)),
        (EVENTS_JOB, partial(work.start_due_events, app.webhooks)),
        (RECORDINGS_JOB, partial(start_due_recordings, app.recording_fetcher)),
        (RECOVERY_JOB, partial(_requeue_orphans, app)),
    ):
        await app.upkeep.run_once(job, look)
    changes = DatabaseChanges(app.database)
    upkeep = [
        asyncio.create_task(job)
        for job in (*_periodic_jobs(app), *_triggered_jobs(app, changes))
    ]
    try:
        yield app
    finally:
        for task in upkeep:
            task.cancel()
        await asyncio.gather(*upkeep, return_exceptions=True)
        changes.close()
        await _end_live_calls(app)
        await app.journal.close()
        await durable.close(_close_parts)
        await asyncio.to_thread(telemetry.stop)


async def _end_live_calls(app: App) -> None:
    """Seals them, except those that another process may go on with."""
    live = {record.call.id: record for record in app.journal.live_recorders}
    offered: set[str] = set()
    with suppress(AftercallError):  # the database is away: recovery seals what is left
        if app.journal.handovers.is_shared:
            ask = partial(app.journal.handovers.list_offered, list(live))
            offered = await app.journal.outage.ask(WRITE_TIMEOUT_S, ask)
    for call_id, record in live.items():
        if call_id not in offered:
            with suppress(AftercallError):  # recovery will seal it at the next start
                await app.journal.seal(record, end_reason="server_stopped")


def _close_parts() -> None:
    close_postcall()
    work.close_work()
    close_retention()
    close_test_runs()


def _periodic_jobs(app: App) -> list[Coroutine[None, None, None]]:
    """Those that run by the clock alone."""

    async def send_heartbeat() -> None:
        failures = [*app.upkeep.failures, *app.load.refusals]
        await durable.run_in_thread(app.presence.send_heartbeat, failures)

    async def recover_calls() -> None:
        await durable.run_in_thread(recover, app.journal)
        await durable.run_in_thread(app.resume.delete_expired, app.clock.now())
        await _requeue_orphans(app)
        await durable.run_in_thread(app.database.truncate_wal)

    async def sweep() -> None:
        await sweep_if_due(app.health, app.work, app.journal)

    async def retain() -> None:
        await start_retention(app.retention)

    async def delete_workflows() -> None:
        kept = timedelta(hours=app.settings.retention.workflows_hours)
        await durable.delete_finished(app.clock.now() - kept)

    async def sweep_pins() -> None:
        await durable.run_in_thread(app.pins.sweep)

    async def write_corrections() -> None:
        await durable.run_in_thread(app.corrections.write_pending)

    run = app.upkeep.run_repeatedly
    jobs = [
        run("heartbeat", HEARTBEAT_INTERVAL_S, send_heartbeat),
        run(RECOVERY_JOB, RECOVERY_INTERVAL_S, recover_calls),
        run("the hourly sweep", SWEEP_CHECK_INTERVAL_S, sweep),
        run("retention", retention.RETENTION_INTERVAL_S, retain),
        run("finished workflows", RECOVERY_INTERVAL_S, delete_workflows),
        run("pins", board.SWEEP_INTERVAL_S, sweep_pins),
        run("corrections", RECOVERY_INTERVAL_S, write_corrections),
        run(RECONCILE_JOB, RECONCILE_CHECK_INTERVAL_S, app.reconciler.run_if_due),
        run("handovers", LEASE_CHECK_INTERVAL_S, app.phone.follow_handovers),
        run("live calls", LEASE_CHECK_INTERVAL_S, app.phone.remote_calls.end_expired),
    ]
    if app.ledger_copies:
        copy = partial(durable.run_in_thread, app.ledger_copies.copy_changed)
        jobs.append(run("copies of the ledger", COPIES_INTERVAL_S, copy))
    return jobs


def _triggered_jobs(
    app: App, changes: DatabaseChanges
) -> list[Coroutine[None, None, None]]:
    """Those that run after a change in the database, or at a time they named."""
    trigger = ChangeTrigger(changes, app.clock)

    async def start_calls() -> datetime | None:
        """Calls that found no free place are looked at again at once: nothing else wakes it."""
        if not await durable.run_in_thread(app.steps.list_due, 1):
            return None
        await start_due(app.step_runner)
        is_waiting = await durable.run_in_thread(app.steps.list_due, 1)
        return app.clock.now() if is_waiting else None

    async def start_work() -> datetime | None:
        await work.start_due(app.work)
        return await work.next_due(app.work)

    async def start_events() -> None:
        await work.start_due_events(app.webhooks)

    async def start_recordings() -> None:
        await start_due_recordings(app.recording_fetcher)

    is_first_upload = True

    async def upload() -> datetime | None:
        """Also what a process that died has left."""
        nonlocal is_first_upload
        takes_all = partial(app.archive.place.upload_waiting, takes_all=is_first_upload)
        due_at = await durable.run_in_thread(takes_all)
        is_first_upload = False
        folder = RecordingFolder.from_settings(app.settings)
        await durable.run_in_thread(move_recordings, folder, app.recordings)
        return due_at

    async def prepare_briefings() -> None:
        await durable.run_in_thread(composer.fill_cache, app.composer)

    run = app.upkeep.run_repeatedly
    jobs = [
        run(
            POSTCALL_JOB,
            POSTCALL_INTERVAL_S,
            trigger.wrap(start_calls),
        ),
        run(WORK_JOB, DUE_WORK_INTERVAL_S, trigger.wrap(start_work)),
        run(EVENTS_JOB, DUE_WORK_INTERVAL_S, trigger.wrap(start_events)),
        run(RECORDINGS_JOB, DUE_WORK_INTERVAL_S, trigger.wrap(start_recordings)),
        run("briefings", composer.FILL_INTERVAL_S, trigger.wrap(prepare_briefings)),
        run("looking for changes", CHANGE_POLL_INTERVAL_S, trigger.poll),
    ]
    if app.pages is not None:
        keep_up = trigger.wrap(partial(_keep_up_pages, app.pages, app))
        jobs.append(run(PAGES_JOB, FOLLOW_INTERVAL_S, keep_up))
    if app.settings.archive.url:
        jobs.append(run(UPLOAD_JOB, DUE_WORK_INTERVAL_S, trigger.wrap(upload)))
    return jobs


async def _keep_up_pages(pages: PageTable, app: App) -> datetime:
    """Changes by hand are no writes: they are looked for at this time."""
    pause_s = await durable.run_in_thread(pages.keep_up)
    app.upkeep.report(PAGES_JOB, pages.failures)
    return app.clock.now() + timedelta(seconds=pause_s)


async def _requeue_orphans(app: App) -> None:
    await durable.requeue_orphans(
        lambda process: app.presence.is_alive(process, app.clock.now())
    )
