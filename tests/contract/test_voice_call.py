"""One streamed call on virtual time: who waits how long for whom, and what is kept whatever
happens.
"""

import asyncio
import json

import pytest

from aftercall.app import App
from aftercall.bridge.agent_voice import load_clip
from aftercall.bridge.state import GO_ON, LONG_GOODBYE, SILENT_GOODBYE, STILL_THERE
from aftercall.engine.voice import (
    AgentAudio,
    AgentDone,
    AgentText,
    CallerBegan,
    CallerSaid,
    CallerUnclear,
    ToolCall,
)
from aftercall.errors import EngineRefused
from aftercall.journal.recorder import CallRecorder
from aftercall.model.calls import Call, Event, Turn
from fakes import FakeVoiceEngine, VirtualClock, make_live_call
from voice_rig import SECOND, Rig


def told(call: Call) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in call.turns]


@pytest.mark.parametrize("fault", [None, EngineRefused("no"), "deaf"])
async def test_a_caller_hears_something_within_five_seconds_when_no_engine_answers(
    rigged: App, clock: VirtualClock, fault: Exception | str | None
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine(fault))
    await rig.answer()
    await rig.pass_time(5)
    assert rig.played() == len(load_clip("apology").audio)
    call = await rig.sealed()
    assert (told(call), call.end_reason) == (
        [("agent", load_clip("apology").text)],
        "engine_lost",
    )
    assert rig.line.is_closed
    assert rig.hung_up == [rig.live.id]


