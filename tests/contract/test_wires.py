"""What every carrier's wire must do alike. A new carrier is accepted by joining `CARRIERS`."""

import base64
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import AudioTooLong, StreamNotOpen
from aftercall.phone.wire import (
    MAX_AUDIO_BYTES,
    AudioIn,
    AudioOut,
    Clear,
    Digit,
    Mark,
    MarkDropped,
    MarkPlayed,
    Oddity,
    OddMessage,
    StopReason,
    StreamConnected,
    StreamRefused,
    StreamStarted,
    StreamStopped,
    WireRefusal,
)
from carriers import AUDIO, CALL, CARRIERS, STREAM, Carrier, sent, started

each_carrier = pytest.mark.parametrize(
    "carrier", CARRIERS, ids=lambda carrier: carrier.name
)


def heard(events: object) -> list[int]:
    assert isinstance(events, list | tuple)
    return [event.sequence for event in events if isinstance(event, AudioIn)]


def reasons(events: object) -> list[Oddity]:
    assert isinstance(events, list | tuple)
    return [event.reason for event in events if isinstance(event, OddMessage)]


@each_carrier
def test_one_story_is_the_same_events_on_every_carrier(carrier: Carrier) -> None:
    wire = carrier.wire()
    events = [
        *wire.receive(carrier.connected()),
        *wire.receive(carrier.start(parameters={"token": "one-time"})),
    ]
    wire.send(Mark("greeting"))
    for frame in (
        carrier.media(1),
        carrier.digit("7", 5),
        carrier.mark("greeting"),
        carrier.media(2),
        carrier.stop(),
    ):
        events += wire.receive(frame)
    events += wire.close()
    digit = events[3]
    assert isinstance(digit, Digit)
    assert events == [
        StreamConnected(),
        StreamStarted(CALL[carrier.name], STREAM[carrier.name], {"token": "one-time"}),
        AudioIn(AUDIO, 20, 1),
        Digit("7", digit.order),
        MarkPlayed("greeting"),
        AudioIn(AUDIO, 40, 2),
        StreamStopped(StopReason.ENDED),
    ]


@each_carrier
def test_a_socket_that_closes_without_a_stop_stops_the_stream(carrier: Carrier) -> None:
    assert list(started(carrier).close()) == [StreamStopped(StopReason.LOST)]


@each_carrier
def test_a_caller_who_hangs_up_before_the_start_is_gone_all_the_same(
    carrier: Carrier,
) -> None:
    wire = carrier.wire()
    wire.receive(carrier.connected())
    assert list(wire.receive(carrier.stop())) == [StreamStopped(StopReason.ENDED)]
    assert reasons(wire.receive(carrier.start())) == [Oddity.AFTER_STOP]
    assert not wire.is_open


@each_carrier
def test_a_stream_stops_once(carrier: Carrier) -> None:
    wire = started(carrier)
    assert list(wire.receive(carrier.stop())) == [StreamStopped(StopReason.ENDED)]
    assert reasons(wire.receive(carrier.stop())) == [Oddity.AFTER_STOP]
    assert reasons(wire.receive(carrier.media(1))) == [Oddity.AFTER_STOP]
    assert list(wire.close()) == []


@each_carrier
def test_a_second_start_changes_nothing(carrier: Carrier) -> None:
    wire = started(carrier)
    assert reasons(wire.receive(carrier.start())) == [Oddity.SECOND_START]
    assert heard(wire.receive(carrier.media(1))) == [1]


@each_carrier
def test_audio_before_the_start_belongs_to_nobody(carrier: Carrier) -> None:
    wire = carrier.wire()
    assert reasons(wire.receive(carrier.media(1))) == [Oddity.BEFORE_START]
    wire.receive(carrier.start())
    assert heard(wire.receive(carrier.media(1))) == [1]


@each_carrier
def test_a_start_needs_no_connected_before_it(carrier: Carrier) -> None:
    wire = carrier.wire()
    assert isinstance(wire.receive(carrier.start())[0], StreamStarted)
    assert reasons(wire.receive(carrier.connected())) == [Oddity.REPEATED]


@each_carrier
def test_audio_of_another_stream_is_not_heard(carrier: Carrier) -> None:
    wire = started(carrier)
    assert reasons(wire.receive(carrier.media(1, stream="MZother"))) == [
        Oddity.OTHER_STREAM
    ]


