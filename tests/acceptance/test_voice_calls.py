"""Streamed calls through the emulated phone network: what was said and heard is what the
archive holds.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from aftercall.bridge.agent_voice import load_clip
from aftercall.bridge.state import GO_ON
from aftercall.briefing.composer import fill_cache
from aftercall.lab.engine import (
    Act,
    EngineBehaviour,
    ScriptDrop,
    ScriptSay,
    ScriptToolCall,
    reply_in_order,
)
from aftercall.lab.media import MediaPhone
from aftercall.llm.rules.reader import RulesReader
from aftercall.phone.carrier_frames import TelnyxFrames, TwilioFrames
from aftercall.phone.signature import TOKEN_PARAMETER
from aftercall.postcall.runner import rerun
from aftercall.postcall.steps import STEPS
from aftercall.settings.sections import ReceptionistSettings
from aftercall.web.twilio import CUT_OFF
from fakes import make_call, make_live_call
from voice_server import ENGINES, SPEED, emulate, noted, serving, told

GREETING = ReceptionistSettings().greeting
LONG = (
    "There are three of them and the first is the one with the broken picture on the page "
    "about the gallery of last year"
)

pytestmark = pytest.mark.parametrize("name", ENGINES)


async def test_a_call_is_kept_as_it_was_said_and_heard(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = emulate(
        name, reply_in_order("Which one do you mean?", "I have taken that down.")
    )
    async with serving(tmp_path, engine) as stage:
        ring, phone = await stage.ring()
        await phone.wait_for_words("What can I do")
        await phone.say("Please open a bug.")
        await phone.wait_for_words("Which one")
        await phone.say("The thumbnails.")
        await phone.press("7")
        await phone.wait_for_words("taken that down")
        await stage.twilio.hang_up(ring)
        call = await stage.sealed()
    assert told(call) == [
        ("agent", GREETING),
        ("caller", "Please open a bug."),
        ("agent", "Which one do you mean?"),
        ("caller", "The thumbnails."),
        ("agent", "I have taken that down."),
    ]
    assert [text for speaker, text in told(call) if speaker == "agent"] == phone.heard
    assert (call.source, call.sid, call.caller, call.end_reason) == (
        "twilio",
        ring.sid,
        "+15550100",
        "caller_hung_up",
    )
    assert [turn.at for turn in call.turns] == sorted(turn.at for turn in call.turns)
    assert call.metadata["stream_sid"].startswith("MZ")
    assert noted(call, "key.pressed") == [{"digit": "7"}]
    assert engine.calls[0].is_over
    shown = capsys.readouterr()
    assert not [
        word
        for word in ("thumbnails", "taken that down", "15550100")
        if word in shown.out + shown.err
    ]


async def test_who_rings_back_in_time_is_picked_up_where_they_were(
    tmp_path: Path, name: str
) -> None:
    engine = emulate(name, reply_in_order("Which plumber?", "Noted."))
    async with serving(tmp_path, engine) as stage:
        ring, phone = await stage.ring()
        await phone.wait_for_words("What can I do")
        await phone.say("Call the plumber.")
        await phone.wait_for_words("Which plumber?")
        await stage.twilio.hang_up(ring, sends_stop=False)
        first = await stage.sealed()
        again, phone = await stage.ring()
        await phone.wait_for_words("Welcome back.")
        await phone.say("Jim.")
        await phone.wait_for_words("Noted.")
        await stage.twilio.hang_up(again)
        second = await stage.sealed()
    assert (second.resumes, second.conversation) == (first.id, first.id)
    assert told(second) == [
        ("agent", "Welcome back. Please go on."),
        ("caller", "Jim."),
        ("agent", "Noted."),
    ]
    assert "Which plumber?" in str(engine.calls[1].settings)


async def test_an_engine_is_told_what_earlier_calls_were_about(
    tmp_path: Path, name: str
) -> None:
    engine = emulate(name, reply_in_order("You had the Tesla booked in."))
    async with serving(tmp_path, engine) as stage:
        said = [
            ("agent", "Hello!"),
            (
                "caller",
                "This is Ann. Please book the Tesla in for its service on Tuesday.",
            ),
        ]
        earlier = make_call(said, started_at=stage.app.clock.now() - timedelta(hours=2))
        await asyncio.to_thread(stage.app.journal.ingest, earlier)
        # the key for speaking reads nothing
        by_rules = replace(stage.app, reader=RulesReader())
        for step in STEPS:
            await asyncio.to_thread(rerun, by_rules.step_runner, earlier.id, step)
        await asyncio.to_thread(fill_cache, stage.app.composer)
        ring, phone = await stage.ring()
        await phone.wait_for_words("Hey Ann")
        await phone.say("What did we talk about?")
        await phone.wait_for_words("Tesla")
        await stage.twilio.hang_up(ring)
    assert "book the Tesla in for its service on Tuesday" in str(
        engine.calls[0].settings
    )


async def test_words_that_are_written_down_late_stand_where_they_were_said(
    tmp_path: Path, name: str
) -> None:
    options = {"behaviours": (EngineBehaviour.LATE,)} if name == "openai" else {}
    async with serving(
        tmp_path, emulate(name, reply_in_order("Which one?"), **options)
    ) as stage:
        ring, phone = await stage.ring()
        await phone.wait_for_words("What can I do")
        await phone.say("Open a bug.")
        await phone.wait_for_words("Which one?")
        await stage.twilio.hang_up(ring)
        assert told(await stage.sealed()) == [
            ("agent", GREETING),
            ("caller", "Open a bug."),
            ("agent", "Which one?"),
        ]


async def test_an_interrupted_speech_is_kept_as_far_as_it_was_heard(
    tmp_path: Path, name: str
) -> None:
    engine = emulate(name, reply_in_order("All right."))
    async with serving(tmp_path, engine, speed=1.0) as stage:
        ring, phone = await stage.ring()
        await phone.wait_for_audio(12_000)
        phone.queue_text("Stop.")
        await phone.wait_for_words("All right.")
        await stage.twilio.hang_up(ring)
        call = await stage.sealed()
    assert phone.clear_count == 1
    (_, kept), *rest = told(call)
    assert rest == [("caller", "Stop."), ("agent", "All right.")]
    assert GREETING.startswith(kept)
    assert kept != GREETING
    assert abs(len(kept.split()) - len(phone.heard[0].split())) <= 1
    assert [event["said"] for event in noted(call, "barge_in")] == [GREETING]
    if name == "openai":
        assert len(engine.calls[0].truncations) == 1
        assert engine.calls[0].error_codes == []


async def test_what_was_not_heard_before_the_hang_up_is_not_in_the_transcript(
    tmp_path: Path, name: str
) -> None:
    async with serving(tmp_path, emulate(name, reply_in_order(LONG))) as stage:
        ring, phone = await stage.ring()
        await phone.wait_for_words("What can I do")
        await phone.say("Tell me.")
        await phone.wait_for_audio(phone.played_bytes + 16_000)
        await stage.twilio.hang_up(ring, sends_stop=name == "openai")
        call = await stage.sealed()
    kept = told(call)[-1][1]
    assert LONG.startswith(kept)
    assert 0 < len(kept) < len(LONG)
    assert call.end_reason == ("caller_hung_up" if name == "openai" else "line_lost")


async def test_a_request_is_durable_before_the_agent_confirms_it_and_the_agent_may_hang_up(
    tmp_path: Path, name: str
) -> None:
    taking: list[Act] = [
        ScriptToolCall(
            "take_request",
            {"kind": "task", "title": "Call the plumber", "due": "2026-02-20"},
        ),
        ScriptSay("Taken down."),
    ]
    ending: list[Act] = [
        ScriptToolCall("search_memory", {"query": "pipes"}),
        ScriptToolCall("take_request", {"titel": "x"}),
        ScriptSay("Goodbye."),
        ScriptToolCall("end_call"),
    ]
    engine = emulate(name, reply_in_order(taking, ending))
    async with serving(tmp_path, engine) as stage:
        ring, phone = await stage.ring()
        await phone.wait_for_words("What can I do")
        await phone.say("Please call the plumber.")
        await phone.wait_for_words("Taken down.")
        (record,) = stage.app.journal.live_recorders
        assert [
            entry.kind for entry in stage.app.store.list_entries(record.call.id)
        ].count("event") == 1
        await phone.say("That is all.")
        await stage.twilio.wait_for_hang_up(ring)
        call = await stage.sealed()
    assert noted(call, "request.taken") == [
        {"kind": "task", "title": "Call the plumber", "due": "2026-02-20"}
    ]
    assert (call.end_reason, told(call)[-1]) == ("agent_hung_up", ("agent", "Goodbye."))
    answers = [answer for _, answer in engine.calls[0].tool_results]
    assert answers[0].startswith("Taken down.")
    assert answers[1].startswith("Nothing was found")
    assert answers[2] == "That cannot be used: title: is missing."
    assert (ring.state, ring.fault) == ("completed", None)
    assert CUT_OFF not in ring.heard


async def test_an_engine_that_drops_is_asked_back_once_and_knows_what_was_said(
    tmp_path: Path, name: str
) -> None:
    engine = emulate(
        name, reply_in_order("Noted.", ScriptDrop(), "Still here.", ScriptDrop())
    )
    async with serving(tmp_path, engine) as stage:
        ring, phone = await stage.ring()
        await phone.wait_for_words("What can I do")
        await phone.say("My name is Bill.")
        await phone.wait_for_words("Noted.")
        await phone.say("And one more thing.")
        await phone.wait_for_words(GO_ON)
        await phone.say("Are you there?")
        await phone.wait_for_words("Still here.")
        await phone.say("Good.")
        await stage.twilio.wait_for_hang_up(ring)
        call = await stage.sealed()
    assert [text for speaker, text in told(call) if speaker == "caller"] == [
        "My name is Bill.",
        "And one more thing.",
        "Are you there?",
        "Good.",
    ]
    assert told(call)[-1] == ("agent", load_clip("apology").text)
    assert phone.played_bytes > len(load_clip("apology").audio)
    assert call.end_reason == "engine_lost"
    assert "My name is Bill." in str(engine.calls[1].settings) or name == "openai"


async def test_who_has_no_engine_hears_an_apology_and_the_call_is_kept(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # that the real limit is kept is shown on virtual time
    monkeypatch.setattr("aftercall.bridge.state.GREETING_TIMEOUT_S", 0.5)

    async def ring_in_vain(home: Path, key: str, *moods: EngineBehaviour) -> None:
        async with serving(
            home, emulate(name, reply_in_order(), behaviours=moods), key=key
        ) as stage:
            ring, phone = await stage.ring()
            await stage.twilio.wait_for_hang_up(ring)
            call = await stage.sealed()
        assert told(call) == [("agent", load_clip("apology").text)]
        assert phone.played_bytes == len(load_clip("apology").audio)
        assert call.end_reason == "engine_lost"

    await asyncio.gather(
        ring_in_vain(tmp_path / "refused", "another-key"),
        ring_in_vain(tmp_path / "mute", "engine-key", EngineBehaviour.MUTE),
        ring_in_vain(tmp_path / "deaf", "engine-key", EngineBehaviour.DEAF),
    )


async def test_only_the_announced_call_with_its_fresh_pass_gets_a_stream(
    tmp_path: Path, name: str
) -> None:
    async with serving(tmp_path, emulate(name, reply_in_order())) as stage:
        url = f"{stage.address.replace('http', 'ws')}/twilio/media"
        signed = {"x-twilio-signature": stage.twilio.sign(url, {})}
        call = make_live_call(source="twilio", sid="CA" + "1" * 32)
        given = await stage.app.phone.pending_calls.register(call)
        with pytest.raises(InvalidStatus):
            await MediaPhone.dial(
                url,
                TwilioFrames(call.sid),
                parameters={TOKEN_PARAMETER: given},
                headers={"x-twilio-signature": "wrong"},
            )
        for sid, word in (
            (call.sid, "made up"),
            ("CA" + "2" * 32, given),
            ("CA" + "2" * 32, ""),
        ):
            stranger = await MediaPhone.dial(
                url,
                TwilioFrames(sid),
                parameters={TOKEN_PARAMETER: word},
                headers=signed,
            )
            await stranger.wait_closed()
            assert stranger.played_bytes == 0
        phone = await MediaPhone.dial(
            url,
            TwilioFrames(call.sid),
            parameters={TOKEN_PARAMETER: given},
            headers=signed,
            speed=SPEED,
        )
        await phone.wait_for_words("What can I do")
        second = await MediaPhone.dial(
            url,
            TwilioFrames(call.sid),
            parameters={TOKEN_PARAMETER: given},
            headers=signed,
        )
        await second.wait_closed()
        assert second.played_bytes == 0
        await phone.hang_up()
        assert told(await stage.sealed()) == [("agent", GREETING)]


async def test_a_telnyx_stream_is_the_same_call(tmp_path: Path, name: str) -> None:
    async with serving(
        tmp_path, emulate(name, reply_in_order("I have taken that down."))
    ) as stage:
        call = make_live_call(source="telnyx", sid="v3:abc", caller="+15550111")
        given = await stage.app.phone.pending_calls.register(call)
        address = stage.app.phone.pending_calls.tokens.issue_address()
        url = f"{stage.address.replace('http', 'ws')}/telnyx/media/{address}"
        phone = await MediaPhone.dial(
            url,
            TelnyxFrames("v3:abc", caller="+19990000"),
            parameters={TOKEN_PARAMETER: given},
            speed=SPEED,
        )
        await phone.wait_for_words("What can I do")
        await phone.say("Please call the plumber.")
        await phone.wait_for_words("taken that down")
        await phone.hang_up()
        kept = await stage.sealed()
    assert told(kept) == [
        ("agent", GREETING),
        ("caller", "Please call the plumber."),
        ("agent", "I have taken that down."),
    ]
    assert (kept.source, kept.caller) == ("telnyx", "+15550111")


async def test_a_caller_who_is_gone_before_the_stream_starts_is_kept_all_the_same(
    tmp_path: Path, name: str
) -> None:
    async with serving(tmp_path, emulate(name, reply_in_order())) as stage:
        call = make_live_call(source="twilio", sid="CA" + "3" * 32)
        await stage.app.phone.pending_calls.register(call)
        for _ in range(2):
            await stage.app.phone.pending_calls.end(
                "twilio", call.sid, "caller_hung_up"
            )
        kept = await stage.sealed()
    assert (told(kept), kept.end_reason) == ([], "caller_hung_up")
