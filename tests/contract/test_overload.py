"""Limits of a process: what is one too many is refused with clear words and shows in health;
what was taken goes on, the oldest first.
"""

from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from threading import Event

import pytest
from sqlalchemy import update

from aftercall import telemetry
from aftercall.app import App
from aftercall.clock import SystemClock
from aftercall.db import connect
from aftercall.db.connect import Database
from aftercall.db.tables import calls
from aftercall.errors import Overloaded
from aftercall.model.calls import Call
from aftercall.model.reading import Reading
from aftercall.overload import SHOWN_FOR
from aftercall.postcall import workflow
from aftercall.running import read_gauges, running
from aftercall.settings import Settings
from aftercall.settings.sections import LimitSettings
from fakes import FakeReader, VirtualClock, make_call, make_live_call
from opened_apps import OpenApp
from waiting import until


def open_with(
    open_app: OpenApp, settings: Settings, clock: VirtualClock, **limits: int
) -> App:
    return open_app(
        settings.model_copy(update={"limits": LimitSettings(**limits)}), clock
    )


async def test_a_call_too_many_is_refused_and_one_that_goes_on_is_not(
    open_app: OpenApp, settings: Settings, clock: VirtualClock
) -> None:
    app = open_with(open_app, settings, clock, live_calls=1)
    app.load.check_live_call("twilio", "CA1")
    record = await app.journal.open(make_live_call(source="twilio", sid="CA1"))
    app.load.check_live_call("twilio", "CA1")
    with pytest.raises(Overloaded, match="1 calls are going on") as refused:
        app.load.check_live_call("twilio", "CA2")
    assert (refused.value.http_status, refused.value.retry_after_s) == (503, 30)
    await app.journal.seal(record, end_reason="completed")
    app.load.check_live_call("twilio", "CA2")


def test_no_more_calls_are_taken_while_too_many_wait_to_be_read(
    open_app: OpenApp, settings: Settings, clock: VirtualClock
) -> None:
    app = open_with(open_app, settings, clock, queue=2)
    for _ in range(2):
        app.load.check_queue()
        app.journal.ingest(make_call())
        clock.move(2)
    with pytest.raises(Overloaded, match="2 calls wait to be read"):
        app.load.check_queue()
    with app.database.write() as connection:
        connection.execute(update(calls).values(postcall="started"))
    clock.move(2)
    app.load.check_queue()


def test_only_so_many_calls_are_stored_at_once(
    open_app: OpenApp, settings: Settings, clock: VirtualClock
) -> None:
    app = open_with(open_app, settings, clock, ingest=2)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(app.load.ingesting())
        with pytest.raises(Overloaded, match="2 calls are being stored"):
            stack.enter_context(app.load.ingesting())
    with app.load.ingesting():
        pass


def test_what_was_refused_shows_in_health_and_metrics_for_some_minutes(
    open_app: OpenApp, settings: Settings, clock: VirtualClock
) -> None:
    app = open_with(open_app, settings, clock, ingest=1)
    telemetry.start()
    try:
        with app.load.ingesting(), pytest.raises(Overloaded), app.load.ingesting():
            pass
        metrics = telemetry.start().render(lambda: read_gauges(app)).decode()
    finally:
        telemetry.stop()
    assert 'aftercall_refused_total{limit="ingest"}' in metrics
    assert 'aftercall_limit{limit="ingest"} 1.0' in metrics
    assert "limits.ingest fails on" in app.report_health().reasons[0]
    clock.move((SHOWN_FOR + timedelta(seconds=1)).total_seconds())
    assert app.report_health().status == "ok"


def test_a_database_without_a_free_connection_asks_to_try_later(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "CONNECTION_WAIT_S", 0.05)
    database = Database(app.settings.database_url, 3)
    with ExitStack() as stack:
        stack.callback(database.close)
        for _ in range(3):
            stack.enter_context(database.read())
        with pytest.raises(Overloaded, match="all connections to the database"):
            stack.enter_context(database.read())


class GatedReader(FakeReader):
    """Reads nothing until its gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Event()

    def read(self, call: Call) -> Reading:
        self.gate.wait(30)
        return super().read(call)


async def test_work_starts_with_the_oldest_call_and_the_others_wait_for_a_place(
    open_app: OpenApp, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MAX_CALLS", "MAX_DIRECT_SHARED_CALLS"):
        monkeypatch.setattr(workflow, name, 1)
    reader = GatedReader()
    app = replace(open_app(settings, SystemClock()), reader=reader)
    known = sorted(app.journal.ingest(make_call())[0].live.id for _ in range(3))
    async with running(app):
        await until(lambda: list(app.steps.list_due()) == known[1:])
        assert app.report_health(only_open=True).counts.queues["calls"] == 2
        reader.gate.set()
        await until(lambda: len({call.id for call in reader.calls}) == 3)
    # follow-up work may read a call once more
    assert list(dict.fromkeys(call.id for call in reader.calls)) == known
