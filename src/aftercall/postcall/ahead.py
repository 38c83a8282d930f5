"""The summaries of calls that ended together, made in one go: one look at whose they are, one
edit of CALLS.md, one transaction.

Whichever cannot be made is left to its own step, which comes to the same error and records it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from aftercall.errors import error_code
from aftercall.faults import fault_point
from aftercall.log import get_logger
from aftercall.memory.passage_store import replace_summaries
from aftercall.model.calls import Call
from aftercall.model.steps import skipped
from aftercall.postcall.office import Office
from aftercall.postcall.steps import FIRST, SummedUp, enter, skip_reason, sum_up
from aftercall.postcall.store import take_together
from aftercall.workspace.paths import Workspace

log = get_logger("postcall")


def sum_up_together(office: Office, call_ids: Sequence[str]) -> None:
    with _left_to_their_steps():
        calls = _read(office, call_ids)
        made: dict[str, SummedUp] = {}
        for call in calls:
            with _left_to_their_steps():
                reason = skip_reason(office.desk, FIRST, call)
                made[call.id] = SummedUp(skipped(reason)) if reason else sum_up(office.desk, call)
        for call_id in _enter(office, calls, made):
            del made[call_id]
        fault_point("postcall.after_early_entry")
        _record(office, made)
        fault_point("postcall.after_early_summary")
        secret = office.steps.with_secrets(list(made))
        for call in calls:
            if call.id in secret or office.desk.embedder is not None:
                office.round_off(call, FIRST)


def _read(office: Office, call_ids: Sequence[str]) -> list[Call]:
    sealed: list[Call] = []
    for name in office.steps.archive_names(call_ids):
        with _left_to_their_steps():
            sealed.append(office.archive.read(name)[0])
    calls = list(office.desk.as_parties(sealed))
    for call in calls:
        office.keep(call)
    return calls


def _enter(office: Office, calls: Sequence[Call], made: dict[str, SummedUp]) -> set[str]:
    """Write what they enter into CALLS.md, each file once; those whose file could not be
    written.
    """
    by_file: dict[Workspace, list[str]] = {}
    for call in calls:
        if call.id in made and made[call.id].entry:
            by_file.setdefault(office.desk.workspace(call), []).append(call.id)
    lost: set[str] = set()
    for workspace, some in by_file.items():
        lost.update(some)
        with _left_to_their_steps():
            enter(
                office.desk,
                workspace,
                [entry for call_id in some if (entry := made[call_id].entry)],
            )
            lost.difference_update(some)
    return lost


def _record(office: Office, made: dict[str, SummedUp]) -> None:
    outcomes = {call_id: each.outcome for call_id, each in made.items()}
    if not outcomes:
        return
    with office.desk.database.write() as connection:
        begun = take_together(connection, FIRST, outcomes, office.desk.clock.now())
        passages = [
            each.passage for call_id, each in made.items() if call_id in begun and each.passage
        ]
        if passages:
            replace_summaries(connection, passages)


@contextmanager
def _left_to_their_steps() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the edge of what is made ahead: nobody waits for it
        log.info(
            "summaries are left to their own steps",
            error=error_code(error),
        )
