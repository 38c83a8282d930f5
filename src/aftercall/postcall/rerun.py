"""Running steps again by hand: those that failed, or the one that is named."""

from aftercall.errors import AftercallError, NotFound
from aftercall.journal.archive import Archive
from aftercall.journal.store import CallStore
from aftercall.model.steps import Step
from aftercall.postcall.steps import STEPS, Desk, take
from aftercall.postcall.store import StepStore


def rerun(desk: Desk, calls: CallStore, steps: StepStore, archive: Archive, call_id: str, name: str = "") -> list[Step]:
    """Do the steps now and record how they ended; what a step made before stands once, not twice."""
    if name and name not in STEPS:
        raise NotFound(f"there is no step {name!r}; there are {', '.join(STEPS)}")
    row = calls.get(call_id)
    if row.archive_name is None:
        raise NotFound(f"call {call_id} is still going on")
    call, _ = archive.read(row.archive_name)
    failed = [step.name for step in steps.of_call(call_id) if step.state == "failed"]
    for step in [name] if name else failed:
        steps.begin(call_id, step, desk.clock.now())
        try:
            steps.finish(call_id, step, take(desk, step, call), desk.clock.now())
        except AftercallError as error:
            steps.fail(call_id, step, str(error), desk.clock.now())
    return steps.of_call(call_id)
