"""Telnyx's webhooks become the same notices as everybody's."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import RefusedInput
from aftercall.phone.notices import (
    CallProgress,
    CarrierCallState,
    Notice,
    RecordingNotice,
    RecordingState,
    RingNotice,
    SpeechGathered,
    StreamFailed,
)
from aftercall.phone.telnyx import read_event

LEG, SESSION, CONTROL = (
    "428c31b6-7af4-4bcb-b7f5-5013ef9657c1",
    "428c31b6-abf3-3bc1-b7f4-5013ef9657c1",
    "v3:ZkP3-q_1",
)
NOW = datetime(2026, 2, 13, 15, 41, tzinfo=UTC)


def event(
    event_type: str, *, id: str = "0ccc7b54-4df3-4bca-a65a-3da1ecc777f0", **fields: Any
) -> bytes:
    payload = {
        "call_control_id": CONTROL,
        "call_leg_id": LEG,
        "call_session_id": SESSION,
        "connection_id": "7267",
        "client_state": None,
    }
    data = {
        "record_type": "event",
        "event_type": event_type,
        "id": id,
        "occurred_at": "2026-01-02T22:25:27.521992Z",
    }
    return json.dumps(
        {"data": data | {"payload": payload | fields}, "meta": {"attempt": 1}}
    ).encode()


def ring(**fields: Any) -> RingNotice:
    known = {
        "from": "+15550100",
        "to": "+15550101",
        "direction": "incoming",
        "state": "parked",
    }
    notice = read_event(event("call.initiated", **(known | fields)))
    assert isinstance(notice, RingNotice)
    return notice


def test_a_ring_names_the_call_and_both_ends() -> None:
    found = ring(caller_id_name="Zoë")
    assert (found.source, found.sid, found.caller, found.callee, found.direction) == (
        "telnyx",
        CONTROL,
        "+15550100",
        "+15550101",
        "inbound",
    )
    assert found.metadata == {
        "caller_id_name": "Zoë",
        "connection_id": "7267",
        "ids": [LEG, SESSION],
    }
    assert ring(direction="outgoing").direction == "outbound"


@pytest.mark.parametrize(
    ("attestation", "validated", "verified"),
    [
        ("A", True, True),
        ("A", False, False),
        ("A", None, False),
        ("A", "true", False),
        ("B", True, False),
        (None, True, False),
    ],
)
def test_a_number_is_verified_only_by_a_validated_highest_attestation(
    attestation: object, validated: object, verified: bool
) -> None:
    assert (
        ring(
            shaken_stir_attestation=attestation, shaken_stir_validated=validated
        ).verified
        is verified
    )


@pytest.mark.parametrize(
    ("attestation", "validated", "is_refused"),
    [
        ("A", False, True),
        ("C", False, True),
        ("A", "false", True),
        ("A", 0, True),
        ("A", None, False),
        (None, False, False),
        ("", False, False),
        ("B", True, False),
    ],
)
def test_a_number_whose_attestation_failed_is_withheld(
    attestation: object, validated: object, is_refused: bool
) -> None:
    found = ring(
        caller_id_name="ZOE",
        shaken_stir_attestation=attestation,
        shaken_stir_validated=validated,
    )
    assert found.is_number_refused is is_refused
    assert (found.caller is None) is is_refused
    assert ("caller_id_name" in found.metadata) is not is_refused


@pytest.mark.parametrize("sent", ["anonymous", "", None, 7, ["+15550100"]])
def test_a_withheld_number_is_nobody_and_verified_by_nothing(sent: object) -> None:
    found = ring(
        **{"from": sent}, shaken_stir_attestation="A", shaken_stir_validated=True
    )
    assert (found.caller, found.verified) == (None, False)


@given(caller=st.text(max_size=400), name=st.text(max_size=400))
def test_whoever_calls_the_call_can_be_opened(caller: str, name: str) -> None:
    live = ring(**{"from": caller}, caller_id_name=name).open_call(NOW, "desk")
    live.model_dump_json().encode()
    assert (live.sid, live.agent_id) == (CONTROL, "desk")


@pytest.mark.parametrize(
    ("cause", "state"),
    [
        ("normal_clearing", CarrierCallState.COMPLETED),
        ("user_busy", CarrierCallState.BUSY),
        ("no_answer", CarrierCallState.NO_ANSWER),
        ("timeout", CarrierCallState.NO_ANSWER),
        ("originator_cancel", CarrierCallState.CANCELLED),
        ("call_rejected", CarrierCallState.FAILED),
        ("something_new", CarrierCallState.COMPLETED),
        (None, CarrierCallState.COMPLETED),
        ({}, CarrierCallState.COMPLETED),
    ],
)
def test_a_hang_up_is_final_whatever_its_cause(
    cause: object, state: CarrierCallState
) -> None:
    notice = read_event(event("call.hangup", hangup_cause=cause))
    assert isinstance(notice, CallProgress)
    assert (notice.state, notice.state.is_final) == (state, True)


def test_an_answer_is_progress() -> None:
    notice = read_event(event("call.answered"))
    assert isinstance(notice, CallProgress)
    assert notice.state is CarrierCallState.ANSWERED


def test_an_event_delivered_twice_has_one_key() -> None:
    first, again, other = (
        read_event(event("call.hangup", id=id)) for id in ("e1", "e1", "e2")
    )
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.key == again.key != other.key


def test_a_recording_has_an_address_and_is_joined_by_leg_or_session() -> None:
    body = event(
        "call.recording.saved",
        call_control_id=None,
        channels="dual",
        recording_urls={"mp3": "https://x/r.mp3", "wav": "https://x/r.wav"},
    )
    notice = read_event(body)
    assert isinstance(notice, RecordingNotice)
    assert (notice.state, notice.url) == (RecordingState.READY, "https://x/r.wav")
    assert set(notice.call_sids) == set(ring().metadata["ids"])


@pytest.mark.parametrize("urls", [None, {}, [], {"wav": 3}])
def test_a_recording_without_an_address_is_absent(urls: object) -> None:
    notice = read_event(event("call.recording.saved", recording_urls=urls))
    assert isinstance(notice, RecordingNotice)
    assert (notice.state, notice.url) == (RecordingState.ABSENT, None)


def test_a_recording_that_failed_is_final() -> None:
    notice = read_event(
        event("call.recording.error", reason="Failed to authorize with storage")
    )
    assert isinstance(notice, RecordingNotice)
    assert notice.state.is_final


def test_a_stream_that_failed_is_told() -> None:
    assert isinstance(
        read_event(event("streaming.failed", failure_reason="connection_failed")),
        StreamFailed,
    )


def test_what_the_caller_said_is_gathered_and_the_agents_voice_is_not() -> None:
    data = {"transcript": "I need an invoice", "confidence": 0.91, "is_final": True}
    notice = read_event(event("call.transcription", transcription_data=data))
    assert isinstance(notice, SpeechGathered)
    assert (notice.text, notice.confidence, notice.is_final) == (
        "I need an invoice",
        0.91,
        True,
    )
    assert (
        read_event(
            event(
                "call.transcription",
                transcription_data=data | {"transcription_track": "outbound"},
            )
        )
        is None
    )


@pytest.mark.parametrize(
    "event_type", ["call.bridged", "streaming.started", "brand.new", "", None, 3]
)
def test_events_that_nobody_needs_are_left_alone(event_type: Any) -> None:
    assert read_event(event(event_type)) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"\xff",
        b'{"data":[]}',
        b"[" * 100_000,
        b'{"data":{"event_type":"call.hangup"}}',
        b" " * 300_000,
    ]
    + [event("call.hangup", call_control_id=sid) for sid in (None, 3, "", "a/b", "..")]
    + [event("call.hangup", id="a b")]
    + [
        event("call.transcription", transcription_data=data)
        for data in (None, {}, {"transcript": 3})
    ],
)
def test_what_does_not_fit_is_refused_by_the_name_of_the_field(body: bytes) -> None:
    with pytest.raises(RefusedInput):
        read_event(body)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
)
_TYPES = [
    "call.initiated",
    "call.answered",
    "call.hangup",
    "call.transcription",
    "call.recording.saved",
]
_FIELDS = [
    "from",
    "to",
    "transcription_data",
    "recording_urls",
    "hangup_cause",
    "call_control_id",
    "start_time",
]


@given(kind=st.sampled_from(_TYPES), field=st.sampled_from(_FIELDS), value=_JSON)
def test_any_value_in_any_field_is_read_or_refused(
    kind: str, field: str, value: Any
) -> None:
    try:
        notice: Notice | None = read_event(event(kind, **{field: value}))
    except RefusedInput:
        return
    assert notice is None or notice.key
