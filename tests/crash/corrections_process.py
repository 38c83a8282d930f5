"""A process that puts a request, a fact and a name right and may be killed in the middle of it."""

from pathlib import Path

from aftercall import faults
from aftercall.app import build
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from fakes import START, VirtualClock

WHO = "a process"


def run(home: str, database_url: str, fault: str, of: dict[str, str], new: str) -> None:
    """`of` names what to correct: kind by kind, an id or a caller. `new` is its new text; an
    empty one undoes the newest correction of each.
    """
    app = build(
        Settings(home=Path(home), database=DatabaseSettings(url=database_url)),
        VirtualClock(START),
    )
    faults.arm(fault)
    if new:
        for what, thing in of.items():
            app.corrections.correct(what, thing, new, WHO)  # type: ignore[arg-type]
    else:
        for correction in app.corrections.store.page(limit=len(of)):
            app.corrections.undo(correction.id, WHO)
    app.close()
