"""kill -9 while things are let go: nothing is lost that was to be archived, nothing is left
that was to go, the archive is whole.
"""

from datetime import UTC, datetime

import pytest

from aftercall.app import App
from aftercall.journal.verify import verify_archive
from aftercall.postcall.steps import STEPS
from command_process import spawner
from crash import retention_process
from fakes import make_call


def let_go(app: App, fault: str) -> int | None:
    process = spawner.Process(
        target=retention_process.run,
        args=(str(app.settings.home), app.settings.database_url, fault),
    )
    process.start()
    process.join()
    return process.exitcode


@pytest.mark.parametrize(
    "point", ["retention.after_copy", "erase.after_tombstone", "retention.after_files"]
)
def test_what_was_cut_off_is_finished_by_whoever_comes_next(
    app: App, point: str
) -> None:
    said = [
        ("agent", "Hello!"),
        ("caller", "I prefer juniper tea in the evening."),
        ("agent", "Noted."),
        ("caller", "Thank you."),
    ]
    call = make_call(said, started_at=datetime(2025, 1, 5, 12, tzinfo=UTC))
    app.journal.ingest(call)
    for name in STEPS:
        app.step_runner.run(call.id, name)
    app.steps.add_waiting([call.id], list(STEPS), app.clock.now())
    app.steps.mark_started({call.id: 0})
    app.work.runs.mark_running(call.conversation, 1, app.clock.now())
    app.work.runs.finish(call.conversation, 1, "done", "", app.clock.now())
    assert let_go(app, point) == -9
    assert let_go(app, "") == 0
    assert verify_archive(app.archive.place, app.store).faults == ()
    assert app.archive.place.list_names() == []
    assert "juniper" not in str(
        app.recall.find("main", call.caller, "verified", "juniper tea")
    )
    kept = [
        file.read_text() for file in (app.settings.home / "retired").rglob("*.json")
    ]
    # the call and its fact, once each
    assert sum("juniper" in text for text in kept) == 2
