"""A process that starts while work waits in the queues."""

import asyncio
import time
from dataclasses import replace

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID

from aftercall import durable
from aftercall.app import App
from aftercall.postcall.store import StepStore
from aftercall.running import running
from aftercall.work.workflow import QUEUE, follow_up, run_id
from followup_work import hold_call


class SlowStart(StepStore):
    """Looking for due calls takes until the engine has come to the end of what waited in its
    queue.
    """

    def wait_for(self, workflow_id: str) -> None:
        self._loop, self._workflow_id = asyncio.get_running_loop(), workflow_id

    def list_due(self, limit: int = 100) -> list[str]:
        while asyncio.run_coroutine_threadsafe(
            durable.is_active(self._workflow_id), self._loop
        ).result():
            time.sleep(0.05)
        return super().list_due(limit)


async def test_work_that_waits_in_a_queue_finds_its_parts_open(app: App) -> None:
    async with running(app):  # an earlier life, which made the queues
        pass
    conversation = hold_call(app).conversation
    await durable.launch(app.settings, app.presence.process)
    with SetWorkflowID(run_id(conversation, 1)), SetEnqueueOptions(delay_seconds=1.0):
        await DBOS.enqueue_workflow_async(QUEUE, follow_up, conversation, 1)
    await durable.close()
    steps = SlowStart(app.database)
    steps.wait_for(run_id(conversation, 1))
    async with running(replace(app, steps=steps)):
        assert app.work.runs.get(conversation).state == "done"
