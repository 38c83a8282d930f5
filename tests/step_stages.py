"""Post-call steps without the durable engine: the stages of the workflow, one after the other."""

from collections.abc import Sequence

from aftercall.app import App
from aftercall.model.calls import Call
from aftercall.postcall.runner import StepRunner, rerun
from aftercall.postcall.steps import STAGES, STEPS
from fakes import make_call


def take_call(app: App, caller: str | None, *lines: str) -> Call:
    """A call of this caller now, with all steps done."""
    call = make_call(
        [("agent", "Hello!"), *[("caller", line) for line in lines]],
        caller=caller,
        started_at=app.clock.now(),
    )
    app.journal.ingest(call)
    for name in STEPS:
        rerun(app.step_runner, call.id, name)
    return call


def run_steps(
    runner: StepRunner,
    call_id: str,
    names: Sequence[str],
    attempt: int = 1,
    *,
    again: bool = False,
) -> dict[str, float]:
    """Returns the pause of each step that is to be tried again."""
    pauses: dict[str, float] = {}
    for stage in STAGES:
        wanted = [name for name in stage if name in names]
        claimed = runner.claim(call_id, wanted, again=again)
        results = {name: runner.execute(call_id, name) for name in claimed}
        pauses |= runner.record_ends(call_id, results, attempt)
    return pauses


def run_late_steps(runner: StepRunner, call_id: str) -> dict[str, float]:
    return run_steps(runner, call_id, runner.list_late_steps(call_id), again=True)
