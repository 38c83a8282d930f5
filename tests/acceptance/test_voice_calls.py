"""Streamed calls through the emulated phone network: what was said and heard is what the archive holds."""

from pathlib import Path

import pytest

from aftercall.lab.deepgram import EmulatedDeepgram
from aftercall.lab.script import in_order
from aftercall.lab.twilio import EmulatedTwilio
from voice import KEY, TOKEN, sealed_call, serving, told

GREETING = "Hello! I'm the assistant. What can I do for you?"
SPEED = 10.0


async def test_a_twilio_call_to_deepgram_is_kept_as_it_was_said_and_heard(tmp_path: Path) -> None:
    script = in_order("Which one do you mean?", "I have taken that down.")
    async with EmulatedDeepgram(KEY, script) as engine, serving(tmp_path, deepgram=engine.url) as (app, address):
        async with EmulatedTwilio(TOKEN, speed=SPEED) as twilio:
            ring = await twilio.ring(f"{address}/twilio/voice", caller="+15550100", status_url=f"{address}/twilio/status")
            assert ring.phone is not None
            await ring.phone.hear("What can I do")
            await ring.phone.say("Please open a bug.")
            await ring.phone.hear("Which one")
            await ring.phone.say("The thumbnails.")
            await ring.phone.hear("taken that down")
            await twilio.hang_up(ring)
        call = await sealed_call(app)
    assert told(call) == [
        ("agent", GREETING),
        ("caller", "Please open a bug."),
        ("agent", "Which one do you mean?"),
        ("caller", "The thumbnails."),
        ("agent", "I have taken that down."),
    ]
    assert (call.source, call.sid, call.caller, call.end_reason) == ("twilio", ring.sid, "+15550100", "caller_hung_up")
    assert [turn.at for turn in call.turns] == sorted(turn.at for turn in call.turns)
