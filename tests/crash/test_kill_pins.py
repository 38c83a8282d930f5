"""kill -9 while pins are kept up: one pin, each call in its history once, and never half of
either.
"""

import os
import random

import pytest
from sqlalchemy import func, select

from aftercall import faults
from aftercall.app import App
from aftercall.db.tables import call_topics
from aftercall.model.facts import MemoryKey
from command_process import spawner
from crash import pins_process

SOAK = bool(os.environ.get("AFTERCALL_SOAK"))
RUNS = 100 if SOAK else 6
POINTS = [point for point in faults.POINTS if point.startswith("pins.")]
KEY = MemoryKey("main", pins_process.CALLER)


def keep_pins(app: App, fault: str, count: int) -> int | None:
    process = spawner.Process(
        target=pins_process.run,
        args=(str(app.settings.home), app.settings.database_url, fault, count),
    )
    process.start()
    process.join()
    return process.exitcode


@pytest.mark.timeout(3600 if SOAK else 120)
def test_a_pin_and_what_it_rests_on_are_written_whole_and_once(app: App) -> None:
    luck = random.Random(20260213)
    for run in range(1, RUNS + 1):
        assert (
            keep_pins(app, f"{POINTS[run % len(POINTS)]}:{luck.randint(1, run)}", run)
            == -9
        )
        assert_whole(app)
    assert keep_pins(app, "", RUNS) == 0
    assert_whole(app)
    (page,) = app.pins.list_pages(KEY)
    assert (page.pin.title, len(page.pin.history)) == ("Orlando sale", RUNS)


def assert_whole(app: App) -> None:
    """A pin knows exactly the calls whose words are kept: both were written together."""
    with app.database.read() as connection:
        kept = connection.execute(
            select(func.count()).select_from(call_topics)
        ).scalar()
    pages = app.pins.list_pages(KEY)
    assert len(pages) == (1 if kept and kept >= app.settings.memory.pin_after else 0)
    assert all(
        len({mention.call_id for mention in page.pin.history})
        == len(page.pin.history)
        == kept
        for page in pages
    )