@each_carrier
def test_another_streams_stop_does_not_end_this_one(carrier: Carrier) -> None:
    wire = started(carrier)
    other = json.loads(carrier.stop())
    other["streamSid" if carrier.name == "twilio" else "stream_id"] = "MZother"
    assert reasons(wire.receive(json.dumps(other))) == [Oddity.OTHER_STREAM]
    assert wire.is_open


@each_carrier
def test_the_agents_own_voice_never_comes_back_as_the_callers(carrier: Carrier) -> None:
    assert reasons(started(carrier).receive(carrier.media(1, track="outbound"))) == [
        Oddity.OWN_VOICE
    ]


@each_carrier
def test_shuffled_audio_is_heard_in_the_order_it_was_spoken(carrier: Carrier) -> None:
    wire = started(carrier)
    order: list[int] = []
    for block in range(0, 40, 4):
        for chunk in (2, 1, 4, 3):
            order += heard(wire.receive(carrier.media(block + chunk)))
    assert order == list(range(1, 41))


@each_carrier
@given(seed=st.integers(0, 10_000))
def test_any_shuffle_within_a_tenth_of_a_second_is_undone(
    carrier: Carrier, seed: int
) -> None:
    rng = random.Random(seed)
    chunks = sorted(range(1, 101), key=lambda chunk: chunk + rng.uniform(0, 5))
    wire = started(carrier)
    events = [
        event
        for chunk in chunks
        for event in wire.receive(carrier.media(chunk, bytes([chunk]) * 160))
    ]
    events += wire.close()
    assert [event.payload[0] for event in events if isinstance(event, AudioIn)] == list(
        range(1, 101)
    )


@each_carrier
def test_a_lost_frame_holds_the_rest_up_for_a_tenth_of_a_second_at_most(
    carrier: Carrier,
) -> None:
    wire = started(carrier)
    got = [
        heard(wire.receive(carrier.media(chunk))) for chunk in (1, 3, 4, 5, 6, 7, 8, 9)
    ]
    assert got == [[1], [], [], [], [], [], [3, 4, 5, 6, 7, 8], [9]]


@each_carrier
def test_audio_still_held_back_is_not_lost_when_the_call_ends(carrier: Carrier) -> None:
    wire = started(carrier)
    wire.receive(carrier.media(4))
    wire.receive(carrier.media(2))
    events = list(wire.receive(carrier.stop()))
    assert heard(events) == [2, 4]
    assert events[-1] == StreamStopped(StopReason.ENDED)


@each_carrier
def test_audio_that_comes_twice_is_heard_once(carrier: Carrier) -> None:
    wire = started(carrier)
    wire.receive(carrier.media(1))
    assert reasons(wire.receive(carrier.media(1))) == [Oddity.LATE]
    wire.receive(carrier.media(3))
    assert reasons(wire.receive(carrier.media(3))) == [Oddity.REPEATED]


@each_carrier
def test_a_carrier_that_says_everything_twice_is_heard_once(carrier: Carrier) -> None:
    wire = started(carrier)
    order = [
        number
        for chunk in range(1, 201)
        for _ in range(2)
        for number in heard(wire.receive(carrier.media(chunk)))
    ]
    assert order == list(range(1, 201))


@each_carrier
def test_one_wild_number_does_not_mute_the_caller(carrier: Carrier) -> None:
    wire = started(carrier)
    for wild in range(6):
        wire.receive(carrier.media(10**15 + wild))
    later = [
        chunk
        for number in range(1, 101)
        for chunk in heard(wire.receive(carrier.media(number)))
    ]
    assert later == list(range(50, 101))


@each_carrier
def test_a_key_told_twice_was_pressed_once(carrier: Carrier) -> None:
    wire = started(carrier)
    assert [type(event) for event in wire.receive(carrier.digit("4", 5))] == [Digit]
    assert reasons(wire.receive(carrier.digit("4", 5))) == [Oddity.REPEATED]
    assert [type(event) for event in wire.receive(carrier.digit("4", 6))] == [Digit]


@each_carrier
@pytest.mark.parametrize("key", ["", "12", "x", "é", "1\n"])
def test_only_keys_of_a_telephone_are_digits(carrier: Carrier, key: str) -> None:
    assert reasons(started(carrier).receive(carrier.digit(key, 5))) == [Oddity.SHAPE]


