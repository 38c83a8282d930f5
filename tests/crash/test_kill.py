"""kill -9 at every named point and at any moment: what was acknowledged is archived, once."""

import json
import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from aftercall import faults
from aftercall.app import App
from aftercall.journal.journal import recover
from aftercall.journal.verify import verify_archive
from command_process import spawner
from crash import call_process

SOAK = bool(os.environ.get("AFTERCALL_SOAK"))
RUNS = 200 if SOAK else 28
CALLS, TURNS = 3, 4
KEEPING = [
    point
    for point in faults.POINTS
    if point.startswith(("journal", "archive", "resume"))
]


def most_often(point: str) -> int:
    """How often a run reaches the point: kill it at any of these times."""
    return CALLS * TURNS if point.startswith("journal") else CALLS


def kill_once(app: App, acknowledged: Path, luck: random.Random, run: int) -> None:
    point = [*KEEPING, ""][run % (len(KEEPING) + 1)]
    fault = f"{point}:{luck.randint(1, most_often(point))}" if point else ""
    arguments = (
        str(app.settings.home),
        app.settings.database_url,
        fault,
        str(acknowledged),
        CALLS,
        TURNS,
    )
    process = spawner.Process(target=call_process.run, args=arguments)
    process.start()
    if not point:
        time.sleep(luck.uniform(0.0, 0.4))  # no named point: any moment will do
        process.kill()
    process.join()
    assert process.exitcode in ((-9, 0) if not point else (-9,))


def check(app: App, acknowledged: Path) -> None:
    recover(app.journal)
    sealed = [
        json.loads(app.archive.place.read(name))
        for name in app.archive.place.list_names()
    ]
    kept = {turn["text"] for call in sealed for turn in call["turns"]}
    lost = set(acknowledged.read_text().splitlines()) - kept
    assert lost == set()
    assert [
        call
        for call, times in Counter(call["id"] for call in sealed).items()
        if times > 1
    ] == []
    assert all(
        [turn["seq"] for turn in call["turns"]]
        == list(range(1, len(call["turns"]) + 1))
        for call in sealed
    )
    assert app.store.list_unsealed() == []
    assert verify_archive(app.archive.place, app.store).faults == ()


@pytest.mark.timeout(1800 if SOAK else 120)
def test_no_acknowledged_turn_is_lost_and_no_call_is_archived_twice(
    app: App, tmp_path: Path
) -> None:
    acknowledged = tmp_path / "acknowledged"
    acknowledged.touch()
    luck = random.Random(20260213)
    for run in range(RUNS):
        kill_once(app, acknowledged, luck, run)
        check(app, acknowledged)
    assert len(acknowledged.read_text().splitlines()) > RUNS
