"""Calls that we answer and calls that an agent elsewhere reports keep the same promises, on both
databases.
"""

from dataclasses import replace
from typing import Protocol

import pytest
from pydantic import SecretStr

from aftercall.app import App
from aftercall.bridge.remote_call import RemoteCall, RemoteStart, SentTurn
from aftercall.bridge.turn_call import TurnCall
from aftercall.engine.voice import AgentReply
from aftercall.errors import DatabaseUnreachable
from aftercall.journal.journal import recover
from aftercall.journal.recorder import JournalInserter
from aftercall.model.calls import Call, LiveCall
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from aftercall.settings.sections import WorkSettings
from fakes import FakeEngine, VirtualClock, make_live_call
from opened_apps import OpenApp, crashed

ANSWER = "Anything else?"
REQUEST = {"kind": "task", "title": "Call the plumber"}


class LiveLine(Protocol):
    """A call under way, whoever speaks for the agent."""

    @property
    def call(self) -> LiveCall: ...

    async def say(self, text: str) -> None: ...

    async def request(self, text: str) -> None:
        """The caller says something that the agent takes down."""
        ...

    async def end(self, reason: str) -> None: ...


class AnsweredLine:
    """Our own engine answers."""

    def __init__(self, app: App) -> None:
        self._engine = FakeEngine()
        self._parts = replace(app.phone.turn_parts, engine=self._engine)

    async def start(self, call: LiveCall) -> None:
        self._call = TurnCall(self._parts, call)
        await self._call.start()

    @property
    def call(self) -> LiveCall:
        return self._call.call

    async def say(self, text: str) -> None:
        await self._call.answer(text)

    async def request(self, text: str) -> None:
        self._engine.add_answers(AgentReply(ANSWER, taken_request=REQUEST))
        await self._call.answer(text)

    async def end(self, reason: str) -> None:
        await self._call.end(reason)


class ReportedLine:
    """An agent elsewhere answers, and reports it."""

    def __init__(self, app: App) -> None:
        self._calls = app.phone.remote_calls

    async def start(self, call: LiveCall) -> None:
        self._call: RemoteCall = await self._calls.start(RemoteStart(call))
        await self._write("agent", "Hello!")

    @property
    def call(self) -> LiveCall:
        return self._call.call

    async def say(self, text: str) -> None:
        await self._write("caller", text)
        await self._write("agent", ANSWER)

    async def request(self, text: str) -> None:
        await self._write("caller", text)
        arguments = '{"kind": "task", "title": "Call the plumber"}'
        assert "Taken down" in await self._call.run_tool("take_request", arguments, 1)
        await self._write("agent", ANSWER)

    async def end(self, reason: str) -> None:
        await self._call.end(reason)

    async def _write(self, speaker: str, text: str) -> None:
        sent = {"seq": self._call.turns + 1, "speaker": speaker, "text": text}
        await self._call.write_turns([SentTurn.model_validate(sent)])


@pytest.fixture(params=[AnsweredLine, ReportedLine])
def kind(request: pytest.FixtureRequest) -> type[AnsweredLine | ReportedLine]:
    made: type[AnsweredLine | ReportedLine] = request.param
    return made


async def ring(
    app: App, kind: type[AnsweredLine | ReportedLine], **fields: object
) -> AnsweredLine | ReportedLine:
    line = kind(app)
    await line.start(make_live_call(started_at=app.clock.now(), **fields))
    return line


def read_sealed(app: App, line: LiveLine) -> Call:
    row = app.store.get(line.call.id)
    assert row.state == "sealed"
    return app.archive.read(str(row.archive_name))[0]


def words(call: Call) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in call.turns]


async def test_what_was_said_is_sealed_as_it_was_said(
    app: App, kind: type[AnsweredLine | ReportedLine]
) -> None:
    line = await ring(app, kind)
    await line.say("Hi.")
    await line.end("caller_hung_up")
    sealed = read_sealed(app, line)
    assert words(sealed) == [("agent", "Hello!"), ("caller", "Hi."), ("agent", ANSWER)]
    assert sealed.end_reason == "caller_hung_up"


