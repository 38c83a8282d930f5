"""Every way in which an engine fails a caller, on every engine and carrier: they hear something
within five seconds, and are kept.

The engines are emulated ones behind the real adapters; the call runs on virtual time, which
stands still while sockets work.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from pydantic import SecretStr

from aftercall.app import App
from aftercall.bridge.agent_voice import load_clip
from aftercall.bridge.state import GO_ON
from aftercall.engine.deepgram_agent import DeepgramAgent
from aftercall.engine.openai_realtime import OpenAIRealtime
from aftercall.engine.voice import VoiceEngine
from aftercall.lab.deepgram import EmulatedDeepgram
from aftercall.lab.engine import (
    EmulatedEngine,
    EngineBehaviour,
    Reply,
    ScriptDrop,
    ScriptSilence,
    reply_in_order,
)
from aftercall.lab.speech import utter
from aftercall.settings.providers import DeepgramSettings, OpenAISettings
from aftercall.settings.sections import ReceptionistSettings
from aftercall.speech.sound import FRAME_BYTES, SILENCE
from fakes import VirtualClock
from voice_rig import Rig
from voice_server import ENGINES, KEY, emulate

GREETING, APOLOGY, HOLD_ON = (
    ReceptionistSettings().greeting,
    load_clip("apology").text,
    load_clip("one_moment").text,
)
PATIENCE_S = 5.0
ASKED = "Where is my order?"


def engine_of(server: EmulatedEngine, key: str) -> VoiceEngine:
    if isinstance(server, EmulatedDeepgram):
        return DeepgramAgent(DeepgramSettings(api_key=SecretStr(key), url=server.url))
    return OpenAIRealtime(
        OpenAISettings(api_key=SecretStr(key), base_url=f"http://{server.address}/v1")
    )


@dataclass(frozen=True)
class Trouble:
    """What goes wrong, and what the caller hears of it.

    `heard` is everything the agent said, in order.
    """

    heard: list[str]
    behaviours: tuple[EngineBehaviour, ...] = ()
    key: str = KEY
    reply: Reply | None = None
    """None: it goes wrong before anybody has spoken."""
    refuses_later: bool = False
    end_reason: str = "engine_lost"
    notes: list[str] = field(default_factory=lambda: ["engine.lost"])


TROUBLES = {
    "the key is refused": Trouble([APOLOGY], key="another-key"),
    "the socket opens and nothing comes": Trouble([APOLOGY], (EngineBehaviour.MUTE,)),
    "the settings are taken and nothing comes": Trouble(
        [APOLOGY], (EngineBehaviour.DEAF,)
    ),
    "it drops and comes back": Trouble(
        [GREETING, GO_ON], reply=ScriptDrop(), end_reason="caller_hung_up"
    ),
    "it drops and is mute when asked back": Trouble(
        [GREETING, APOLOGY],
        (EngineBehaviour.FINE, EngineBehaviour.MUTE),
        reply=ScriptDrop(),
        notes=["engine.lost"] * 2,
    ),
    "it drops and is deaf when asked back": Trouble(
        [GREETING, APOLOGY],
        (EngineBehaviour.FINE, EngineBehaviour.DEAF),
        reply=ScriptDrop(),
        notes=["engine.lost"] * 2,
    ),
    "it drops and refuses the key it knew": Trouble(
        [GREETING, APOLOGY],
        reply=ScriptDrop(),
        refuses_later=True,
        notes=["engine.lost"] * 2,
    ),
    "it hears and never answers": Trouble(
        [GREETING, HOLD_ON],
        reply=ScriptSilence(),
        end_reason="caller_hung_up",
        notes=[],
    ),
}


async def at_standstill(is_so: Callable[[], bool], rounds: int = 4_000) -> bool:
    """Whether it comes about while virtual time stands still: what sockets do, they do in real
    time.
    """
    for _ in range(rounds):
        if is_so():
            return True
        await asyncio.sleep(0.005)
    return False


async def time_to_sound(rig: Rig, before: int) -> float:
    """Virtual seconds until the line gets more sound than it had."""
    began_s = rig.clock.monotonic()
    while not await at_standstill(lambda: rig.played() > before, rounds=10):
        assert rig.clock.monotonic() - began_s < 60, "nothing was heard for a minute"
        await rig.clock.advance(0.25)
    return rig.clock.monotonic() - began_s


async def ask(rig: Rig, server: EmulatedEngine, trouble: Trouble) -> None:
    """The caller hears the greeting whole and says something; returns when the engine has heard
    it and done what it does.
    """
    length = len(utter(GREETING))
    assert await at_standstill(lambda: rig.played() == length)
    await rig.pass_time(0)
    rig.return_marks()
    await rig.pass_time(0.25)
    if trouble.refuses_later:
        server.key = "changed"
    audio = utter(ASKED) + 20 * SILENCE
    rig.line.add_frames(
        *(
            rig.side.media(audio[start : start + FRAME_BYTES])
            for start in range(0, len(audio), FRAME_BYTES)
        )
    )
    first = server.calls[0]
    assert await at_standstill(
        lambda: (
            first.heard == [ASKED]
            and (first.is_over or not isinstance(trouble.reply, ScriptDrop))
        )
    )


@pytest.mark.parametrize("carrier", ["twilio", "telnyx"])
@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
async def test_whatever_the_engine_does_the_caller_hears_something_in_time_and_is_kept(
    rigged: App, clock: VirtualClock, trouble: Trouble, name: str, carrier: str
) -> None:
    async with emulate(
        name, reply_in_order(trouble.reply or "unheard"), behaviours=trouble.behaviours
    ) as server:
        rig = Rig(rigged, clock, engine_of(server, trouble.key), carrier)
        await rig.answer()
        if trouble.reply is not None:
            await ask(rig, server, trouble)
        before = length_of(GREETING) if trouble.reply is not None else 0
        assert (
            await (
                time_to_sound(rig, before)
                if GO_ON not in trouble.heard
                else at_once(rig, before)
            )
            <= PATIENCE_S
        )
        await at_standstill(
            lambda: rig.played() == before + length_of(trouble.heard[-1]), rounds=100
        )
        rig.return_marks()
        await rig.pass_time(0.25)
        if trouble.end_reason == "caller_hung_up":
            rig.line.add_frames(rig.side.stop())
        call = await rig.sealed()
    assert rig.played() == sum(length_of(text) for text in trouble.heard)
    assert [
        turn.text for turn in call.turns if turn.speaker == "agent"
    ] == trouble.heard
    assert [turn.text for turn in call.turns if turn.speaker == "caller"] == (
        [ASKED] if trouble.reply else []
    )
    assert (call.source, call.end_reason) == (carrier, trouble.end_reason)
    assert [event.kind for event in call.events] == trouble.notes, call.events
    assert rig.hung_up == ([rig.live.id] if trouble.end_reason == "engine_lost" else [])


async def at_once(rig: Rig, before: int) -> float:
    """An engine that comes back needs no time but that of its sockets."""
    assert await at_standstill(lambda: rig.played() > before)
    return 0.0


def length_of(text: str) -> int:
    clips = {
        load_clip(name).text: len(load_clip(name).audio)
        for name in ("apology", "one_moment")
    }
    return clips.get(text) or len(utter(text))
