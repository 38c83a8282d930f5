"""A schedule of tests outlives its process, and each of its times is run once."""

import asyncio
from datetime import datetime, timedelta

from dbos import DBOS, WorkflowHandleAsync

from aftercall import durable, test_runs
from aftercall.app import App


async def launch(app: App) -> None:
    test_runs.open_test_runs(app.settings)
    await durable.launch(app.settings, app.presence.process)


async def test_a_schedule_outlives_its_process_and_each_time_is_run_once(
    app: App,
) -> None:
    asked = test_runs.make_request(app.settings, "practice", "opening_hours", 1)
    await launch(app)
    name = await test_runs.add_schedule(asked, "day", "03:00")
    await durable.close(test_runs.close_test_runs)
    await launch(app)
    try:
        assert await test_runs.list_schedules() == [(name, asked, "every day at 03:00")]
        # as two processes do when the time comes
        day = datetime(2026, 11, 16, 2, tzinfo=app.settings.zone)
        span = (name, day, day + timedelta(hours=2))
        first = await asyncio.to_thread(DBOS.backfill_schedule, *span)
        again = await asyncio.to_thread(DBOS.backfill_schedule, *span)
        (run,) = {handle.workflow_id for handle in (*first, *again)}
        handle: WorkflowHandleAsync[None] = await DBOS.retrieve_workflow_async(run)
        await handle.get_result(polling_interval_sec=0.1)
        await test_runs.remove_schedule(name)
        assert await test_runs.list_schedules() == []
    finally:
        await durable.close(test_runs.close_test_runs)
    reports = list((app.settings.home / "tests").glob("*/report.json"))
    assert len(reports) == 1
