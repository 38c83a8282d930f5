"""A process that looks for facts in calls and may be killed in the middle of it."""

from pathlib import Path

from aftercall import faults
from aftercall.app import build
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from fact_drafts import draft, reader_of, say
from fakes import START, VirtualClock

PLACES = ("Porto", "Lisbon", "Braga", "Faro")


def run(home: str, database_url: str, fault: str, count: int) -> None:
    """Read the first `count` calls, each of which changes one mind and repeats another; those
    read before are read again.
    """
    faults.arm(fault)
    app = build(
        Settings(home=Path(home), database=DatabaseSettings(url=database_url)),
        VirtualClock(START),
    )
    for number in range(count):
        living = f"I live in {PLACES[number % len(PLACES)]}"
        call = say(
            living, "I like tea", "My PIN is 4821", day=number, sid=f"call{number}"
        )
        row, _ = app.journal.ingest(call)
        drafts = (
            draft(living),
            draft("I like tea", turns=(3,)),
            draft("My PIN is 4821", turns=(4,)),
        )
        extractor = app.step_runner.context.extractor
        assert extractor is not None
        extractor.extract(
            call.model_copy(update={"id": row.live.id}), reader_of(*drafts)
        )
    app.close()
