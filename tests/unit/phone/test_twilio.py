"""Twilio's media socket: the traps of its own shapes.

What all carriers share is in tests/contract/test_wires.py.
"""

import json

import pytest

from aftercall.phone.twilio import TwilioWire
from aftercall.phone.wire import (
    AudioOut,
    Clear,
    Digit,
    Mark,
    Oddity,
    OddMessage,
    StreamStarted,
)
from carriers import AUDIO, STREAM, TwilioFrames, sent, started

SIDE = TwilioFrames()


def test_only_the_three_messages_that_twilio_knows_are_sent_each_naming_its_stream() -> (
    None
):
    wire = started(SIDE)
    frames = [
        sent(wire.send(command))
        for command in (AudioOut(b"\x00\x01\x02"), Mark("u7"), Clear())
    ]
    assert frames == [
        {"event": "media", "streamSid": STREAM["twilio"], "media": {"payload": "AAEC"}},
        {"event": "mark", "streamSid": STREAM["twilio"], "mark": {"name": "u7"}},
        {"event": "clear", "streamSid": STREAM["twilio"]},
    ]


def test_audio_of_any_length_is_sent_as_it_is() -> None:
    assert sent(started(SIDE).send(AudioOut(b"\x7f")))["media"]["payload"] == "fw=="


def test_who_called_whom_arrives_as_parameters_because_the_start_does_not_say() -> None:
    event = TwilioWire().receive(
        SIDE.start(parameters={"from": "+15550100", "to": "+15550101"})
    )[0]
    assert isinstance(event, StreamStarted)
    assert event.parameters == {"from": "+15550100", "to": "+15550101"}


@pytest.mark.parametrize(
    "parameters", [None, [], "x", {"a": 1, "b": None, "c": "kept"}]
)
def test_parameters_that_are_not_text_are_left_out(parameters: object) -> None:
    frame = json.loads(SIDE.start())
    frame["start"]["customParameters"] = parameters
    event = TwilioWire().receive(json.dumps(frame))[0]
    assert isinstance(event, StreamStarted)
    assert event.parameters == ({"c": "kept"} if isinstance(parameters, dict) else {})


def test_keys_call_their_track_inbound_track_and_sort_by_the_number_of_their_frame() -> (
    None
):
    wire = started(SIDE)
    assert list(wire.receive(SIDE.digit("#", 12))) == [Digit("#", 12)]
    frame = json.loads(SIDE.digit("#", 13))
    frame["dtmf"]["track"] = "outbound_track"
    assert list(wire.receive(json.dumps(frame))) == [OddMessage(Oddity.OWN_VOICE)]


def test_numbers_are_read_as_text_and_as_numbers() -> None:
    frame = json.loads(SIDE.media(1))
    frame["media"] |= {"chunk": 1, "timestamp": 20}
    assert [
        type(event).__name__ for event in started(SIDE).receive(json.dumps(frame))
    ] == ["AudioIn"]
    start = json.loads(SIDE.start(rate_hz="8000", channels="1"))
    assert isinstance(TwilioWire().receive(json.dumps(start))[0], StreamStarted)


@pytest.mark.parametrize("event", ["close", "closed", "error", "clear", "warning"])
def test_there_is_no_such_event_as_close(event: str) -> None:
    wire = started(SIDE)
    assert list(
        wire.receive(json.dumps({"event": event, "streamSid": STREAM["twilio"]}))
    ) == [OddMessage(Oddity.UNKNOWN_EVENT)]
    assert wire.is_open


def test_a_stream_id_cannot_break_out_of_the_frames_we_send() -> None:
    frame = json.loads(SIDE.start())
    frame["streamSid"] = 'MZ","event":"x'
    wire = TwilioWire()
    assert list(wire.receive(json.dumps(frame))) == [OddMessage(Oddity.SHAPE)]
    assert not wire.is_open


def test_a_burst_of_frames_is_all_heard() -> None:
    wire = started(SIDE)
    heard = [
        event
        for chunk in range(1, 3_001)
        for event in wire.receive(SIDE.media(chunk, AUDIO))
    ]
    assert len(heard) == 3_000
