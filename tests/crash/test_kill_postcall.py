"""kill -9 in the middle of the work after a call: every step comes to its end, and each thing
stands once.
"""

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import select

from aftercall import faults
from aftercall.app import App
from aftercall.db.tables import passages
from aftercall.journal.verify import verify_archive
from aftercall.postcall.store import are_finished
from command_process import spawner
from crash import postcall_process

SOAK = bool(os.environ.get("AFTERCALL_SOAK"))
RUNS = 100 if SOAK else 6
# these calls never come to it: test_kill_late_summary
ELSEWHERE = ("postcall.after_late_summary",)
WORKING = [
    point
    for point in faults.POINTS
    if point.startswith("postcall") and point not in ELSEWHERE
]
ONCE_A_CALL = (
    "postcall.after_enqueue",
    "postcall.after_claim",
)


def work(app: App, fault: str, sids: list[str]) -> int | None:
    process = spawner.Process(
        target=postcall_process.run,
        args=(str(app.settings.home), app.settings.database_url, fault, sids),
    )
    process.start()
    process.join()
    return process.exitcode


@pytest.mark.timeout(3600 if SOAK else 120)
def test_every_step_ends_and_each_thing_stands_once(app: App, tmp_path: Path) -> None:
    luck = random.Random(20260213)
    sids: list[str] = []
    for run in range(RUNS):
        sids.append(f"thing{run}")
        point = WORKING[run % len(WORKING)]
        most = 1 if point in ONCE_A_CALL else 4
        assert work(app, f"{point}:{luck.randint(1, most)}", sids) == -9
    assert work(app, "", sids) == 0
    rows = app.store.list_page(limit=RUNS + 1)
    assert len(rows) == RUNS
    assert all(are_finished(app.steps.of_call(row.live.id)) for row in rows)
    assert {step.state for row in rows for step in app.steps.of_call(row.live.id)} <= {
        "done",
        "skipped",
    }
    calls_md = (app.settings.home / "workspace" / "CALLS.md").read_text()
    assert [calls_md.count(f"<!-- call: {row.live.id} -->") for row in rows] == [
        1
    ] * min(RUNS, 50) + [0] * (RUNS - min(RUNS, 50))
    with app.database.read() as connection:
        found = Counter(connection.execute(select(passages.c.call_id)).scalars())
    assert found == {row.live.id: 4 for row in rows}  # three turns and the summary
    assert verify_archive(app.archive.place, app.store).faults == ()
