"""Running steps again by hand: those that failed, or the one that is named."""

from aftercall.errors import AftercallError, NotFound
from aftercall.model.steps import Step
from aftercall.postcall.office import Office
from aftercall.postcall.steps import STEPS


def rerun(office: Office, call_id: str, name: str = "") -> list[Step]:
    """Do the steps now and record how they ended; what a step made before stands once, not twice."""
    if name and name not in STEPS:
        raise NotFound(f"there is no step {name!r}; there are {', '.join(STEPS)}")
    row = office.calls.get(call_id)
    if row.archive_name is None:
        gone = "has no words any more: they were past their time" if row.state == "sealed" else "is still going on"
        raise NotFound(f"call {call_id} {gone}")
    failed = [step.name for step in office.steps.of_call(call_id) if step.state == "failed"]
    for step in [name] if name else failed:
        office.steps.begin(call_id, [step], office.desk.clock.now(), again=True)
        try:
            office.do(call_id, step)
        except AftercallError as error:
            office.give_up(call_id, step, str(error))
    return office.steps.of_call(call_id)
