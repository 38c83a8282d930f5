"""The receptionist on raw audio through the emulated phone network: nobody else listens or speaks, and the archive holds the call."""

from pathlib import Path

import pytest

from aftercall.bridge.answer import GO_ON
from aftercall.bridge.clips import clip
from aftercall.errors import EngineLost
from aftercall.lab.organs import LabMouth, make_lab_organs
from aftercall.settings import ReceptionistSettings
from aftercall.speech.organs import Organs
from voice import noted, serving_aloud, told

GREETING = ReceptionistSettings().greeting


async def test_a_caller_is_heard_answered_and_let_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with serving_aloud(tmp_path, make_lab_organs()) as stage:
        ring, phone = await stage.ring()
        await phone.hear(GREETING)
        await phone.say("Please remind me to call the dentist on Friday.")
        heard = await phone.hear("call the dentist")
        await phone.say("That's all, bye!")
        await phone.hear("Goodbye!")
        await stage.twilio.wait_over(ring)
        call = await stage.sealed()
    assert [speaker for speaker, _ in told(call)] == ["agent", "caller", "agent", "caller", "agent"]
    assert told(call)[1] == ("caller", "Please remind me to call the dentist on Friday.")
    assert told(call)[2] == ("agent", heard)
    assert (call.end_reason, call.metadata["stream_sid"][:2]) == ("agent_hung_up", "MZ")
    shown = capsys.readouterr()
    assert "dentist" not in shown.out + shown.err


async def test_a_caller_who_interrupts_stops_the_voice_and_the_transcript_says_what_was_heard(tmp_path: Path) -> None:
    async with serving_aloud(tmp_path, make_lab_organs(), speed=3.0) as stage:
        ring, phone = await stage.ring()
        await phone.hear_audio(12_000)
        phone.begin_to_say("Please call the plumber.")
        await phone.hear("plumber")
        await stage.twilio.hang_up(ring)
        call = await stage.sealed()
    assert phone.clears == 1
    (_, kept), (_, said), *_ = told(call)
    assert GREETING.startswith(kept)
    assert kept != GREETING
    assert said == "Please call the plumber."
    assert noted(call, "barge_in")[0]["said"] == GREETING


class FailingEar:
    """Fails so many times, then hears."""

    def __init__(self, times: int) -> None:
        self._times = times
        self._organs = make_lab_organs()

    async def hear(self, sound: bytes) -> str:
        self._times -= 1
        if self._times >= 0:
            raise EngineLost("gone")
        return await self._organs.ear.hear(sound)


async def test_an_ear_that_fails_once_costs_one_sentence_and_twice_an_apology(tmp_path: Path) -> None:
    for times, end in ((1, "caller_hung_up"), (2, "engine_lost")):
        async with serving_aloud(tmp_path / str(times), Organs(FailingEar(times), LabMouth())) as stage:
            ring, phone = await stage.ring()
            await phone.hear(GREETING)
            await phone.say("My name is Ada.")
            await phone.hear(GO_ON)
            await phone.say("Please call the plumber.")
            if times == 1:
                await phone.hear("plumber")
                await stage.twilio.hang_up(ring)
            else:
                await phone.hear_audio(phone.played + len(clip("apology").audio))
                await stage.twilio.wait_over(ring)
            call = await stage.sealed()
        assert call.end_reason == end
        assert len(noted(call, "engine.lost")) == times
