"""One call over a line of finished turns, on both databases: the caller always hears something,
and all of it is kept.
"""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from aftercall.app import App
from aftercall.bridge.turn_call import (
    ANSWER_TIMEOUT_S,
    NOT_WRITTEN,
    SORRY,
    SORRY_GOODBYE,
    TurnCall,
    TurnCallParts,
)
from aftercall.engine.voice import AgentReply
from aftercall.errors import (
    DatabaseUnreachable,
    EngineLost,
    StorageFull,
    WorkspaceReadOnly,
)
from aftercall.journal import spill
from aftercall.journal.journal import DATABASE_TIMEOUT_S
from aftercall.journal.recorder import CallRecorder, JournalInserter, ResumeState
from aftercall.journal.replay import JournalEntry
from aftercall.journal.store import CallStore
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.settings import Settings
from fakes import FakeEngine, FakePhone, VirtualClock, make_live_call
from opened_apps import OpenApp


def parts_of(app: App, engine: FakeEngine) -> TurnCallParts:
    async def brief(call: LiveCall) -> tuple[ResumeState | None, Briefing]:
        return await asyncio.to_thread(app.resume.peek, call), Briefing(
            greeting="Hello!"
        )

    return TurnCallParts(
        app.journal, app.resume, brief, "Hello, stranger!", app.clock, engine=engine
    )


def sealed(app: App, call: TurnCall) -> list[tuple[str, str]]:
    row = app.store.get(call.call.id)
    archived, _ = app.archive.read(str(row.archive_name))
    return [(turn.speaker, turn.text) for turn in archived.turns]


async def until_sealed(app: App, clock: VirtualClock, call: TurnCall) -> None:
    """The database has come back; somebody has to look before it is noticed."""
    async with asyncio.timeout(30):
        while (
            row := app.store.find(call.call.source, call.call.sid)
        ) is None or row.state != "sealed":
            await asyncio.sleep(0.01)
            await clock.advance(0.5)


async def test_the_archive_holds_exactly_what_was_said_in_order(app: App) -> None:
    engine = FakeEngine("Which one?", "Noted.")
    call, heard = await FakePhone(parts_of(app, engine)).ring(
        "Open a bug please", "The thumbnails"
    )
    assert heard == ["Hello!", "Which one?", "Noted."]
    assert sealed(app, call) == [
        ("agent", "Hello!"),
        ("caller", "Open a bug please"),
        ("agent", "Which one?"),
        ("caller", "The thumbnails"),
        ("agent", "Noted."),
    ]
    assert app.store.get(call.call.id).end_reason == "caller_hung_up"
    assert engine.is_closed


async def test_a_request_is_on_disk_before_the_agent_says_so(app: App) -> None:
    taken = {"kind": "other", "title": "Question: When do you open?"}
    call, _ = await FakePhone(
        parts_of(app, FakeEngine(AgentReply("I took that down.", taken_request=taken)))
    ).ring("When do you open?")
    archived, _ = app.archive.read(str(app.store.get(call.call.id).archive_name))
    (event,) = archived.events
    assert (event.kind, event.data) == ("request.taken", taken)
    assert event.at <= archived.turns[-1].at


async def test_the_agent_may_hang_up(app: App) -> None:
    call, heard = await FakePhone(
        parts_of(app, FakeEngine(AgentReply("Goodbye!", ends_call=True)))
    ).ring("That's all", "never said")
    assert heard == ["Hello!", "Goodbye!"]
    assert app.store.get(call.call.id).end_reason == "agent_hung_up"


async def test_what_the_caller_said_is_durable_before_the_engine_is_asked(
    app: App,
) -> None:
    seen: list[int] = []

    class Watchful(FakeEngine):
        async def answer(self, said: str) -> AgentReply:
            seen.append(len(app.store.list_entries(call.call.id)))
            return AgentReply("yes")

    call = TurnCall(parts_of(app, Watchful()), make_live_call())
    await call.start()
    await call.answer("hello")
    assert seen == [2]
    await call.end("caller_hung_up")


@pytest.mark.parametrize("fault", [EngineLost("gone"), ValueError("broken")])
async def test_an_engine_that_breaks_once_is_asked_again_and_twice_ends_the_call(
    app: App, fault: Exception
) -> None:
    call, heard = await FakePhone(parts_of(app, FakeEngine(fault, fault))).ring(
        "hello", "hello?", "never said"
    )
    assert heard == ["Hello!", SORRY.text, SORRY_GOODBYE.text]
    row = app.store.get(call.call.id)
    assert (row.state, row.end_reason) == ("sealed", "engine_lost")
    archived, _ = app.archive.read(str(row.archive_name))
    assert [event.kind for event in archived.events] == ["engine.lost", "engine.lost"]


async def test_an_engine_that_recovers_goes_on(app: App) -> None:
    _, heard = await FakePhone(
        parts_of(app, FakeEngine(EngineLost("gone"), "Back again.", EngineLost("gone")))
    ).ring("a", "b", "c")
    assert heard == ["Hello!", SORRY.text, "Back again.", SORRY.text]


async def test_an_engine_that_never_answers_is_given_its_time_and_no_more(
    app: App, clock: VirtualClock
) -> None:
    engine = FakeEngine(None)
    call = TurnCall(parts_of(app, engine), make_live_call())
    await call.start()
    hearing = asyncio.create_task(call.answer("hello"))
    await engine.asked.wait()
    await clock.until_asleep()
    await clock.advance(ANSWER_TIMEOUT_S - 0.1)
    assert not hearing.done()
    await clock.advance(0.1)
    assert await hearing == SORRY
    await call.end("caller_hung_up")


