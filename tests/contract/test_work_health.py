"""Health, on both databases: exactly one state a call, what is worth a look, and a sweep that
repairs what fell through.
"""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import delete, update

from aftercall import durable
from aftercall.app import App
from aftercall.clock import SystemClock
from aftercall.db.tables import calls, followup_runs, steps
from aftercall.errors import SinkRefused, StorageFull
from aftercall.journal.handover import HEARTBEAT_TIMEOUT_S, Presence, ProcessStore
from aftercall.memory.pins.board import PinBoard
from aftercall.model.reading import done
from aftercall.postcall.steps import STEPS
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.work import deliver
from aftercall.work.health import (
    MAX_PENDING_AGE,
    HealthReport,
    report,
    report_json,
)
from aftercall.work.workflow import import_missing_files, sweep, sweep_if_due
from fakes import VirtualClock, make_call, make_live_call
from followup_work import RecordingSink, follow, hold_call, later, with_sink
from opened_apps import OpenApp
from waiting import until


def finish_steps(app: App, call_id: str) -> None:
    for name in STEPS:
        app.steps.finish(call_id, {name: done()}, app.clock.now())


def look(app: App) -> HealthReport:
    return report(app.health, app.clock.now(), app.settings.reconnect_window_s)


def state_of(app: App, call_id: str) -> str:
    return next(call.state for call in look(app).calls if call.id == call_id)


async def test_a_call_is_pending_until_everything_after_it_is_over(app: App) -> None:
    record = await app.journal.open(make_live_call())
    assert state_of(app, record.call.id) == "pending"
    call = hold_call(app)
    assert state_of(app, call.id) == "pending"
    finish_steps(app, call.id)
    assert state_of(app, call.id) == "pending"
    follow(app.work, call.conversation)
    assert state_of(app, call.id) == "ok"
    assert (look(app).status, look(app).exit_code) == ("ok", 0)


def test_what_failed_shows_and_is_recovered_once_it_is_fine(app: App) -> None:
    desk = with_sink(
        app,
        RecordingSink("github", SinkRefused("github: answered 404")),
        policy={"unknown": "do"},
    )
    call = hold_call(app)
    finish_steps(app, call.id)
    failed = next(
        row for row in follow(desk, call.conversation) if row.state == "failed"
    )
    assert state_of(app, call.id) == "failed"
    assert (look(app).status, look(app).exit_code) == ("failing", 2)
    deliver.retry(desk, failed.id, "me")
    deliver.deliver_request(desk, failed.id)
    assert state_of(app, call.id) == "recovered"
    assert look(app).exit_code == 0


async def test_the_short_report_has_the_failed_and_pending_calls_of_the_whole_one(
    app: App,
) -> None:
    await app.journal.open(make_live_call())
    waiting, working, failed, fine = (hold_call(app) for _ in range(4))
    app.steps.add_waiting([working.id], list(STEPS), app.clock.now())
    for call in (failed, fine):
        finish_steps(app, call.id)
        follow(app.work, call.conversation)
    app.steps.fail(failed.id, "summary", "no model", app.clock.now())
    whole, short = look(app), app.report_health(only_open=True)
    assert {call.id for call in short.calls} == {
        call.id for call in whole.calls if call.state in ("failed", "pending")
    }
    assert {waiting.id, working.id, failed.id} < {call.id for call in short.calls}
    assert fine.id not in {call.id for call in short.calls}
    assert (short.status, short.reasons) == (whole.status, whole.reasons)
    assert short.oldest_pending == whole.oldest_pending


def test_a_failed_step_fails_its_call(app: App) -> None:
    call = hold_call(app)
    finish_steps(app, call.id)
    follow(app.work, call.conversation)
    app.steps.fail(call.id, "profile", "USER.md: may not be changed", app.clock.now())
    assert (state_of(app, call.id), look(app).failed_steps) == ("failed", 1)


