"""Workflows begun without their queue while there are few of them, and removed by age."""

import asyncio
from datetime import timedelta

from dbos import DBOS, SetWorkflowID, WorkflowHandleAsync

from aftercall import durable
from aftercall.app import App
from aftercall.clock import SystemClock

QUEUE = "test.seldom_looked_at"
SELDOM_S = 600.0
_begun: list[str] = []
_words: list[asyncio.Event] = []


@DBOS.workflow(name="test.wait_for_a_word")
async def wait_for_a_word(name: str) -> None:
    _begun.append(name)
    await _words[-1].wait()


async def begin(name: str) -> None:
    with SetWorkflowID(name):
        await durable.start_workflow(QUEUE, 2, wait_for_a_word, name)


async def status_of(name: str) -> str:
    status = await DBOS.get_workflow_status_async(name)
    assert status
    return str(status.status)


async def test_a_few_begin_at_once_the_others_queue_and_one_begun_twice_is_one(
    app: App,
) -> None:
    _begun.clear()
    _words.append(asyncio.Event())
    durable.register_queue(QUEUE, 8, poll_s=SELDOM_S)
    await durable.launch(app.settings, app.presence.process)
    try:
        for name in ("first", "second", "third"):
            await begin(name)
        assert [await status_of(name) for name in ("first", "second", "third")] == [
            "PENDING",
            "PENDING",
            "ENQUEUED",
        ]
        _words[-1].set()
        for name in ("first", "second"):
            handle: WorkflowHandleAsync[None] = await DBOS.retrieve_workflow_async(name)
            await handle.get_result(polling_interval_sec=0.01)
        await begin("third")
        await begin("first")
        assert _begun == ["first", "second"]
        assert await status_of("third") == "ENQUEUED"
    finally:
        await durable.close()


async def test_ended_workflows_go_after_their_time_and_unfinished_ones_stay(
    app: App,
) -> None:
    _words.append(asyncio.Event())
    durable.register_queue(QUEUE, 8, poll_s=SELDOM_S)
    await durable.launch(app.settings, app.presence.process)
    try:
        await begin("ended")
        _words[-1].set()
        handle: WorkflowHandleAsync[None] = await DBOS.retrieve_workflow_async("ended")
        await handle.get_result(polling_interval_sec=0.01)
        _words.append(asyncio.Event())
        await begin("going on")
        now = SystemClock().now()
        assert await durable.delete_finished(now - timedelta(hours=1)) == 0
        assert await durable.delete_finished(now + timedelta(hours=1)) == 1
        assert await DBOS.get_workflow_status_async("ended") is None
        assert await status_of("going on") == "PENDING"
        _words[-1].set()
        handle = await DBOS.retrieve_workflow_async("going on")
        await handle.get_result(polling_interval_sec=0.01)
    finally:
        await durable.close()