@each_carrier
def test_a_mark_comes_back_as_played_or_as_dropped_by_a_clear(carrier: Carrier) -> None:
    wire = started(carrier)
    for name in ("a", "b", "c"):
        wire.send(Mark(name))
    events = [*wire.receive(carrier.mark("a"))]
    wire.send(Clear())
    wire.send(Mark("d"))
    for name in ("b", "c", "d"):
        events += wire.receive(carrier.mark(name))
    assert events == [
        MarkPlayed("a"),
        MarkDropped("b"),
        MarkDropped("c"),
        MarkPlayed("d"),
    ]


@each_carrier
def test_a_name_used_again_after_a_clear_is_told_apart(carrier: Carrier) -> None:
    wire = started(carrier)
    wire.send(Mark("reply"))
    wire.send(Clear())
    wire.send(Mark("reply"))
    assert [
        *wire.receive(carrier.mark("reply")),
        *wire.receive(carrier.mark("reply")),
    ] == [
        MarkDropped("reply"),
        MarkPlayed("reply"),
    ]
    assert reasons(wire.receive(carrier.mark("reply"))) == [Oddity.UNKNOWN_MARK]


@each_carrier
def test_a_carrier_that_returns_no_marks_does_not_fill_the_memory(
    carrier: Carrier,
) -> None:
    wire = started(carrier)
    for number in range(3_000):
        wire.send(Mark(str(number)))
    assert reasons(wire.receive(carrier.mark("0"))) == [Oddity.UNKNOWN_MARK]
    assert list(wire.receive(carrier.mark("2999"))) == [MarkPlayed("2999")]


@each_carrier
@pytest.mark.parametrize(
    "announced",
    [
        {"encoding": "audio/l16"},
        {"encoding": "G722"},
        {"encoding": "OPUS"},
        {"rate_hz": 16000},
        {"rate_hz": None},
        {"channels": 2},
        {"channels": "two"},
    ],
)
def test_audio_that_is_not_ours_is_refused_in_so_many_words(
    carrier: Carrier, announced: dict[str, object]
) -> None:
    wire = carrier.wire()
    start = carrier.start(**announced)  # type: ignore[arg-type]
    assert list(wire.receive(start)) == [StreamRefused(WireRefusal.FORMAT)]
    assert reasons(wire.receive(carrier.media(1))) == [Oddity.AFTER_REFUSAL]
    assert reasons(wire.receive(carrier.start())) == [Oddity.SECOND_START]
    with pytest.raises(StreamNotOpen):
        wire.send(AudioOut(AUDIO))
    assert list(wire.receive(carrier.stop())) == [StreamStopped(StopReason.ENDED)]


@each_carrier
def test_nothing_can_be_sent_before_the_start_or_after_the_stop(
    carrier: Carrier,
) -> None:
    wire = carrier.wire()
    for moment in (carrier.connected(), carrier.stop()):
        wire.receive(moment)
        assert not wire.is_open
        for command in (AudioOut(AUDIO), Mark("x"), Clear()):
            with pytest.raises(StreamNotOpen):
                wire.send(command)


@each_carrier
@given(payload=st.binary(min_size=160, max_size=4_000))
def test_audio_survives_the_round_trip_byte_for_byte(
    carrier: Carrier, payload: bytes
) -> None:
    wire = started(carrier)
    frame = sent(wire.send(AudioOut(payload)))
    assert base64.b64decode(frame["media"]["payload"], validate=True) == payload
    assert list(wire.receive(carrier.media(1, payload))) == [AudioIn(payload, 20, 1)]


@each_carrier
@given(name=st.text())
def test_any_mark_name_survives_the_round_trip(carrier: Carrier, name: str) -> None:
    wire = started(carrier)
    frame = sent(wire.send(Mark(name)))
    assert frame["mark"] == {"name": name}
    assert list(wire.receive(carrier.mark(frame["mark"]["name"]))) == [MarkPlayed(name)]


@each_carrier
def test_half_a_minute_of_audio_fits_a_frame_and_not_a_sample_more(
    carrier: Carrier,
) -> None:
    wire = started(carrier)
    wire.send(AudioOut(b"\xff" * MAX_AUDIO_BYTES))
    with pytest.raises(AudioTooLong):
        wire.send(AudioOut(b"\xff" * (MAX_AUDIO_BYTES + 1)))


@each_carrier
def test_frames_may_come_as_bytes_and_with_space_around_them(carrier: Carrier) -> None:
    wire = started(carrier)
    assert heard(wire.receive(carrier.media(1).encode())) == [1]
    assert heard(wire.receive(f"\n {carrier.media(2)} \n")) == [2]


