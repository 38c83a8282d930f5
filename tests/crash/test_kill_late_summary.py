"""kill -9 while a late summary brings what waited for it: everything comes to its end, and each
thing stands once.
"""

from collections import Counter
from collections.abc import Callable

import pytest
from sqlalchemy import select

from aftercall.app import App
from aftercall.db.tables import passages
from aftercall.postcall.runner import UNENDED
from command_process import spawner
from crash import late_summary_process


def start(
    app: App, run: Callable[..., None], *words: object, **named: object
) -> int | None:
    process = spawner.Process(
        target=run,
        args=(str(app.settings.home), app.settings.database_url, *words),
        kwargs=named,
    )
    process.start()
    process.join()
    return process.exitcode


def assert_each_stands_once(app: App, count: int) -> None:
    rows = app.store.list_page(limit=count + 1)
    assert len(rows) == count
    assert {step.state for row in rows for step in app.steps.of_call(row.live.id)} <= {
        "done",
        "skipped",
    }
    with app.database.read() as connection:
        found = Counter(
            (call_id, kind)
            for call_id, kind in connection.execute(
                select(passages.c.call_id, passages.c.kind)
            )
        )
    assert found == {
        (row.live.id, kind): times
        for row in rows
        for kind, times in (("turn", 3), ("summary", 1))
    }
    assert len(app.documents.search("gutter", 10)) == count
    calls_md = (app.settings.home / "workspace" / "CALLS.md").read_text()
    assert [calls_md.count(f"<!-- call: {row.live.id} -->") for row in rows] == [
        1
    ] * count


def test_what_waited_for_a_late_summary_is_made_once(app: App) -> None:
    assert (
        start(app, late_summary_process.run, "step.after_late_summary:1", ["first"], 1)
        == -9
    )
    assert (
        start(
            app,
            late_summary_process.run,
            "postcall.after_finish:9",
            ["first", "second"],
            1,
        )
        == -9
    )
    assert start(app, late_summary_process.run, "", ["first", "second"], 0) == 0
    assert_each_stands_once(app, 2)


def test_a_late_summary_by_hand_that_was_cut_off_is_made_whole_by_hand(
    app: App,
) -> None:
    assert start(app, late_summary_process.run_by_hand, "", "thing", declines=True) == 0
    (row,) = app.store.list_page(limit=2)
    assert {step.name: step.state for step in app.steps.of_call(row.live.id)} == {
        "summary": "failed",
        "index": "done",
        "document": "failed",
        "pins": "done",
    }
    assert (
        start(
            app,
            late_summary_process.run_by_hand,
            "postcall.after_finish:1",
            "thing",
            declines=False,
        )
        == -9
    )
    assert (
        start(app, late_summary_process.run_by_hand, "", "thing", declines=False) == 0
    )
    assert_each_stands_once(app, 1)


@pytest.mark.parametrize("point", ["postcall.before_step", "postcall.after_step"])
def test_a_step_by_hand_that_was_cut_off_shows_at_once_and_is_taken_by_the_next_try(
    app: App, point: str
) -> None:
    assert start(app, late_summary_process.run_by_hand, "", "thing", declines=True) == 0
    assert (
        start(
            app, late_summary_process.run_by_hand, f"{point}:1", "thing", declines=False
        )
        == -9
    )
    (row,) = app.store.list_page(limit=2)
    (summary,) = [
        step for step in app.steps.of_call(row.live.id) if step.name == "summary"
    ]
    assert (summary.state, summary.reason) == ("failed", UNENDED)
    assert (
        start(app, late_summary_process.run_by_hand, "", "thing", declines=False) == 0
    )
    assert_each_stands_once(app, 1)