async def test_an_engine_lost_in_the_middle_is_asked_back_with_what_was_said(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    rig.engine.session.add_events(CallerBegan("t1"), CallerSaid("t1", "I am Bill."))
    rig.engine.session.lose()
    await rig.pass_time(1)
    assert [
        (turn.speaker, turn.text) for turn in rig.engine.session.opening.history
    ] == [
        ("agent", "Hello!"),
        ("caller", "I am Bill."),
    ]
    assert rig.engine.session.opening.greeting == GO_ON
    rig.engine.session.add_events(
        AgentText("s1", GO_ON), AgentAudio("s1", SECOND), AgentDone("s1")
    )
    await rig.pass_time(0.5)
    rig.return_marks()
    await rig.pass_time(0.5)
    rig.line.add_frames(rig.side.stop())
    call = await rig.sealed()
    assert told(call) == [
        ("agent", "Hello!"),
        ("caller", "I am Bill."),
        ("agent", GO_ON),
    ]
    assert all(session.is_closed for session in rig.engine.sessions)


async def test_an_engine_that_does_not_come_back_is_apologised_for_in_time(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine("fine", None))
    await rig.answer()
    await rig.greet()
    before = rig.played()
    rig.engine.session.lose()
    await rig.pass_time(5)
    assert rig.played() == before + len(load_clip("apology").audio)
    assert (await rig.sealed()).end_reason == "engine_lost"


async def test_who_waits_for_an_answer_is_told_to_hold_on_and_a_dead_engine_is_replaced(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    before = rig.played()
    rig.engine.session.add_events(
        CallerBegan("t1"), CallerSaid("t1", "Where is my order?")
    )
    await rig.pass_time(5)
    assert rig.played() == before + len(load_clip("one_moment").audio)
    rig.return_marks()
    await rig.pass_time(11)
    assert len(rig.engine.sessions) == 2
    rig.line.add_frames(None)
    call = await rig.sealed()
    assert told(call) == [
        ("agent", "Hello!"),
        ("caller", "Where is my order?"),
        ("agent", load_clip("one_moment").text),
    ]
    assert call.end_reason == "line_lost"


async def test_a_silent_caller_is_asked_and_then_let_go(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    await rig.pass_time(14)
    assert rig.engine.session.said == []
    await rig.pass_time(2)
    assert rig.engine.session.said == [STILL_THERE]
    rig.engine.session.add_events(
        AgentText("s2", STILL_THERE), AgentAudio("s2", SECOND), AgentDone("s2")
    )
    await rig.pass_time(2)
    rig.return_marks()
    await rig.pass_time(28)
    assert rig.engine.session.said == [STILL_THERE, SILENT_GOODBYE]
    rig.engine.session.add_events(
        AgentText("s3", SILENT_GOODBYE), AgentAudio("s3", SECOND), AgentDone("s3")
    )
    await rig.pass_time(1)
    rig.return_marks()
    call = await rig.sealed()
    assert (call.end_reason, [text for _, text in told(call)]) == (
        "caller_silent",
        ["Hello!", STILL_THERE, SILENT_GOODBYE],
    )


async def test_a_caller_who_talks_is_not_taken_for_silent(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    await rig.pass_time(10)
    rig.engine.session.add_events(CallerBegan("t1"))
    await rig.pass_time(60)
    assert rig.engine.session.said == []
    rig.line.add_frames(rig.side.stop())
    await rig.sealed()


async def test_who_talks_into_the_goodbye_is_not_hung_up_on(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    rig.engine.session.add_events(
        CallerSaid("t1", "That is all."),
        AgentText("s2", "Goodbye."),
        AgentAudio("s2", SECOND),
        ToolCall("1", "end_call", ""),
    )
    await rig.pass_time(0.25)
    rig.engine.session.add_events(CallerBegan("t2"), CallerSaid("t2", "Wait!"))
    await rig.pass_time(3)
    assert not rig.line.is_closed
    rig.line.add_frames(rig.side.stop())
    call = await rig.sealed()
    assert (call.end_reason, told(call)[-1]) == ("caller_hung_up", ("caller", "Wait!"))


async def test_no_call_lasts_for_ever(rigged: App, clock: VirtualClock) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine(), max_duration_s=5)
    await rig.answer()
    await rig.greet()
    await rig.pass_time(6)
    assert rig.engine.session.said == [LONG_GOODBYE]
    # the engine does not even say it: the line is freed all the same
    call = await rig.sealed()
    assert call.end_reason == "max_duration"


async def test_an_engine_is_kept_alive_while_the_carrier_sends_nothing(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    await rig.pass_time(13)
    assert rig.engine.session.keep_alives == 1
    rig.line.add_frames(rig.side.media(b"\xff" * 160), None)
    await rig.sealed()
    assert rig.engine.session.audio == [b"\xff" * 160]


async def test_a_carrier_that_takes_nothing_any_more_is_left(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    rig.line.is_stuck = True
    # no mark goes out behind so little: the one at the end has to wait for the line,
    # too
    small = b"\x55" * 160
    rig.engine.session.add_events(
        CallerSaid("t1", "Hi."), *(AgentAudio("s2", small) for _ in range(100))
    )
    call = await rig.sealed()
    assert (call.end_reason, told(call)) == (
        "line_lost",
        [("agent", "Hello!"), ("caller", "Hi.")],
    )


async def test_what_an_interruption_cut_off_is_beside_the_transcript_not_in_it(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    rig.engine.session.add_events(
        AgentText("s1", "one two three four five six seven eight"),
        *(AgentAudio("s1", SECOND) for _ in range(4)),
    )
    rig.engine.session.add_events(AgentDone("s1"))
    await rig.pass_time(2)
    marks = [
        json.loads(frame)["mark"]["name"]
        for frame in rig.line.sent
        if '"mark"' in str(frame)
    ]
    rig.line.add_frames(rig.side.mark(marks[1]))  # two of the four seconds were played
    await rig.pass_time(0)
    rig.engine.session.add_events(CallerBegan("t1"), CallerSaid("t1", "Stop."))
    await rig.pass_time(1.5)
    assert [json.loads(frame)["event"] for frame in rig.line.sent][-1] == "clear"
    assert rig.engine.session.cuts == [("s1", 2_000)]
    rig.line.add_frames(rig.side.stop())
    call = await rig.sealed()
    assert told(call) == [("agent", "one two three four"), ("caller", "Stop.")]
    assert [event.data["said"] for event in call.events] == [
        "one two three four five six seven eight"
    ]


async def test_words_that_come_after_the_answer_stand_before_it(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    rig.engine.session.add_events(
        CallerBegan("t1"),
        AgentText("s2", "Noted."),
        AgentAudio("s2", SECOND),
        AgentDone("s2"),
    )
    await rig.pass_time(0.25)
    rig.return_marks()
    await rig.pass_time(1)
    rig.engine.session.add_events(CallerSaid("t1", "Call the plumber."))
    await rig.pass_time(5)
    assert len(rig.line.sent) == len(
        [frame for frame in rig.line.sent if "clear" not in str(frame)]
    )
    rig.line.add_frames(rig.side.stop())
    call = await rig.sealed()
    assert told(call) == [
        ("agent", "Hello!"),
        ("caller", "Call the plumber."),
        ("agent", "Noted."),
    ]


async def test_pieces_of_one_speaker_are_one_turn(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    rig.engine.session.add_events(
        CallerBegan("t1"),
        CallerSaid("t1", "Call the", 0.9),
        CallerSaid("t2", "plumber.", 0.7),
        CallerUnclear("t3"),
    )
    await rig.pass_time(2)
    rig.line.add_frames(rig.side.stop())
    call = await rig.sealed()
    assert told(call) == [("agent", "Hello!"), ("caller", "Call the plumber.")]
    assert call.turns[1].confidence == 0.7


async def test_late_words_are_waited_for_and_later_ones_attached(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    rig.engine.session.add_events(CallerBegan("t1"))
    await rig.pass_time(1)
    rig.line.add_frames(rig.side.stop())
    await rig.pass_time(1)
    rig.engine.session.add_events(
        CallerSaid("t1", "In time."),
        CallerBegan("t2"),
        AgentText("s2", "never"),
        AgentAudio("s2", SECOND),
    )
    await rig.pass_time(0.25)
    rig.engine.session.add_events(CallerSaid("t2", "Too."))
    call = await rig.sealed()
    assert told(call) == [("agent", "Hello!"), ("caller", "In time. Too.")]
    assert rig.late == ()


async def test_words_that_come_after_the_seal_are_an_addendum(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine(), drain_s=0.5)
    await rig.answer()
    await rig.greet()
    rig.engine.session.add_events(CallerBegan("t1"))
    await rig.pass_time(1)
    rig.line.add_frames(rig.side.stop())
    async with asyncio.timeout(10):
        while rigged.store.get(rig.live.id).archive_name is None:
            await rig.pass_time(0.25)
    rig.engine.session.add_events(CallerSaid("t1", "Too late."))
    call = await rig.sealed()
    assert told(call) == [("agent", "Hello!")]
    assert [
        (turn.speaker, turn.text) for turn in rig.late if isinstance(turn, Turn)
    ] == [("caller", "Too late.")]


async def test_audio_does_not_wait_for_the_disk(
    rigged: App, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = asyncio.Event()
    append = CallRecorder.append

    async def slow(record: CallRecorder, item: Turn | Event) -> None:
        await free.wait()
        await append(record, item)

    monkeypatch.setattr(CallRecorder, "append", slow)
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    before = rig.played()
    rig.engine.session.add_events(
        CallerSaid("t1", "Hi."),
        AgentText("s2", "Yes?"),
        AgentAudio("s2", SECOND),
        AgentDone("s2"),
    )
    rig.line.add_frames(rig.side.media(b"\xff" * 160))
    await rig.pass_time(3)
    assert rig.played() > before
    assert rig.engine.session.audio == [b"\xff" * 160]
    free.set()
    rig.return_marks()
    await rig.pass_time(0.25)
    rig.line.add_frames(rig.side.stop())
    assert told(await rig.sealed()) == [
        ("agent", "Hello!"),
        ("caller", "Hi."),
        ("agent", "Yes?"),
    ]


async def test_tools_are_answered_and_a_request_is_written_before_its_answer(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    rig.found = ["The plumber is Jim."]
    await rig.answer()
    await rig.greet()
    rig.engine.session.add_events(
        CallerBegan("t1"),
        CallerSaid("t1", "Who is the plumber? Call him."),
        ToolCall("1", "search_memory", '{"query":"plumber"}'),
        ToolCall("2", "take_request", '{"title":"Call the plumber","person":"Jim"}'),
        ToolCall("3", "drop_tables", "{}"),
        ToolCall("4", "take_request", "not json"),
        ToolCall("5", "end_call", ""),
    )
    async with asyncio.timeout(20):
        while len(rig.engine.session.answers) < 5:
            await rig.pass_time(0)  # the disk takes its own time
    assert sorted(
        answer.partition(".")[0] for answer in rig.engine.session.answers
    ) == [
        "Taken down",
        "That cannot be used: the arguments are not a JSON object",
        "The call ends when you have finished speaking",
        "There is no such tool",
        '["The plumber is Jim',
    ]
    call = await rig.sealed()
    assert [(event.kind, event.data) for event in call.events] == [
        (
            "request.taken",
            {"kind": "other", "title": "Call the plumber", "person": "Jim"},
        )
    ]
    assert call.end_reason == "agent_hung_up"


async def test_a_call_whose_stream_never_comes_is_sealed_all_the_same(
    rigged: App, clock: VirtualClock
) -> None:
    live = make_live_call(source="twilio")
    given = await rigged.phone.pending_calls.register(live)
    await clock.advance(121)
    await rigged.journal.close()  # waits for seals that are under way
    assert rigged.store.get(live.id).end_reason == "no_stream"
    assert (
        await rigged.phone.pending_calls.claim("twilio", live.sid, given, "MZ1") is None
    )


async def test_whatever_breaks_in_a_call_it_is_sealed(
    rigged: App, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("aftercall.bridge.state.CallTimers.find_due", fail)
    await rig.pass_time(0.5)
    call = await rig.sealed()
    assert (told(call), call.end_reason) == ([("agent", "Hello!")], "failed")


async def test_a_webhook_that_comes_twice_at_once_announces_one_call(
    rigged: App, clock: VirtualClock
) -> None:
    live = make_live_call(source="twilio")
    first, second = await asyncio.gather(
        rigged.phone.pending_calls.register(live),
        rigged.phone.pending_calls.register(live),
    )
    assert (
        await rigged.phone.pending_calls.claim("twilio", live.sid, second, "MZ1")
        is not None
    )
    assert (
        await rigged.phone.pending_calls.claim("twilio", live.sid, first, "MZ2") is None
    )
    assert len(rigged.journal.live_recorders) == 1


async def test_the_carrier_may_tell_the_end_by_webhook_alone(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    await rigged.phone.pending_calls.end("twilio", rig.live.sid, "caller_hung_up")
    assert (await rig.sealed()).end_reason == "caller_hung_up"


async def test_an_answer_knows_how_long_the_caller_waited_for_it(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    rig.engine.session.add_events(CallerBegan("t1"), CallerSaid("t1", "Are you open?"))
    await rig.pass_time(1.5)
    rig.engine.session.add_events(
        AgentText("s9", "Yes."), AgentAudio("s9", SECOND), AgentDone("s9")
    )
    await rig.pass_time(1)
    rig.return_marks()
    await rig.pass_time(1)
    rig.line.add_frames(rig.side.stop())
    call = await rig.sealed()
    delays = {turn.text: turn.delay_ms for turn in call.turns}
    assert 1_000 <= (delays["Yes."] or 0) <= 2_000
    assert delays["Are you open?"] is None


async def test_a_listener_hears_both_sides_and_when_the_agent_is_cut_off(
    rigged: App, clock: VirtualClock
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine())
    await rig.answer()
    await rig.greet()
    taps = rig.parts.taps
    assert taps.is_audible(rig.live.id)
    heard: list[bytes] = []

    async def listen() -> None:
        async for frame in taps.listen(rig.live.id):
            heard.append(frame)

    listening = asyncio.create_task(listen())
    await rig.pass_time(0.1)
    rig.engine.session.add_events(AgentAudio("s9", SECOND))
    await rig.pass_time(0.2)
    rig.engine.session.add_events(CallerBegan("t1"))
    await rig.pass_time(0.2)
    rig.line.add_frames(rig.side.media(b"\x01" * 160), rig.side.stop())
    await rig.sealed()
    await listening
    assert [frame[:1] for frame in heard] == [b"\x01", b"\x02", b"\x00"]
    assert not taps.is_audible(rig.live.id)
