"""Telnyx's media socket: the traps of its own shapes.

What all carriers share is in tests/contract/test_wires.py.
"""

import json
from base64 import b64decode

import pytest

from aftercall.phone.telnyx import ALAW_TO_MULAW, TelnyxWire, pack_state, unpack_state
from aftercall.phone.wire import (
    AudioIn,
    AudioOut,
    Clear,
    Digit,
    Mark,
    Oddity,
    OddMessage,
    StreamStarted,
)
from carriers import STREAM, TelnyxFrames, sent, started

SIDE = TelnyxFrames()


def test_a_european_leg_brings_a_law_and_is_heard_as_mu_law() -> None:
    wire = TelnyxWire()
    assert isinstance(wire.receive(SIDE.start(encoding="PCMA"))[0], StreamStarted)
    alaw = bytes(range(256))
    assert list(wire.receive(SIDE.media(1, alaw))) == [
        AudioIn(alaw.translate(ALAW_TO_MULAW), 20, 1)
    ]


def test_what_we_send_is_mu_law_whatever_the_leg_brings() -> None:
    wire = TelnyxWire()
    wire.receive(SIDE.start(encoding="PCMA"))
    assert sent(wire.send(AudioOut(b"\x00" * 160))) == sent(
        started(SIDE).send(AudioOut(b"\x00" * 160))
    )


def test_frames_to_telnyx_name_no_stream() -> None:
    wire = started(SIDE)
    frames = [
        sent(wire.send(command))
        for command in (AudioOut(b"\x00" * 162), Mark("u7"), Clear())
    ]
    assert frames == [
        {"event": "media", "media": {"payload": "A" * 216}},
        {"event": "mark", "mark": {"name": "u7"}},
        {"event": "clear"},
    ]


def test_audio_shorter_than_the_carrier_takes_is_filled_up_with_silence() -> None:
    frame = sent(started(SIDE).send(AudioOut(b"\x01" * 3)))
    assert b64decode(frame["media"]["payload"]) == b"\x01" * 3 + b"\xff" * 157


def test_keys_sort_by_the_time_they_were_pressed_not_by_their_arrival() -> None:
    wire = started(SIDE)
    events = [
        *wire.receive(SIDE.digit("2", 6, second=31)),
        *wire.receive(SIDE.digit("1", 5, second=30)),
    ]
    digits = [event for event in events if isinstance(event, Digit)]
    assert [event.digit for event in sorted(digits, key=lambda event: event.order)] == [
        "1",
        "2",
    ]


@pytest.mark.parametrize(
    "occurred_at",
    [
        None,
        "",
        "yesterday",
        pytest.param(10**400, id="huge"),
        {},
        "2026-06-05T08:54:19",
    ],
)
def test_a_key_without_a_usable_time_still_counts(occurred_at: object) -> None:
    frame = json.loads(SIDE.digit("1", 5)) | {"occurred_at": occurred_at}
    assert [type(event) for event in started(SIDE).receive(json.dumps(frame))] == [
        Digit
    ]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"code": 100003, "title": "malformed_frame"}, Oddity.COMPLAINT),
        ({"code": 100004, "title": "invalid_media"}, Oddity.COMPLAINT),
        ({"code": 100005, "title": "rate_limit_reached"}, Oddity.TOO_FAST),
        (None, Oddity.COMPLAINT),
    ],
)
def test_a_complaint_of_the_carrier_is_passed_on_without_its_words(
    payload: object, reason: Oddity
) -> None:
    frame = {"event": "error", "stream_id": STREAM["telnyx"], "payload": payload}
    assert list(started(SIDE).receive(json.dumps(frame))) == [OddMessage(reason)]


@pytest.mark.parametrize(
    "custom",
    [
        {"token": "t"},
        [{"name": "token", "value": "t"}, {"name": 3}, "x", {"value": "y"}],
    ],
)
def test_words_for_ourselves_are_found_wherever_the_start_carries_them(
    custom: object,
) -> None:
    frame = json.loads(SIDE.start(parameters={"call": "c"}))
    frame["start"]["custom_parameters"] = custom
    event = TelnyxWire().receive(json.dumps(frame))[0]
    assert isinstance(event, StreamStarted)
    assert event.parameters == {"call": "c", "token": "t"}


@pytest.mark.parametrize(
    "state", [None, 7, "%%%", "aGk=", "W10=", "gICA", pack_state({"a": "b"})[:-4]]
)
def test_a_client_state_that_is_not_ours_is_nothing(state: object) -> None:
    assert unpack_state(state) == {}


def test_a_client_state_comes_back_as_it_went() -> None:
    words = {"token": "one-time", "name": "Zoë"}
    assert unpack_state(pack_state(words)) == words