@each_carrier
@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ("", Oddity.NOT_JSON),
        ("hello", Oddity.NOT_JSON),
        ("[]", Oddity.NOT_JSON),
        ('{"event":"media"} {}', Oddity.NOT_JSON),
        (b"\xff\xfe{", Oddity.NOT_JSON),
        ("[" * 60_000, Oddity.NOT_JSON),
        ('{"event":' + "9" * 5_000 + "}", Oddity.NOT_JSON),
        ("{}", Oddity.UNKNOWN_EVENT),
        ('{"event":["media"]}', Oddity.UNKNOWN_EVENT),
        ('{"event":"close"}', Oddity.UNKNOWN_EVENT),
        ('{"event":"start"}', Oddity.SECOND_START),
        (" " * 70_000, Oddity.TOO_LARGE),
    ],
)
def test_a_frame_that_makes_no_sense_is_skipped_and_said_why(
    carrier: Carrier, frame: str | bytes, reason: Oddity
) -> None:
    wire = started(carrier)
    assert list(wire.receive(frame)) == [OddMessage(reason)]
    assert heard(wire.receive(carrier.media(1))) == [1]


@each_carrier
@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("payload", "not base64!", Oddity.NOT_BASE64),
        ("payload", "QUJD\nREVG", Oddity.NOT_BASE64),
        ("payload", "QUI", Oddity.NOT_BASE64),
        ("payload", "ÄÖÜ=", Oddity.NOT_BASE64),
        ("payload", 7, Oddity.NOT_BASE64),
        ("payload", None, Oddity.NOT_BASE64),
        ("payload", "", Oddity.NO_AUDIO),
        ("chunk", "-1", Oddity.SHAPE),
        ("chunk", "1e3", Oddity.SHAPE),
        ("chunk", 1.5, Oddity.SHAPE),
        ("chunk", True, Oddity.SHAPE),
        ("chunk", "9" * 40, Oddity.SHAPE),
        ("chunk", 10**30, Oddity.SHAPE),
        ("chunk", None, Oddity.SHAPE),
        ("timestamp", {}, Oddity.SHAPE),
        ("track", 3, Oddity.OWN_VOICE),
    ],
)
def test_audio_with_a_wrong_field_is_skipped(
    carrier: Carrier, field: str, value: object, reason: Oddity
) -> None:
    frame = json.loads(carrier.media(1))
    frame["media"][field] = value
    assert reasons(started(carrier).receive(json.dumps(frame))) == [reason]


@each_carrier
@pytest.mark.parametrize("event", ["media", "dtmf", "mark"])
@pytest.mark.parametrize("inner", [None, [], "x", 3, {}])
def test_an_event_without_its_inside_is_skipped(
    carrier: Carrier, event: str, inner: object
) -> None:
    frame = json.loads(carrier.media(1)) | {"event": event}
    frame.pop("media")
    frame[event] = inner
    assert reasons(started(carrier).receive(json.dumps(frame))) == [Oddity.SHAPE]


@each_carrier
@pytest.mark.parametrize("sid", [None, "", 7, "a/b", "..", "x" * 300])
def test_a_start_without_a_usable_call_id_starts_nothing(
    carrier: Carrier, sid: object
) -> None:
    frame = json.loads(carrier.start())
    frame["start"]["callSid" if "callSid" in frame["start"] else "call_control_id"] = (
        sid
    )
    wire = carrier.wire()
    assert reasons(wire.receive(json.dumps(frame))) == [Oddity.SHAPE]
    assert isinstance(wire.receive(carrier.start())[0], StreamStarted)


@each_carrier
def test_fields_that_a_carrier_adds_are_left_alone(carrier: Carrier) -> None:
    frame = json.loads(carrier.media(1)) | {"novelty": {"deep": [1]}}
    frame["media"]["novelty"] = 1
    assert heard(started(carrier).receive(json.dumps(frame))) == [1]


@each_carrier
def test_what_was_said_or_pressed_is_in_no_repr(carrier: Carrier) -> None:
    wire = carrier.wire()
    events = [
        *wire.receive(carrier.start(parameters={"from": "+15550100"})),
        *wire.receive(carrier.media(1, b"canary--" * 20)),
    ]
    events += wire.receive(carrier.digit("#", 5))
    shown = repr(events) + repr(AudioOut(b"canary--"))
    assert not any(word in shown for word in ("canary", "#", "+1555"))
