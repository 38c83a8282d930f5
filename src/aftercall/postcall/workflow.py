"""The durable workflow after a call: one workflow per sealed call, one durable step per stage.

The workflow's id is the call's id, so a call that is started twice runs once. A stage that a
crash cut off runs again; the steps in it that have ended do not. A step that should be tried
again becomes a delayed workflow, so that it holds no place in the queue while it waits. Words that
arrive after the seal start another workflow, which runs all steps anew; so does another record of
the call that tells who calls.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TypeVar

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID

from aftercall.durable import (
    count_free_places,
    has_ended,
    is_active,
    register_queue,
    run_in_thread,
    start_workflow,
    step,
    workflow,
)
from aftercall.faults import fault_point
from aftercall.ids import make_work_id
from aftercall.memory.extraction import limit_per_minute
from aftercall.postcall.runner import StepRunner
from aftercall.postcall.steps import (
    RATIONED,
    RULES,
    STAGES,
    WAITING_STEPS,
    list_steps,
)
from aftercall.postcall.store import START_BATCH_SIZE

QUEUE = "aftercall.post_call"
RATIONED_QUEUE = "aftercall.rationed"
MINUTE_S = 60.0
MAX_CALLS = (
    64  # at once: with that many, most summaries run before the stages behind them
)
MAX_SHARED_CALLS = 32  # on Postgres: leaves some calls to other processes
MAX_DIRECT_SHARED_CALLS = (
    16  # started without the queue, where other processes may take them
)
POLL_S = 2.0  # the queue holds what is tried again; other calls start without it
UNUSED_POLL_S = (
    60.0  # without a limit, the queue holds only calls from before a change of settings
)
ATTEMPTS = 10  # with doubling pauses: outlasts a database that is away for a quarter of an hour
MODEL_THREADS = 24  # steps that mostly wait for a model
RULES_THREADS = 4  # steps that compete for the interpreter lock

T = TypeVar("T")

# One per process, like the durable engine.
_runner: StepRunner | None = None
_threads: ThreadPoolExecutor | None = None


@workflow("aftercall.after_call")
async def after_call(
    call_id: str, names: list[str], rationed: list[str], again: bool = False
) -> None:
    """The names are arguments: new settings do not change a call that has begun."""
    if rationed:  # not awaited: they may queue for long
        with SetWorkflowID(f"{DBOS.workflow_id}.{rationed[0]}"):
            await DBOS.enqueue_workflow_async(
                RATIONED_QUEUE, rationed_steps, call_id, rationed, again
            )
    opened_runner().forget(call_id)
    with _forgetting(call_id):
        await run_stages(call_id, names, again=again)


@workflow("aftercall.rationed_steps")
async def rationed_steps(call_id: str, names: list[str], again: bool = False) -> None:
    with _forgetting(call_id):
        await run_stages(call_id, names, again=again)


@workflow("aftercall.step_again")
async def retry_step(call_id: str, name: str, attempt: int) -> None:
    with _forgetting(call_id):
        is_ended = await run_stages(call_id, [name], attempt)
        if name in WAITING_STEPS and is_ended:
            late = await list_late_steps(call_id, name)
            await run_stages(call_id, late, again=True)


async def run_stages(
    call_id: str, names: list[str], attempt: int = 1, *, again: bool = False
) -> bool:
    """Run steps stage by stage; schedule the next attempt of those that need one.

    True if all have ended. Steps that run `again` were tried before: their next attempts have
    ids of their own.
    """
    have_ended = True
    own_id = str(DBOS.workflow_id)
    work_id = own_id.replace(":", ".") if again else own_id.partition(":")[0]
    for stage in STAGES:
        in_stage = [name for name in stage if name in names]
        if not in_stage:
            continue
        pauses = await run_steps(call_id, in_stage, attempt, again)
        for name, pause_s in pauses.items():
            retry_id = f"{work_id}:{name}:{attempt + 1}"
            with SetWorkflowID(retry_id), SetEnqueueOptions(delay_seconds=pause_s):
                await DBOS.enqueue_workflow_async(
                    QUEUE, retry_step, call_id, name, attempt + 1
                )
        have_ended = have_ended and not pauses
    return have_ended


@step("aftercall.run_steps", ATTEMPTS)
async def run_steps(
    call_id: str, names: list[str], attempt: int, again: bool = False
) -> dict[str, float]:
    """Run the steps of one stage side by side. Returns the pause of each to be tried again."""
    claimed = await _in_thread(
        partial(opened_runner().claim, call_id, names, again=again)
    )
    ends = await _wait_for_all(
        _in_thread(partial(opened_runner().execute, call_id, name)) for name in claimed
    )
    results = dict(zip(claimed, ends, strict=True))
    return await _in_thread(
        partial(opened_runner().record_ends, call_id, results, attempt)
    )


@step("aftercall.list_late_steps", ATTEMPTS)
async def list_late_steps(call_id: str, late: str) -> list[str]:
    names = await _in_thread(partial(opened_runner().list_late_steps, call_id, late))
    fault_point("step.after_late_summary")
    return names


def opened_runner() -> StepRunner:
    if _runner is None:
        raise RuntimeError("the post-call work has not been opened")
    return _runner


def open_postcall(runner: StepRunner) -> None:
    """Call before the durable engine is launched."""
    global _runner, _threads
    context = runner.context
    count = RULES_THREADS if context.reader.name == RULES else MODEL_THREADS
    _runner, _threads = (
        runner,
        ThreadPoolExecutor(count, thread_name_prefix="aftercall-step"),
    )
    is_shared = context.database.dialect != "sqlite"
    max_calls = MAX_SHARED_CALLS if is_shared else MAX_CALLS
    limit = limit_per_minute(context.settings, context.reader)
    register_queue(QUEUE, max_calls, poll_s=POLL_S)
    register_queue(
        RATIONED_QUEUE,
        max_calls,
        poll_s=POLL_S if limit else UNUSED_POLL_S,
        limit=limit,
        period_s=MINUTE_S,
    )


def close_postcall() -> None:
    """Call after the workflows have ended. Does not wait for a model that still answers."""
    global _runner, _threads
    if _threads is not None:
        _threads.shutdown(wait=False, cancel_futures=True)
    _runner = _threads = None


async def start_due(runner: StepRunner) -> list[str]:
    """Start the workflows of sealed calls that have none, as many as there are free places.

    The others stay due: the oldest comes next, in whichever process has a place. So does a call
    with late words whose work of before goes on. A crash in between repeats it.
    """
    steps = runner.context.steps
    is_shared = runner.context.database.dialect != "sqlite"
    max_direct = MAX_DIRECT_SHARED_CALLS if is_shared else MAX_CALLS
    free = min(count_free_places(QUEUE, max_direct), START_BATCH_SIZE)
    if not free or not await run_in_thread(steps.list_due, 1):
        return []
    with ExitStack() as stack:
        if not await run_in_thread(stack.enter_context, steps.start_lock()):
            return []
        listed = await run_in_thread(steps.list_due, free)
        work_ids = {
            call_id: await _make_work_id(runner, call_id, addenda)
            for call_id, addenda in listed.items()
        }
        due = {
            call_id: listed[call_id] for call_id, work_id in work_ids.items() if work_id
        }
        names = list_steps(runner.context)
        is_rationed = limit_per_minute(runner.context.settings, runner.context.reader)
        rationed = [name for name in RATIONED if name in names and is_rationed]
        waiting = list(due)
        await run_in_thread(
            steps.add_waiting, waiting, names, runner.context.clock.now()
        )
        at_once = [name for name in names if name not in rationed]
        for call_id in due:
            with SetWorkflowID(work_ids[call_id]):
                of = (call_id, at_once, rationed, work_ids[call_id] != call_id)
                await start_workflow(QUEUE, max_direct, after_call, *of)
        fault_point("postcall.after_enqueue")
        await run_in_thread(steps.mark_started, due)
        return waiting


async def _make_work_id(runner: StepRunner, call_id: str, addenda: int) -> str:
    """The id of the work to start; empty while earlier work of the call goes on.

    Work that was done before another record told who calls is done again: the call has steps,
    and nobody has decided whose it is.
    """
    work_id = make_work_id(call_id, addenda)
    if addenda and await is_active(make_work_id(call_id, addenda - 1)):
        return ""
    context = runner.context
    if (
        not await run_in_thread(context.steps.states_of, call_id)
        or await run_in_thread(context.calls.get_decided_party, call_id) is not None
    ):
        return work_id
    ids = {None: work_id, False: "", True: f"{work_id}.told"}
    return ids[await has_ended(work_id)]


@contextmanager
def _forgetting(call_id: str) -> Iterator[None]:
    """Drops the call from memory at the end: an erased call must not stay in a process."""
    try:
        yield
    finally:
        opened_runner().forget(call_id)


async def _in_thread(job: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_threads, job)


async def _wait_for_all(jobs: Iterable[Coroutine[None, None, T]]) -> list[T]:
    """Wait for every job, also if one raises: a repeated stage must not meet an old job."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    if tasks:
        await asyncio.wait(tasks)
    return [task.result() for task in tasks]
