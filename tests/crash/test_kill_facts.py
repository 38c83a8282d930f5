"""kill -9 while facts are written: no half-done replacement, no occurrence lost or doubled."""

import os
import random

import pytest
from sqlalchemy import func, select

from aftercall import faults
from aftercall.app import App
from aftercall.db.tables import fact_occurrences
from aftercall.memory.fact_store import FactFilter
from command_process import spawner
from crash import facts_process

SOAK = bool(os.environ.get("AFTERCALL_SOAK"))
RUNS = 200 if SOAK else 8
POINTS = [point for point in faults.POINTS if point.startswith("facts.")]


def remember(app: App, fault: str, count: int) -> int | None:
    arguments = (str(app.settings.home), app.settings.database_url, fault, count)
    process = spawner.Process(target=facts_process.run, args=arguments)
    process.start()
    process.join()
    return process.exitcode


@pytest.mark.timeout(3600 if SOAK else 120)
def test_every_mind_is_changed_whole_and_everything_said_counts_once(app: App) -> None:
    ended: list[int | None] = []
    luck = random.Random(20260213)
    for run in range(1, RUNS + 1):
        point = POINTS[run % len(POINTS)]
        # At the last call or before; one that changes nothing known does not reach the point of
        # retiring.
        fault = f"{point}:{luck.randint(1, max(1, run - 1))}"
        ended.append(remember(app, fault, run))
        assert_whole(app)
    assert set(ended) <= {-9, 0}
    assert ended.count(-9) > RUNS // 2
    assert remember(app, "", RUNS) == 0
    assert_whole(app)
    living = [
        fact
        for fact in app.facts.page(FactFilter(include_retired=True, limit=1000))
        if fact.matching == "caller|residence"
    ]
    chain = app.facts.get_history(living[-1].id)
    assert [fact.content for fact in chain] == [
        f"I live in {facts_process.PLACES[n % 4]}" for n in range(RUNS)
    ]
    others = [
        fact
        for fact in app.facts.page(FactFilter(limit=1000))
        if fact.matching != "caller|residence"
    ]
    assert [fact.occurrence_count for fact in others] == [RUNS, RUNS]
    with app.database.read() as connection:
        assert (
            connection.execute(
                select(func.count()).select_from(fact_occurrences)
            ).scalar()
            == 3 * RUNS
        )


def assert_whole(app: App) -> None:
    facts = {
        fact.id: fact
        for fact in app.facts.page(FactFilter(include_retired=True, limit=1000))
    }
    for fact in facts.values():
        assert (
            fact.is_active == (fact.superseded_by is None) == (fact.valid_until is None)
        )
        assert (
            fact.superseded_by is None
            or facts[fact.superseded_by].supersedes == fact.id
        )
        assert fact.occurrence_count == len(app.facts.list_occurrences(fact.id)) > 0
    assert (
        len(
            [
                fact
                for fact in facts.values()
                if fact.is_active and fact.matching == "caller|residence"
            ]
        )
        <= 1
    )
