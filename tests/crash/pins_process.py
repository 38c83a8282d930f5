"""A process that keeps up pins after calls and may be killed in the middle of it."""

from datetime import timedelta
from pathlib import Path

from aftercall import faults
from aftercall.app import build
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from fakes import START, VirtualClock, make_call

CALLER = "+15550142"


def run(home: str, database_url: str, fault: str, count: int) -> None:
    """Work off the first `count` calls, each about the same thing; those worked off before are
    worked off again.
    """
    faults.arm(fault)
    app = build(
        Settings(home=Path(home), database=DatabaseSettings(url=database_url)),
        VirtualClock(START + timedelta(days=30)),
    )
    for number in range(count):
        said = [
            ("agent", "Hello!"),
            ("caller", f"It's about the Orlando sale, part {number}."),
            ("agent", "Noted."),
        ]
        row, _ = app.journal.ingest(
            make_call(
                said,
                caller=CALLER,
                sid=f"call{number}",
                started_at=START + timedelta(days=number),
            )
        )
        app.steps.claim(row.live.id, ["pins"], app.clock.now(), again=True)
        app.step_runner.run(row.live.id, "pins")
    app.close()