def test_empty_calls_are_told_apart(app: App) -> None:
    silent = hold_call(app, [("agent", "Hello?")])
    dropped = hold_call(app, [("agent", "Hello?")], caller="+15550142")
    hold_call(
        app,
        caller="+15550142",
        conversation=dropped.conversation,
        resumes=dropped.id,
        started_at=later(60),
    )
    for line in look(app).calls:
        finish_steps(app, line.id)
    follow(app.work, silent.conversation)
    follow(app.work, dropped.conversation)
    assert (state_of(app, silent.id), state_of(app, dropped.id)) == (
        "nothing_said",
        "superseded",
    )
    assert look(app).exit_code == 0


def test_what_waits_for_approval_is_held_and_worth_a_look_after_a_day(
    app: App, clock: VirtualClock
) -> None:
    call = hold_call(app)
    finish_steps(app, call.id)
    follow(with_sink(app, RecordingSink()), call.conversation)
    assert (state_of(app, call.id), look(app).status) == ("held", "ok")
    clock.move(25 * 3600)
    assert look(app).status == "warn"


INVOICE = [
    ("agent", "Hello."),
    ("caller", "Where is my invoice?"),
    ("agent", "I'll email you the invoice."),
]


def test_what_another_agent_promised_does_not_warn(app: App) -> None:
    call = hold_call(app, INVOICE, is_handed_in=True)
    finish_steps(app, call.id)
    follow(app.work, call.conversation)
    assert (look(app).status, look(app).counts.broken) == ("ok", 0)


def test_a_broken_promise_is_worth_a_look_until_it_is_settled(app: App) -> None:
    call = hold_call(app, INVOICE)
    finish_steps(app, call.id)
    broken = next(
        row for row in follow(app.work, call.conversation) if row.state == "broken"
    )
    made = look(app)
    assert (made.status, made.exit_code, made.counts.broken) == ("warn", 1, 1)
    assert "1 broken promise" in made.reasons[0]
    assert report_json(made)["broken_promises"] == 1
    deliver.reject(app.work, broken.id, "me")
    assert look(app).status == "ok"


def test_a_call_that_nobody_works_on_is_worth_a_look(
    app: App, clock: VirtualClock
) -> None:
    hold_call(app)
    clock.move(600)
    assert look(app).status == "ok"
    clock.move(1200)
    assert look(app).status == "warn"
    assert report_json(look(app))["oldest_pending"] is not None


def test_every_call_has_one_state_and_the_counts_add_up(app: App) -> None:
    for number in range(5):
        hold_call(app, caller=f"+1555010{number}")
    made = look(app)
    assert sum(made.by_state.values()) == len(made.calls) == 5


@pytest.fixture
async def engine(app: App) -> AsyncIterator[App]:
    await durable.launch(app.settings, app.presence.process)
    yield app
    await durable.close()


async def test_the_sweep_sets_going_what_fell_through_and_then_finds_nothing(
    engine: App, clock: VirtualClock
) -> None:
    call, lost = hold_call(engine), hold_call(engine, caller="+15550142")
    with engine.database.write() as connection:
        # enqueued, they say, but no step was ever begun
        connection.execute(update(calls).values(postcall="started"))
        connection.execute(
            delete(followup_runs).where(
                followup_runs.c.conversation == lost.conversation
            )
        )
        # and its workflow is gone
        connection.execute(update(followup_runs).values(state="running", run=1))
        connection.execute(delete(steps))
    clock.move(3600)
    found = await sweep(engine.health, engine.work, engine.journal)
    assert {name: count for name, count in found.items() if count} == {
        "calls": 2,
        "timers": 1,
        "runs": 1,
    }
    assert sorted(
        run.conversation for run in engine.work.runs.due(clock.now(), 300)
    ) == sorted([call.conversation, lost.conversation])
    assert list(engine.steps.list_due()) == sorted([call.id, lost.id])
    assert sum((await sweep(engine.health, engine.work, engine.journal)).values()) == 0
    assert await sweep_if_due(engine.health, engine.work, engine.journal) is not None
    assert await sweep_if_due(engine.health, engine.work, engine.journal) is None
    assert look(engine).counts.swept_at == clock.now()


