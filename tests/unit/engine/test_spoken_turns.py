"""An engine of turns on raw audio: what it owes a caller who pauses, coughs, talks on, or says
goodbye.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aftercall.bridge.tools import list_tools
from aftercall.clock import Clock, SystemClock
from aftercall.engine.spoken_turns import (
    NOT_TAKEN,
    PARDON,
    SpokenTurnEngine,
    SpokenTurnSession,
)
from aftercall.engine.voice import (
    TAKEN_DOWN,
    AgentAudio,
    AgentDone,
    AgentReply,
    AgentText,
    CallerBegan,
    CallerSaid,
    CallerUnclear,
    EngineOpening,
    ToolCall,
    VoiceEvent,
)
from aftercall.errors import EngineLost
from aftercall.lab.speech import LabRecogniser, LabSynthesiser, utter
from aftercall.model.briefing import Briefing, RecentCall
from aftercall.model.calls import Turn
from aftercall.speech.kit import SpeechKit
from aftercall.speech.sound import SILENCE, encode, tone
from fakes import START, FakeEngine, VirtualClock
from voice_server import receive_until

PAUSE = SILENCE * 40
NOISE = encode(tone(300, 0.4)) + PAUSE


class SlowEar(LabRecogniser):
    """Hears when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()

    async def recognise(self, sound: bytes) -> str:
        await self.may.wait()
        return await super().recognise(sound)


@asynccontextmanager
async def session_of(
    engine: FakeEngine,
    ear: LabRecogniser | None = None,
    opening: EngineOpening | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[SpokenTurnSession]:
    aloud = SpokenTurnEngine(
        engine,
        SpeechKit(ear or LabRecogniser(), LabSynthesiser()),
        clock or SystemClock(),
    )
    session = await aloud.connect(opening or EngineOpening("", "Hello!"), list_tools())
    assert isinstance(session, SpokenTurnSession)
    try:
        yield session
    finally:
        await session.close()


def text_of(events: list[VoiceEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, AgentText))


async def test_who_pauses_and_talks_on_is_answered_once_and_to_all_of_it() -> None:
    ear, engine = SlowEar(), FakeEngine("Noted.")
    async with session_of(engine, ear) as session:
        await receive_until(session, AgentDone)
        session.send_audio(utter("Please remind me") + PAUSE)
        session.send_audio(utter("to call the dentist.") + PAUSE)
        ear.may.set()
        events = await receive_until(session, AgentDone)
    assert [event.text for event in events if isinstance(event, CallerSaid)] == [
        "Please remind me",
        "to call the dentist.",
    ]
    assert engine.heard == ["Please remind me to call the dentist."]
    assert text_of(events) == "Noted."


async def test_what_a_noise_cut_off_is_said_again() -> None:
    async with session_of(
        FakeEngine(greeting="Hello, this is a long greeting.")
    ) as session:
        await receive_until(session, AgentText)
        session.send_audio(NOISE)
        events = await receive_until(session, AgentDone)
    assert [type(event) for event in events if not isinstance(event, AgentAudio)] == [
        CallerBegan,
        CallerUnclear,
        AgentText,
        AgentDone,
    ]
    assert text_of(events) == "Hello, this is a long greeting."


async def test_a_noise_after_our_words_is_asked_about() -> None:
    clock = VirtualClock()
    async with session_of(FakeEngine(greeting="Hi"), clock=clock) as session:
        await receive_until(session, AgentDone)
        clock.move(60)  # it has been heard to its end
        session.send_audio(NOISE)
        assert text_of(await receive_until(session, AgentDone)) == PARDON


async def test_the_last_word_is_followed_by_hanging_up_unless_the_caller_talks_on() -> (
    None
):
    async with session_of(
        FakeEngine(
            AgentReply("Goodbye!", ends_call=True),
            AgentReply("Goodbye again!", ends_call=True),
        )
    ) as session:
        await receive_until(session, AgentDone)
        session.send_audio(utter("That was all.") + PAUSE)
        await receive_until(session, AgentText)
        session.send_audio(utter("One more thing.") + PAUSE)
        events = await receive_until(session, ToolCall)
    assert [event.name for event in events if isinstance(event, ToolCall)] == [
        "end_call"
    ]
    assert text_of(events) == "Goodbye again!"


@pytest.mark.parametrize(
    ("answer", "heard"),
    [(f"{TAKEN_DOWN} Go on.", "I took it down."), ("Not written.", NOT_TAKEN.text)],
)
async def test_a_claim_to_have_taken_something_down_waits_until_it_is_so(
    answer: str, heard: str
) -> None:
    taken = {"kind": "other", "title": "Question: When do you open?"}
    async with session_of(
        FakeEngine(AgentReply("I took it down.", taken_request=taken))
    ) as session:
        await receive_until(session, AgentDone)
        session.send_audio(utter("When do you open?") + PAUSE)
        tool_call = (await receive_until(session, ToolCall))[-1]
        assert isinstance(tool_call, ToolCall)
        assert (tool_call.name, json.loads(tool_call.arguments)) == (
            "take_request",
            taken,
        )
        await session.answer_tool(tool_call, answer)
        assert text_of(await receive_until(session, AgentDone)) == heard


async def test_an_answer_that_the_caller_talks_into_before_it_is_ready_never_sounds() -> (
    None
):
    engine = FakeEngine(None, "Both, then.")
    async with session_of(engine) as session:
        await receive_until(session, AgentDone)
        session.send_audio(utter("Call the plumber.") + PAUSE)
        await receive_until(session, CallerSaid)
        await engine.asked.wait()
        session.send_audio(utter("And the baker.") + PAUSE)
        events = await receive_until(session, AgentDone)
    assert text_of(events) == "Both, then."
    assert engine.heard == ["Call the plumber.", "And the baker."]


@pytest.mark.parametrize("breaks", [EngineLost("gone"), RuntimeError("broken")])
async def test_whatever_breaks_behind_it_is_an_engine_that_is_lost(
    breaks: Exception,
) -> None:
    async with session_of(FakeEngine(breaks)) as session:
        await receive_until(session, AgentDone)
        session.send_audio(utter("Hello?") + PAUSE)
        with pytest.raises(EngineLost):
            await receive_until(session, AgentDone)


async def test_a_session_begun_anew_knows_what_was_said_and_does_not_greet_again() -> (
    None
):
    briefing = Briefing("Hello!", "Ada", (RecentCall(START, "Asked for a plumber."),))
    turns = [Turn(seq=1, speaker="caller", text="Call the plumber.", at=START)]
    engine = FakeEngine()
    async with session_of(
        engine, opening=EngineOpening("", "Go on.", turns, briefing)
    ) as session:
        assert text_of(await receive_until(session, AgentDone)) == "Go on."
    told = engine.briefings[0]
    assert told.recent == briefing.recent
    assert told.pick_up is not None
    assert told.pick_up.turns == tuple(turns)
