"""A long call, through all steps: read beside the app, and remembered like any other."""

import multiprocessing

from aftercall.app import App, build
from aftercall.llm.long_calls import MIN_LONG_CALL_CHARS
from aftercall.postcall.runner import rerun
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from fakes import make_call

WORDY = "one two " * (MIN_LONG_CALL_CHARS // 8)
SAID = [
    ("agent", "Hello! What can I do for you?"),
    ("caller", f"Hi, this is Bill Harker. Please call the plumber. {WORDY}."),
    ("agent", "I will do that."),
    (
        "caller",
        f"{WORDY}. My alarm code is four seven one one. I prefer tea to coffee.",
    ),
]


def test_every_step_of_a_long_call_ends_well(app: App) -> None:
    row, _ = app.journal.ingest(make_call(SAID))
    for name in STEPS:
        rerun(app.step_runner, row.live.id, name)
    states = {step.name: step.state for step in app.steps.of_call(row.live.id)}
    assert set(states.values()) <= {"done", "skipped"}
    summary = next(
        step.result or ""
        for step in app.steps.of_call(row.live.id)
        if step.name == "summary"
    )
    assert "plumber" in summary
    assert "4711" not in summary.replace(" ", "")


def test_a_long_call_is_read_by_a_process_that_ends_with_the_app(
    settings: Settings,
) -> None:
    others = set(multiprocessing.active_children())
    app = build(settings)
    try:
        assert app.reader.find_requests(make_call(SAID)).value.requests
        (started,) = set(multiprocessing.active_children()) - others
    finally:
        app.close()
    assert set(multiprocessing.active_children()) <= others
    assert started.exitcode == 0


def test_a_short_call_starts_no_process(app: App) -> None:
    others = multiprocessing.active_children()
    assert app.reader.find_requests(make_call()).value.requests == ()
    assert multiprocessing.active_children() == others
