"""Several processes on one database share the work, and some are killed: nothing twice, nothing
stuck, nothing failed.
"""

import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.context import ForkServerProcess

import pytest

from aftercall.app import App
from aftercall.lab.services import EmulatedGitHub
from command_process import spawner
from crash import work_process
from fakes import make_call
from webhook_receiver import Receiver

SOAK = bool(os.environ.get("AFTERCALL_SOAK"))
CALLS, PROCESSES, ROUNDS = (300, 3, 12) if SOAK else (12, 2, 2)


@pytest.fixture
def place(app: App) -> Iterator[tuple[work_process.Place, EmulatedGitHub]]:
    with EmulatedGitHub(work_process.TOKEN) as github, Receiver() as hook:
        yield (
            work_process.Place(
                str(app.settings.home), app.settings.database_url, github.url, hook.url
            ),
            github,
        )


def start(place: work_process.Place) -> ForkServerProcess:
    process = spawner.Process(target=work_process.serve, args=(place,), daemon=True)
    process.start()
    return process


@pytest.mark.timeout(3600 if SOAK else 240)
def test_every_issue_is_made_once_however_the_processes_end(
    app: App, place: tuple[work_process.Place, EmulatedGitHub]
) -> None:
    luck = random.Random(20260213)
    where, github = place
    calls = [
        make_call(work_process.SAID, sid=f"call{number}", caller=f"+1555010{number:04}")
        for number in range(CALLS)
    ]
    for call in calls:
        app.journal.ingest(call)
    processes = [start(where) for _ in range(PROCESSES)]
    for _ in range(ROUNDS):
        made = len(github.issues)
        while len(github.issues) < min(
            made + luck.randint(1, max(1, CALLS // ROUNDS // 2)), CALLS
        ):
            time.sleep(0.01)
        victims = luck.sample(range(PROCESSES), luck.randint(1, PROCESSES))
        for victim in victims:
            processes[victim].kill()
            processes[victim].join()
        for victim in victims:  # all at once: each finds the same dead processes
            processes[victim] = start(where)
    while any(
        app.work.runs.get(call.conversation).state not in ("done", "failed")
        for call in calls
    ):
        time.sleep(0.1)
    for process in processes:
        process.terminate()
        process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    rows = [
        row
        for call in calls
        for row in app.work.followups.of_conversation(call.conversation)
        if row.kind == "request"
    ]
    assert [
        (row.state, row.reason) for row in rows if row.state not in ("done", "held")
    ] == []
    assert [app.work.runs.get(call.conversation).state for call in calls] == [
        "done"
    ] * CALLS
    marks = Counter(
        re.findall(
            r"<!-- aftercall: (\w+) -->",
            " ".join(issue["body"] for issue in github.issues),
        )
    )
    assert marks == {row.key: 1 for row in rows if row.request_kind == "issue"}
    assert len(marks) == CALLS
    steps = [step for call in calls for step in app.steps.of_call(call.id)]
    assert [(step.name, step.reason) for step in steps if step.state == "failed"] == []
