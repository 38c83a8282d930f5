"""Durable work across processes: one process takes over a dead one's work, and failures keep
our words.
"""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from dbos import DBOS, SetWorkflowID

from aftercall import durable
from aftercall.app import App
from aftercall.errors import UNEXPECTED, SinkRefused
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from command_process import spawner, start_command
from waiting import until

QUEUE = "test.durable"
DEAD = "a-process-that-is-gone"
_begun: list[str] = []
_told: list[tuple[str, str]] = []
_is_mortal = False


def _die_if_mortal() -> None:
    if _is_mortal:
        os.kill(os.getpid(), signal.SIGKILL)


@durable.workflow("test.begin_and_wait")
async def begin_and_wait() -> None:
    _begun.append("begun")
    _die_if_mortal()
    await asyncio.Event().wait()


@durable.step("test.fail")
async def fail(kind: str) -> None:
    raise (
        SinkRefused("github: answered 404")
        if kind == "ours"
        else ValueError("spoken words")
    )


@durable.step("test.tell")
async def tell(code: str, reason: str) -> None:
    _die_if_mortal()
    _told.append((code, reason))


@durable.workflow("test.fail_and_tell")
async def fail_and_tell(kind: str) -> None:
    try:
        await fail(kind)
    except Exception as error:  # noqa: BLE001 - as the edge of any workflow
        await tell(durable.to_step_error(error).code, str(durable.to_step_error(error)))


async def _begin_and_die(settings: Settings, kind: str) -> None:
    global _is_mortal
    _is_mortal = True
    durable.register_queue(QUEUE, 8, poll_s=0.1)
    await durable.launch(settings, DEAD)
    with SetWorkflowID("work"):
        if kind:
            await durable.start_workflow(QUEUE, 1, fail_and_tell, kind)
        else:
            await durable.start_workflow(QUEUE, 1, begin_and_wait)
    await asyncio.Event().wait()


def run_and_die(home: str, database_url: str, kind: str) -> None:
    asyncio.run(
        _begin_and_die(
            Settings(home=Path(home), database=DatabaseSettings(url=database_url)), kind
        )
    )


def leave_work_behind(app: App, kind: str = "") -> None:
    """A process begins work and is killed in the middle of it."""
    process = spawner.Process(
        target=run_and_die,
        args=(str(app.settings.home), app.settings.database_url, kind),
    )
    process.start()
    process.join()
    assert process.exitcode == -9
    _begun.clear()
    _told.clear()


def is_alive(process: str) -> bool:
    return process != DEAD


async def test_of_two_who_find_a_process_dead_only_one_takes_its_work(app: App) -> None:
    leave_work_behind(app)
    durable.register_queue(QUEUE, 8, poll_s=0.1)
    await durable.launch(app.settings, app.presence.process)
    loop = asyncio.get_running_loop()

    def is_alive_while_another_takes_over(process: str) -> bool:
        async def take_over_and_begin() -> None:
            await durable.requeue_orphans(is_alive)
            await until(lambda: bool(_begun))

        asyncio.run_coroutine_threadsafe(take_over_and_begin(), loop).result()
        return is_alive(process)

    try:
        await durable.requeue_orphans(is_alive_while_another_takes_over)
        status = await DBOS.get_workflow_status_async("work")
        assert status is not None
        assert (status.status, status.executor_id, _begun) == (
            "PENDING",
            app.presence.process,
            ["begun"],
        )
    finally:
        await durable.close(timeout_s=0)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("ours", ("sink.refused", "github: answered 404")),
        ("foreign", ("unexpected", UNEXPECTED)),
    ],
)
async def test_a_failure_keeps_our_words_when_another_process_goes_on(
    app: App, kind: str, told: tuple[str, str]
) -> None:
    leave_work_behind(app, kind)
    durable.register_queue(QUEUE, 8, poll_s=0.1)
    await durable.launch(app.settings, app.presence.process)
    try:
        await durable.requeue_orphans(is_alive)
        await until(lambda: bool(_told))
        assert _told == [told]
    finally:
        await durable.close()


async def test_work_that_does_not_end_in_time_is_handed_over_at_once(app: App) -> None:
    _begun.clear()
    durable.register_queue(QUEUE, 8, poll_s=0.1)
    await durable.launch(app.settings, app.presence.process)
    with SetWorkflowID("work"):
        await durable.start_workflow(QUEUE, 1, begin_and_wait)
    await until(lambda: len(_begun) == 1)
    await durable.close(timeout_s=0)
    durable.register_queue(QUEUE, 8, poll_s=0.1)
    # nobody needs to find out that the first is gone
    await durable.launch(app.settings, "the-next-process")
    try:
        await until(lambda: len(_begun) == 2)
    finally:
        await durable.close(timeout_s=0)


def test_processes_that_start_together_on_a_new_home_all_stand(tmp_path: Path) -> None:
    environment = os.environ | {"AFTERCALL_HOME": str(tmp_path / "home")}
    started = [start_command(["worker"], environment, tmp_path) for _ in range(4)]
    told = [printed.readline() for _, printed in started]
    for process, printed in started:
        process.terminate()
        process.join()
        printed.close()
    assert [line.startswith("Aftercall works") for line in told] == [True] * 4