async def test_words_are_on_disk_when_they_are_acknowledged(
    app: App, kind: type[AnsweredLine | ReportedLine]
) -> None:
    line = await ring(app, kind)
    await line.say("Hi.")
    assert len(app.store.list_entries(line.call.id)) == 3
    await line.end("caller_hung_up")


async def test_ringing_back_inside_the_window_joins_the_conversation(
    app: App, clock: VirtualClock, kind: type[AnsweredLine | ReportedLine]
) -> None:
    first = await ring(app, kind)
    await first.say("Hi.")
    await first.end("interrupted")
    clock.move(299)
    second = await ring(app, kind)
    await second.end("caller_hung_up")
    clock.move(301)
    third = await ring(app, kind)
    await third.end("caller_hung_up")
    assert read_sealed(app, second).resumes == first.call.id
    assert read_sealed(app, second).conversation == first.call.id
    assert read_sealed(app, third).resumes is None


async def test_another_name_belongs_to_another_person(
    app: App, clock: VirtualClock, kind: type[AnsweredLine | ReportedLine]
) -> None:
    for said in ("This is Tom.", "This is Anna, not Tom."):
        line = await ring(app, kind)
        await line.say(said)
        await line.end("caller_hung_up")
        for step in STEPS:
            app.step_runner.run(line.call.id, step)
        clock.move(4_000)
    sealed = read_sealed(app, line)
    assert [(event.kind, event.data) for event in sealed.events] == [
        ("caller.named", {"person": "anna"})
    ]
    assert app.store.get_decided_party(line.call.id) == "+15550100#anna"


async def test_the_spoken_passcode_is_checked_during_the_call(
    settings: Settings,
    clock: VirtualClock,
    open_app: OpenApp,
    kind: type[AnsweredLine | ReportedLine],
) -> None:
    work = WorkSettings(passcode=SecretStr("blue heron seventeen"))
    app = open_app(settings.model_copy(update={"work": work}), clock)
    line = await ring(app, kind)
    await line.say("The passcode is red heron seventeen.")
    await line.say("The passcode is blue heron seventeen.")
    await line.end("caller_hung_up")
    events = [event.kind for event in read_sealed(app, line).events]
    assert events == ["passcode.wrong", "passcode.right"]


async def test_a_request_taken_down_is_sealed_with_the_call(
    app: App, kind: type[AnsweredLine | ReportedLine]
) -> None:
    line = await ring(app, kind)
    await line.request("Please call the plumber.")
    await line.end("caller_hung_up")
    [event] = read_sealed(app, line).events
    assert event.kind == "request.taken"
    assert event.data.items() >= REQUEST.items()


async def test_a_database_that_goes_away_costs_no_word(
    app: App,
    clock: VirtualClock,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[AnsweredLine | ReportedLine],
) -> None:
    line = await ring(app, kind)
    with monkeypatch.context() as away:

        def fail(self: JournalInserter, entries: object) -> None:
            raise DatabaseUnreachable("no connection")

        away.setattr(JournalInserter, "write", fail)
        await line.say("Hi.")
    await line.end("caller_hung_up")
    while app.store.get(line.call.id).state != "sealed":
        await clock.advance(1)
    assert words(read_sealed(app, line))[1:] == [("caller", "Hi."), ("agent", ANSWER)]


async def test_the_call_of_a_dead_process_is_sealed_as_interrupted(
    app: App, kind: type[AnsweredLine | ReportedLine]
) -> None:
    with crashed(app) as other:
        line = await ring(other, kind)
        await line.say("Hi.")
        await other.journal.close()
    assert recover(app.journal).sealed == (line.call.id,)
    sealed = read_sealed(app, line)
    assert (sealed.end_reason, len(sealed.turns)) == ("interrupted", 3)
