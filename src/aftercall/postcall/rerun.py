"""Runs steps again by hand: those that failed, or the one that is named."""

from aftercall.errors import NotFound
from aftercall.model.steps import Step
from aftercall.postcall.runner import StepRunner
from aftercall.postcall.steps import STEPS

UNENDED = "started by hand and not finished; if that run is gone, run it again"


def rerun(runner: StepRunner, call_id: str, name: str = "") -> list[Step]:
    """Run the steps now and record their ends. What a step made before is replaced."""
    if name and name not in STEPS:
        raise NotFound(f"there is no step {name!r}; there are {', '.join(STEPS)}")
    row = runner.context.calls.get(call_id)
    if row.archive_name is None:
        gone = "has no words any more: they were past their time"
        reason = gone if row.state == "sealed" else "is still going on"
        raise NotFound(f"call {call_id} {reason}")
    states = runner.context.steps.states_of(call_id)
    wanted = (
        [name] if name else [step for step in STEPS if states.get(step) == "failed"]
    )
    for step in wanted:
        runner.run_by_hand(call_id, [step], UNENDED)
    for step in list(wanted):
        for later in runner.list_steps_after(call_id, step):
            if later not in wanted:
                runner.run_by_hand(call_id, [later], UNENDED)
    return runner.context.steps.of_call(call_id)
