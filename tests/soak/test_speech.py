"""Real speech on this machine, nothing emulated but the phone network: `make soak`."""

import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from aftercall.app import App, build
from aftercall.clock import SystemClock
from aftercall.lab.speech import make_voice
from aftercall.settings import Settings
from aftercall.settings.providers import TwilioSettings
from aftercall.settings.sections import BridgeSettings, ReceptionistSettings
from aftercall.speech.kit import find_missing
from aftercall.tester.phrases import word_error_rate
from voice_server import TOKEN, noted, staged, told

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("AFTERCALL_SOAK"),
        reason="slow: `make soak` brings the model",
    ),
    pytest.mark.skipif(
        find_missing() is not None,
        reason=f"{find_missing()}: there may be no wheel for this machine",
    ),
]
WORDS = "Please remind me to call the dentist on Friday"


def make_app(home: Path, address: str) -> App:
    settings = Settings(
        home=home,
        public_url=address,
        twilio=TwilioSettings(auth_token=SecretStr(TOKEN)),
        receptionist=ReceptionistSettings(speech=True),
        bridge=BridgeSettings(drain_s=3.0),
    )
    app = build(settings, SystemClock())
    app.warm_up()
    return app


async def test_a_spoken_request_is_heard_answered_aloud_and_archived(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with staged(lambda address: make_app(tmp_path, address), 1.0) as stage:
        ring, phone = await stage.ring()
        await phone.wait_for_silence(0)
        greeted = len(phone.played_audio)
        await phone.send_audio(await make_voice("espeak")(WORDS))
        await phone.wait_for_silence(greeted)
        answer = bytes(phone.played_audio[greeted:])
        assert stage.app.speech_kit is not None
        understood = await stage.app.speech_kit.recogniser.recognise(answer)
        await stage.twilio.hang_up(ring)
        call = await stage.sealed()
    (_, greeting), (speaker, heard), (_, said), *_ = told(call)
    rate = word_error_rate(WORDS, heard)
    with capsys.disabled():
        print(
            f"\n  said     {WORDS}\n  heard    {heard}\n  word error rate {rate:.2f}\n  "
            f"answered {said}\n  which sounds like: {understood}"
        )
    assert (speaker, call.end_reason) == ("caller", "caller_hung_up")
    assert greeting == ReceptionistSettings().greeting
    assert rate <= 0.35
    assert word_error_rate(said, understood) <= 0.6
    assert "remind" in heard.lower()
    assert "remind" in said.lower() or "taken" in said.lower()


async def test_a_caller_who_talks_into_the_greeting_stops_it(tmp_path: Path) -> None:
    async with staged(lambda address: make_app(tmp_path, address), 1.0) as stage:
        ring, phone = await stage.ring()
        await phone.wait_for_audio(8_000)
        phone.queue_audio(await make_voice("espeak")(WORDS))
        await phone.wait_for_silence(len(phone.played_audio) + 16_000)
        await stage.twilio.hang_up(ring)
        call = await stage.sealed()
    greeting = ReceptionistSettings().greeting
    assert phone.clear_count == 1
    assert greeting.startswith(told(call)[0][1])
    assert told(call)[0][1] != greeting
    assert noted(call, "barge_in")[0]["said"] == greeting
