"""One event means one thing on every engine of streamed audio: each adapter against its
emulated server.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import SecretStr

from aftercall.bridge.tools import list_tools
from aftercall.clock import SystemClock
from aftercall.engine.deepgram_agent import DeepgramAgent
from aftercall.engine.openai_realtime import OpenAIRealtime, socket_url
from aftercall.engine.spoken_turns import SpokenTurnEngine
from aftercall.engine.voice import (
    AgentAudio,
    AgentDone,
    AgentReply,
    AgentText,
    CallerBegan,
    CallerSaid,
    EngineOpening,
    ToolCall,
    VoiceEngine,
    VoiceEvent,
    VoiceSession,
)
from aftercall.errors import EngineLost, EngineRefused
from aftercall.lab.deepgram import EmulatedDeepgram
from aftercall.lab.engine import (
    Act,
    EmulatedEngine,
    EngineCall,
    Script,
    ScriptDrop,
    ScriptSay,
    ScriptToolCall,
    reply_in_order,
)
from aftercall.lab.speech import ToneDetector, make_lab_speech_kit, utter
from aftercall.model.briefing import Briefing
from aftercall.model.calls import Turn
from aftercall.settings.providers import DeepgramSettings, OpenAISettings
from aftercall.speech.sound import SILENCE
from fakes import START
from voice_server import ENGINES, KEY, emulate, receive_until

OPENING = EngineOpening("Be brief.", "Hello there!")
PAUSE = 40 * SILENCE
ON_ITS_OWN = "aloud"
"""An engine of turns with an ear and a mouth: no server behind it, no key, and no tool but to
hang up.
"""
every = pytest.mark.parametrize("name", [*ENGINES, ON_ITS_OWN])
remote = pytest.mark.parametrize("name", ENGINES)


class Scripted:
    """A turn engine that answers by a script."""

    def __init__(self, script: Script) -> None:
        self.calls = [EngineCall()]
        self._script = script

    async def connect(self, briefing: Briefing) -> "Scripted":
        self._briefing = briefing
        return self

    async def greet(self) -> AgentReply:
        return AgentReply(self._briefing.first_words)

    async def answer(self, said: str) -> AgentReply:
        self.calls[0].heard.append(said)
        match self._script(said):
            case str(text):
                return AgentReply(text, ends_call="bye" in text)
            case _:
                raise EngineLost("dropped")

    async def update_briefing(self, briefing: Briefing, *, is_another: bool) -> None:
        self._briefing = briefing

    async def close(self) -> None:
        self.calls[0].is_over = True


def engine_of(server: EmulatedEngine, key: str = KEY) -> VoiceEngine:
    if isinstance(server, EmulatedDeepgram):
        return DeepgramAgent(DeepgramSettings(api_key=SecretStr(key), url=server.url))
    return OpenAIRealtime(
        OpenAISettings(api_key=SecretStr(key), base_url=f"http://{server.address}/v1")
    )


@asynccontextmanager
async def session_of(
    name: str, script: Script, opening: EngineOpening = OPENING, **options: Any
) -> AsyncIterator[tuple[VoiceSession, EmulatedEngine | Scripted]]:
    if name == ON_ITS_OWN:
        scripted = Scripted(script)
        session = await SpokenTurnEngine(
            scripted, make_lab_speech_kit(), SystemClock()
        ).connect(opening, list_tools())
        yield session, scripted
        await session.close()
        return
    async with emulate(name, script, **options) as server:
        session = await engine_of(server).connect(opening, list_tools())
        try:
            yield session, server
        finally:
            await session.close()


def spoken(events: list[VoiceEvent]) -> tuple[str, str]:
    """A speech as it was written and as it sounded."""
    ear = ToneDetector()
    for event in events:
        if isinstance(event, AgentAudio):
            list(ear.detect(event.payload))
    return "".join(
        event.text for event in events if isinstance(event, AgentText)
    ), ear.finish()


@every
async def test_the_greeting_comes_first_whole_and_with_one_name(name: str) -> None:
    async with session_of(name, reply_in_order()) as (session, _):
        events = await receive_until(session, AgentDone)
    assert spoken(events) == ("Hello there!", "Hello there!")
    assert (
        len(
            {
                event.speech
                for event in events
                if isinstance(event, AgentAudio | AgentText | AgentDone)
            }
        )
        == 1
    )


@every
async def test_what_the_caller_says_is_heard_and_answered(name: str) -> None:
    async with session_of(name, reply_in_order("Which one?")) as (session, server):
        await receive_until(session, AgentDone)
        session.send_audio(utter("Open a bug.") + PAUSE)
        events = await receive_until(session, AgentDone)
    began = next(event for event in events if isinstance(event, CallerBegan))
    said = next(event for event in events if isinstance(event, CallerSaid))
    assert (began.turn, said.text) == (said.turn, "Open a bug.")
    assert spoken(events)[0] == "Which one?"
    assert server.calls[0].heard == ["Open a bug."]


@every
async def test_nothing_of_an_interrupted_speech_follows_the_interruption(
    name: str,
) -> None:
    long = " ".join(["word"] * 400)
    async with session_of(name, reply_in_order(long, "Yes?")) as (session, _):
        await receive_until(session, AgentDone)
        session.send_audio(utter("Go.") + PAUSE)
        before = await receive_until(session, AgentAudio)
        old = {event.speech for event in before if isinstance(event, AgentAudio)}
        session.send_audio(utter("Stop.") + PAUSE)
        events = await receive_until(session, CallerBegan)
        after = events[
            next(
                i for i, event in enumerate(events) if isinstance(event, CallerBegan)
            ) :
        ]
        after += await receive_until(session, AgentDone)
    assert (
        not {
            event.speech
            for event in after
            if isinstance(event, AgentAudio | AgentText | AgentDone)
        }
        & old
    )
    assert spoken(after) == ("Yes?", "Yes?")


@remote
async def test_a_tool_is_asked_for_and_its_answer_used(name: str) -> None:
    asking: list[Act] = [
        ScriptToolCall("search_memory", {"query": "pipes"}),
        ScriptSay("Nothing."),
    ]
    async with session_of(name, reply_in_order(asking)) as (session, server):
        await receive_until(session, AgentDone)
        session.send_audio(utter("Look it up.") + PAUSE)
        events = await receive_until(session, ToolCall)
        call = next(event for event in events if isinstance(event, ToolCall))
        assert (call.name, call.arguments) == ("search_memory", '{"query": "pipes"}')
        await session.answer_tool(call, "Nothing was found.")
        events = await receive_until(session, AgentDone)
    assert spoken(events)[0] == "Nothing."
    assert [answer for _, answer in server.calls[0].tool_results] == [
        "Nothing was found."
    ]


@every
async def test_the_agent_can_be_made_to_say_something(name: str) -> None:
    async with session_of(name, reply_in_order()) as (session, server):
        await receive_until(session, AgentDone)
        await asyncio.sleep(0.05)  # the emulated agent must have put its tongue to rest
        await session.say("Are you still there?")
        assert (
            spoken(await receive_until(session, AgentDone))[0] == "Are you still there?"
        )
        await session.keep_alive()
        await session.truncate_speech("unknown", 100)
    assert server.calls[0].error_codes == []


@every
async def test_a_session_can_begin_with_what_was_said_before(name: str) -> None:
    turns = [
        Turn(seq=1, speaker="agent", text="Hello!", at=START),
        Turn(seq=2, speaker="caller", text="Hi.", at=START),
    ]
    async with session_of(
        name, reply_in_order(), EngineOpening("Be brief.", "Go on.", turns)
    ) as (
        session,
        server,
    ):
        assert spoken(await receive_until(session, AgentDone))[0] == "Go on."
    assert server.calls[0].error_codes == []


@remote
async def test_a_wrong_key_is_refused_for_good(name: str) -> None:
    async with emulate(name, reply_in_order()) as server:
        with pytest.raises(EngineRefused, match="401"):
            await engine_of(server, "wrong").connect(OPENING, list_tools())


@remote
async def test_an_engine_that_is_not_there_is_lost(name: str) -> None:
    async with emulate(name, reply_in_order()) as server:
        engine = engine_of(server)
    with pytest.raises(EngineLost):
        await engine.connect(OPENING, list_tools())


@every
async def test_an_engine_that_drops_is_lost(name: str) -> None:
    async with session_of(name, reply_in_order(ScriptDrop())) as (session, _):
        await receive_until(session, AgentDone)
        session.send_audio(utter("Hello.") + PAUSE)
        with pytest.raises(EngineLost):
            await receive_until(session, AgentDone)


@every
async def test_what_was_spoken_is_in_no_repr(name: str) -> None:
    async with session_of(name, reply_in_order("Canary.")) as (session, _):
        await receive_until(session, AgentDone)
        session.send_audio(utter("Canary.") + PAUSE)
        assert "Canary" not in repr(await receive_until(session, AgentDone))


def test_the_realtime_address_follows_the_api_address() -> None:
    assert (
        socket_url(OpenAISettings())
        == "wss://api.openai.com/v1/realtime?model=gpt-realtime"
    )
    assert (
        socket_url(OpenAISettings(base_url="http://127.0.0.1:9/v1/"))
        == "ws://127.0.0.1:9/v1/realtime?model=gpt-realtime"
    )
