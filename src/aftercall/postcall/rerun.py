"""Running steps again by hand: those that failed, or the one that is named."""

from aftercall.durable import to_step_error
from aftercall.errors import NotFound
from aftercall.model.steps import Step
from aftercall.postcall.office import Office
from aftercall.postcall.steps import FIRST, STEPS

UNENDED = "begun by hand and not ended; if nobody is at it any more, run it again"


def rerun(office: Office, call_id: str, name: str = "") -> list[Step]:
    """Do the steps now and record how they ended; what a step made before stands once, not
    twice.
    """
    if name and name not in STEPS:
        raise NotFound(f"there is no step {name!r}; there are {', '.join(STEPS)}")
    row = office.calls.get(call_id)
    if row.archive_name is None:
        gone = (
            "has no words any more: they were past their time"
            if row.state == "sealed"
            else "is still going on"
        )
        raise NotFound(f"call {call_id} {gone}")
    failed = {step.name for step in office.steps.of_call(call_id) if step.state == "failed"}
    wanted = (
        [name] if name else [step for step in STEPS if step in failed]
    )  # in their order: the summary before what is made of it
    for step in wanted:
        _take(office, call_id, step)
    if FIRST in wanted:
        for step in office.resting_on_summary(call_id):
            if step not in wanted:
                _take(office, call_id, step)
    return office.steps.of_call(call_id)


def _take(office: Office, call_id: str, name: str) -> None:
    is_scheduled = office.steps.state_of(call_id, name) == "waiting"
    office.begin_by_hand(call_id, [name], UNENDED)
    try:
        office.do(call_id, name)
    except Exception as error:  # noqa: BLE001 - the edge of a step: it is recorded, shown, and can be run again
        ours = to_step_error(error, call=call_id, step=name)
        if is_scheduled and ours.retryable:  # it would have been tried again by itself, and is
            office.steps.put_off(call_id, name, str(ours), office.desk.clock.now())
        else:
            office.give_up(call_id, name, str(ours))