async def test_a_caller_who_hangs_up_while_the_answer_is_made_breaks_nothing(
    app: App, clock: VirtualClock
) -> None:
    engine = FakeEngine(None)
    call = TurnCall(parts_of(app, engine), make_live_call())
    await call.start()
    hearing = asyncio.create_task(call.answer("never mind"))
    await engine.asked.wait()
    await call.end("caller_hung_up")
    await clock.advance(ANSWER_TIMEOUT_S)
    await hearing
    assert sealed(app, call) == [("agent", "Hello!"), ("caller", "never mind")]


async def test_an_engine_that_refuses_at_once_still_lets_the_caller_hear_something(
    app: App,
) -> None:
    call, heard = await FakePhone(
        parts_of(app, FakeEngine(greeting=EngineLost("wrong key")))
    ).ring()
    assert heard == [SORRY.text]
    assert app.store.get(call.call.id).state == "sealed"


async def test_a_briefing_that_fails_or_takes_too_long_costs_the_memory_and_not_the_call(
    app: App, clock: VirtualClock
) -> None:
    async def broken(call: LiveCall) -> tuple[ResumeState | None, Briefing]:
        raise WorkspaceReadOnly("USER.md: may not be read")

    async def slow(call: LiveCall) -> tuple[ResumeState | None, Briefing]:
        await asyncio.Event().wait()
        raise AssertionError

    for brief in (broken, slow):
        engine = FakeEngine()
        parts = TurnCallParts(
            app.journal, app.resume, brief, "Hello, stranger!", app.clock, engine=engine
        )
        call = TurnCall(parts, make_live_call())
        beginning = asyncio.create_task(call.start())
        while not beginning.done():
            await asyncio.sleep(0.01)
            await clock.advance(0.1)
        assert [briefing.greeting for briefing in engine.briefings] == [
            "Hello, stranger!"
        ]
        await call.end("caller_hung_up")


async def test_a_database_that_hangs_costs_the_caller_a_moment_and_no_turn(
    settings: Settings,
    clock: VirtualClock,
    monkeypatch: pytest.MonkeyPatch,
    open_app: OpenApp,
) -> None:
    app = open_app(settings, clock, database_timeout_s=DATABASE_TIMEOUT_S)
    goes_on, real = threading.Event(), JournalInserter.write
    goes_on.set()

    def write(self: JournalInserter, entries: Sequence[JournalEntry]) -> None:
        goes_on.wait(60)
        real(self, entries)

    monkeypatch.setattr(JournalInserter, "write", write)
    call = TurnCall(parts_of(app, FakeEngine()), make_live_call())
    await call.start()
    goes_on.clear()
    hearing = asyncio.create_task(call.answer("hello"))
    while not app.journal.outage.is_active:
        await asyncio.sleep(0.01)
        await clock.advance(0.5)
    assert await hearing == AgentReply("Anything else?")
    goes_on.set()
    await call.end("caller_hung_up")
    await until_sealed(app, clock, call)
    assert sealed(app, call) == [
        ("agent", "Hello!"),
        ("caller", "hello"),
        ("agent", "Anything else?"),
    ]
    assert app.journal.spill.list_files() == []


async def test_a_full_disk_in_the_middle_of_a_call_is_told_to_the_caller(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = TurnCall(parts_of(app, FakeEngine()), make_live_call())
    await call.start()

    async def full(self: CallRecorder, item: Any) -> None:
        raise StorageFull("no room")

    with monkeypatch.context() as disk:
        disk.setattr(CallRecorder, "append", full)
        assert await call.answer("hello") == NOT_WRITTEN
    await call.end("caller_hung_up")
    assert sealed(app, call) == [("agent", "Hello!")]


async def test_when_neither_the_database_nor_the_disk_takes_anything_the_caller_is_told(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(self: CallStore, call: LiveCall, owner: str) -> bool:
        raise DatabaseUnreachable("no connection")

    monkeypatch.setattr(CallStore, "open", away)
    monkeypatch.setattr(spill, "MAX_WAITING_BYTES", 0)
    _, heard = await FakePhone(parts_of(app, FakeEngine())).ring("hello")
    assert heard == [NOT_WRITTEN.text]


async def test_ringing_back_inside_the_window_continues_the_conversation(
    app: App, clock: VirtualClock
) -> None:
    phone = FakePhone(parts_of(app, FakeEngine()))
    first, _ = await phone.ring("hello")
    clock.move(30)
    second, _ = await phone.ring("as I said")
    clock.move(301)
    third, _ = await phone.ring("something else")
    assert (second.call.resumes, second.call.conversation) == (
        first.call.id,
        first.call.id,
    )
    assert (third.call.resumes, third.call.conversation) == (None, third.call.id)


async def test_a_call_that_another_process_sealed_ends_here_without_an_error(
    app: App, capsys: pytest.CaptureFixture[str]
) -> None:
    call = TurnCall(parts_of(app, FakeEngine()), make_live_call())
    await call.start()
    app.store.claim(
        call.call.id,
        held_by=app.presence.process,
        sealer="another process",
        ended_at=app.clock.now(),
        end_reason="caller_hung_up",
    )
    await call.end("caller_hung_up")
    assert app.journal.live_recorders == []
    assert "error" not in "".join(capsys.readouterr())
