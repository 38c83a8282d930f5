"""The receptionist on raw audio through the emulated phone network: nobody else listens or
speaks, and the archive holds the call.
"""

from pathlib import Path

import pytest

from aftercall.bridge.agent_voice import load_clip
from aftercall.bridge.state import GO_ON
from aftercall.errors import EngineLost
from aftercall.lab.speech import LabSynthesiser, make_lab_speech_kit
from aftercall.settings.sections import ReceptionistSettings
from aftercall.speech.kit import SpeechKit
from voice_server import noted, serving_aloud, told

GREETING = ReceptionistSettings().greeting


async def test_a_caller_is_heard_answered_and_let_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving_aloud(tmp_path, make_lab_speech_kit()) as stage:
        ring, phone = await stage.ring()
        await phone.wait_for_words(GREETING)
        await phone.say("Please remind me to call the dentist on Friday.")
        heard = await phone.wait_for_words("call the dentist")
        await phone.say("That's all, bye!")
        await phone.wait_for_words("Goodbye!")
        await stage.twilio.wait_for_hang_up(ring)
        call = await stage.sealed()
    assert [speaker for speaker, _ in told(call)] == [
        "agent",
        "caller",
        "agent",
        "caller",
        "agent",
    ]
    assert told(call)[1] == (
        "caller",
        "Please remind me to call the dentist on Friday.",
    )
    assert told(call)[2] == ("agent", heard)
    assert (call.end_reason, call.metadata["stream_sid"][:2]) == ("agent_hung_up", "MZ")
    shown = capsys.readouterr()
    assert "dentist" not in shown.out + shown.err


async def test_an_interrupted_voice_stops_and_the_transcript_has_what_was_heard(
    tmp_path: Path,
) -> None:
    async with serving_aloud(tmp_path, make_lab_speech_kit(), speed=3.0) as stage:
        ring, phone = await stage.ring()
        await phone.wait_for_audio(12_000)
        phone.queue_text("Please call the plumber.")
        await phone.wait_for_words("plumber")
        await stage.twilio.hang_up(ring)
        call = await stage.sealed()
    assert phone.clear_count == 1
    (_, kept), (_, said), *_ = told(call)
    assert GREETING.startswith(kept)
    assert kept != GREETING
    assert said == "Please call the plumber."
    assert noted(call, "barge_in")[0]["said"] == GREETING


class FailingEar:
    """Fails so many times, then hears."""

    def __init__(self, times: int) -> None:
        self._times = times
        self._organs = make_lab_speech_kit()

    async def recognise(self, sound: bytes) -> str:
        self._times -= 1
        if self._times >= 0:
            raise EngineLost("gone")
        return await self._organs.recogniser.recognise(sound)


async def test_an_ear_that_fails_once_costs_one_sentence_and_twice_an_apology(
    tmp_path: Path,
) -> None:
    for times, end in ((1, "caller_hung_up"), (2, "engine_lost")):
        async with serving_aloud(
            tmp_path / str(times), SpeechKit(FailingEar(times), LabSynthesiser())
        ) as stage:
            ring, phone = await stage.ring()
            await phone.wait_for_words(GREETING)
            await phone.say("My name is Ada.")
            await phone.wait_for_words(GO_ON)
            await phone.say("Please call the plumber.")
            if times == 1:
                await phone.wait_for_words("plumber")
                await stage.twilio.hang_up(ring)
            else:
                await phone.wait_for_audio(
                    phone.played_bytes + len(load_clip("apology").audio)
                )
                await stage.twilio.wait_for_hang_up(ring)
            call = await stage.sealed()
        assert call.end_reason == end
        assert len(noted(call, "engine.lost")) == times
