"""A process that starts while work waits in the queues."""

import asyncio
from dataclasses import replace

import pytest
from dbos import DBOS, SetEnqueueOptions, SetWorkflowID

from aftercall import durable
from aftercall.app import App
from aftercall.errors import DatabaseUnreachable
from aftercall.postcall.store import START_BATCH_SIZE, StepStore
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.work.workflow import QUEUE, follow_up, run_id
from fakes import VirtualClock, make_call
from followup_work import hold_call


async def test_work_that_waits_in_a_queue_finds_its_parts_open(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(app):  # an earlier life, which made the queues
        pass
    conversation = hold_call(app).conversation
    workflow_id = run_id(conversation, 1)
    launch = durable.launch
    await launch(app.settings, app.presence.process)
    with SetWorkflowID(workflow_id), SetEnqueueOptions(delay_seconds=1.0):
        await DBOS.enqueue_workflow_async(QUEUE, follow_up, conversation, 1)
    await durable.close()

    async def launch_slowly(settings: Settings, process: str) -> None:
        await launch(settings, process)
        while await durable.is_active(workflow_id):
            await asyncio.sleep(0.05)

    monkeypatch.setattr(durable, "launch", launch_slowly)
    async with running(app):
        assert app.work.runs.get(conversation).state == "done"


class FirstLookFails(StepStore):
    is_first = True

    def list_due(self, limit: int = START_BATCH_SIZE) -> dict[str, int]:
        if self.is_first:
            self.is_first = False
            raise DatabaseUnreachable("the database hangs")
        return super().list_due(limit)


async def test_a_server_starts_though_its_first_look_for_work_fails(
    app: App, clock: VirtualClock
) -> None:
    hold_call(app)
    async with running(replace(app, steps=FirstLookFails(app.database))):
        while app.steps.list_due():
            await asyncio.sleep(0.05)
            await clock.advance(1.0)


def test_one_look_starts_a_bounded_number_of_calls(app: App) -> None:
    for number in range(START_BATCH_SIZE + 1):
        app.journal.ingest(make_call([("caller", "Hello.")], sid=f"call{number}"))
    assert len(app.steps.list_due()) == START_BATCH_SIZE