def test_a_sealed_file_the_database_lost_is_imported_and_its_work_not_repeated(
    app: App,
) -> None:
    call = hold_call(app)
    before = follow(app.work, call.conversation)
    with app.database.write() as connection:
        for table in reversed(calls.metadata.sorted_tables):
            connection.execute(delete(table))
    assert import_missing_files(app.journal, later(-3600)) == 1
    assert import_missing_files(app.journal, later(-3600)) == 0
    tasks = sorted((app.settings.home / "workspace" / "tasks").iterdir())
    again = follow(app.work, call.conversation)
    assert [(row.key, row.state, row.link) for row in again] == [
        (row.key, row.state, row.link) for row in before
    ]
    assert sorted((app.settings.home / "workspace" / "tasks").iterdir()) == tasks


def test_a_call_handed_in_late_is_pending_since_then(
    app: App, clock: VirtualClock
) -> None:
    call = make_call()
    clock.move(2 * 86_400)
    app.journal.ingest(call, is_handed_in=True)
    made = look(app)
    assert made.oldest_pending == clock.now()
    assert not any("pending since" in reason for reason in made.reasons)
    clock.move(app.settings.reconnect_window_s + MAX_PENDING_AGE.total_seconds() + 1)
    assert any("pending since" in reason for reason in look(app).reasons)


FAILURE = {
    "job": "recovery",
    "code": "storage.full",
    "reason": "no room in the archive",
    "since": "2026-02-13T15:41:12Z",
    "machine": "phone-2",
}


def test_upkeep_that_fails_in_another_process_is_failing_until_it_works(
    app: App, clock: VirtualClock
) -> None:
    other = Presence(app.settings.home / "run", ProcessStore(app.database), clock)
    other.send_heartbeat([FAILURE])
    made = app.report_health()
    assert (made.status, made.exit_code) == ("failing", 2)
    (reason,) = made.reasons
    assert reason.startswith("recovery fails on phone-2 since 2026-02-13T15:41:12Z: ")
    assert reason.endswith("no room in the archive (storage.full)")
    without = {name: value for name, value in FAILURE.items() if name != "machine"}
    other.send_heartbeat([without])  # of an older version
    assert app.report_health().reasons[0].startswith("recovery fails since 2026-")
    other.send_heartbeat([])
    assert app.report_health().status == "ok"
    other.send_heartbeat([FAILURE])
    other.close()
    assert app.report_health().status == "ok"


def test_a_running_process_that_cannot_even_say_so_is_failing(
    app: App, clock: VirtualClock
) -> None:
    other = Presence(app.settings.home / "run", ProcessStore(app.database), clock)
    clock.move(HEARTBEAT_TIMEOUT_S + 1)
    # a command that takes long, and does no upkeep
    assert app.report_health().status == "ok"
    other.send_heartbeat([])
    clock.move(HEARTBEAT_TIMEOUT_S + 1)
    assert app.report_health().status == "failing"
    other.send_heartbeat([])
    assert app.report_health().status == "ok"
    other.close()


async def test_upkeep_that_fails_here_is_told_by_a_running_app(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, open_app: OpenApp
) -> None:
    is_broken = True

    def sweep_pins(board: PinBoard) -> None:
        if is_broken:
            raise StorageFull("no room for pins")

    monkeypatch.setattr(PinBoard, "sweep", sweep_pins)
    monkeypatch.setattr("aftercall.memory.pins.board.SWEEP_INTERVAL_S", 0.01)
    app = open_app(settings, SystemClock())
    async with running(app):
        await until(lambda: app.report_health().status == "failing")
        assert "no room for pins (storage.full)" in app.report_health().reasons[0]
        is_broken = False
        await until(lambda: app.report_health().status == "ok")
