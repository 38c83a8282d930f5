"""kill -9 in the middle of follow-up work: each effect exactly once, none missing, whatever the
moment.
"""

import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from aftercall import faults
from aftercall.app import App
from aftercall.lab.services import EmulatedGitHub
from command_process import spawner
from crash import work_process
from webhook_receiver import Receiver

SOAK = bool(os.environ.get("AFTERCALL_SOAK"))
WORKING = [point for point in faults.POINTS if point.startswith("work.")]
MOST = {
    "work.after_intent": 5,
    "work.after_sink": 5,
    "work.after_result": 5,
    "work.before_delivery": 3,
    "work.after_done": 3,
}


@pytest.fixture
def github() -> Iterator[EmulatedGitHub]:
    with EmulatedGitHub(work_process.TOKEN) as github:
        yield github


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with Receiver() as hook:
        yield hook


@pytest.fixture
def told() -> Iterator[Receiver]:
    with Receiver() as told:
        yield told


def work(
    place: work_process.Place,
    fault: str,
    sids: list[str],
    kill_after_s: float | None = None,
) -> int | None:
    process = spawner.Process(target=work_process.run, args=(place, fault, sids))
    process.start()
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        process.kill()
    process.join()
    return process.exitcode


def kill_at(run: int, luck: random.Random, dialect: str) -> tuple[str, float | None]:
    """Each named point in turn; in the suite half of them on each database.

    Every fifth run of a soak at any moment.
    """
    if SOAK and run % 5 == 4:
        return "", luck.uniform(0.3, 3.0)
    points = WORKING if SOAK else WORKING[::2] if dialect == "sqlite" else WORKING[1::2]
    point = points[run % len(points)]
    return f"{point}:{luck.randint(1, MOST.get(point, 1))}", None


@pytest.mark.timeout(3600 if SOAK else 240)
def test_each_effect_happens_exactly_once(
    app: App, github: EmulatedGitHub, hook: Receiver, told: Receiver
) -> None:
    luck = random.Random(20260213)
    place = work_process.Place(
        str(app.settings.home),
        app.settings.database_url,
        github.url,
        hook.url,
        told.url,
    )
    dialect = app.database.dialect
    runs = 100 if SOAK else len(WORKING[::2] if dialect == "sqlite" else WORKING[1::2])
    sids: list[str] = []
    for run in range(runs):
        sids.append(f"call{run}")
        fault, moment = kill_at(run, luck, dialect)
        assert work(place, fault, sids, moment) in (
            (-9,) if moment is None else (-9, 0)
        )
    assert work(place, "", sids) == 0
    conversations = [
        row.live.conversation for row in app.store.list_page(limit=runs + 1)
    ]
    assert len(conversations) == runs
    check(app, conversations, github, hook)
    check_events(app, told)


def check(
    app: App, conversations: list[str], github: EmulatedGitHub, hook: Receiver
) -> None:
    rows = [
        row
        for conversation in conversations
        for row in app.work.followups.of_conversation(conversation)
    ]
    assert Counter(row.state for row in rows) == {"done": 4 * len(conversations)}
    marks = Counter(
        re.findall(
            r"<!-- aftercall: (\w+) -->",
            " ".join(issue["body"] for issue in github.issues),
        )
    )
    assert marks == {row.key: 1 for row in rows if row.request_kind == "issue"}
    workspace = app.settings.home / "workspace"
    tasks = Counter(
        re.findall(
            r'key: "(\w+):tasks"',
            " ".join(path.read_text() for path in (workspace / "tasks").glob("*.md")),
        )
    )
    assert tasks == {
        row.key: 1 for row in rows if row.request_kind in ("reminder", "message")
    }
    assert len(list((workspace / "journal").rglob("*.md"))) == len(conversations)
    ids = Counter(posted.headers["webhook-id"] for posted in hook.posted)
    # a notice and a reminder each; a repeat carries the id of what it repeats
    assert len(ids) == 2 * len(conversations)
    assert app.work.deliveries.dead() == []


def check_events(app: App, told: Receiver) -> None:
    """Each thing that happened is one event, and each event was posted."""
    logged = app.webhooks.log.page(limit=10_000)
    times = Counter((event.type, event.subject) for event in logged)
    assert set(times.values()) == {1}
    done = {subject for type_, subject in times if type_ == "request.done"}
    rows = app.work.followups.page(limit=1000)
    assert done == {row.id for row in rows if row.kind == "request"}
    posted = [one.headers["webhook-id"] for one in told.posted]
    assert set(posted) == {event.id for event in logged}
