"""Ids as people type them, and what a caller has just asked for; on both databases."""

from datetime import timedelta

import pytest

from aftercall.app import App
from aftercall.errors import RefusedInput
from aftercall.journal.journal import ingest_call
from aftercall.stores import find_id
from fakes import START, make_call


@pytest.fixture
def ids(app: App) -> list[str]:
    calls = [
        make_call(sid=f"S{place}", started_at=START - timedelta(hours=place))
        for place in range(2)
    ]
    return [ingest_call(app.journal, call)[0].live.id for call in calls]


def test_the_beginning_of_one_id_is_enough(app: App, ids: list[str]) -> None:
    first, second = ids
    shared = next(n for n in range(27) if first[:n] != second[:n])
    assert find_id(app.database, "call", first[:shared]) == first
    assert find_id(app.database, "call", second) == second


def test_the_beginning_of_two_ids_is_refused_with_both(
    app: App, ids: list[str]
) -> None:
    with pytest.raises(RefusedInput, match="begins more than one id") as refused:
        find_id(app.database, "call", ids[0][:2])
    assert all(one in str(refused.value) for one in ids)


def test_last_is_the_call_that_began_last(app: App, ids: list[str]) -> None:
    assert find_id(app.database, "call", "last") == ids[0]
    assert find_id(app.database, "fact", "last") == "last"


def test_what_fits_no_id_stays_as_it_is(app: App, ids: list[str]) -> None:
    assert find_id(app.database, "call", "100%_") == "100%_"


def test_what_was_just_asked_for_waits_for_its_window(app: App, ids: list[str]) -> None:
    window_s = 300.0
    found = app.work.runs.list_waiting(window_s)
    assert sorted(call_id for _, call_id, _ in found) == sorted(ids)
    sealed_at, window = app.clock.now(), timedelta(seconds=window_s)
    for run, _, until in found:
        assert until == max(run.ended_at, sealed_at) + window
