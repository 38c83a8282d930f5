"""Platforms that ran a call themselves: known signatures, known events, and anything else."""

import copy
import hmac
import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from aftercall.errors import RefusedInput
from aftercall.hosted.adapters import Bland, ElevenLabs, Retell, Vapi
from aftercall.hosted.platform import Platform, parse_event, slug
from aftercall.model.calls import Call

NOW = datetime(2026, 2, 14, 12, tzinfo=UTC)
START_S = 1_771_000_000

ELEVENLABS: dict[str, Any] = {
    "type": "post_call_transcription",
    "event_timestamp": START_S + 30,
    "data": {
        "agent_id": "a1",
        "conversation_id": "conv_1",
        "transcript": [
            {
                "role": "agent",
                "message": "Hello, how can I help?",
                "time_in_call_secs": 0,
            },
            {
                "role": "agent",
                "message": None,
                "time_in_call_secs": 1,
                "tool_calls": [],
            },
            {"role": "user", "message": "An invoice please", "time_in_call_secs": 3},
        ],
        "metadata": {
            "start_time_unix_secs": START_S,
            "call_duration_secs": 22,
            "termination_reason": "Client disconnected: 1000",
            "phone_call": {
                "direction": "inbound",
                "agent_number": "+15550101",
                "external_number": "+15550100",
                "call_sid": "CA1",
            },
        },
        "analysis": {"transcript_summary": "Asked for an invoice."},
    },
}
VAPI: dict[str, Any] = {
    "message": {
        "type": "end-of-call-report",
        "endedReason": "customer-ended-call",
        "startedAt": "2026-02-13T16:26:40.000Z",
        "endedAt": "2026-02-13T16:27:02.000Z",
        "call": {
            "id": "5b8c",
            "type": "inboundPhoneCall",
            "phoneCallProviderId": "CA1",
        },
        "customer": {"number": "+15550100"},
        "phoneNumber": {"number": "+15550101"},
        "artifact": {
            "messages": [
                {"role": "system", "message": "You are …", "time": START_S * 1000},
                {
                    "role": "bot",
                    "message": "Hello, how can I help?",
                    "time": START_S * 1000,
                },
                {
                    "role": "user",
                    "message": "An invoice please",
                    "time": START_S * 1000 + 3000,
                },
            ]
        },
    }
}
RETELL: dict[str, Any] = {
    "event": "call_ended",
    "call": {
        "call_id": "c1",
        "direction": "inbound",
        "from_number": "+15550100",
        "to_number": "+15550101",
        "start_timestamp": START_S * 1000,
        "end_timestamp": START_S * 1000 + 22_000,
        "disconnection_reason": "user_hangup",
        "transcript_object": [
            {
                "role": "agent",
                "content": "Hello, how can I help?",
                "words": [{"word": "Hello", "start": 0.0, "end": 0.4}],
            },
            {
                "role": "user",
                "content": "An invoice please",
                "words": [{"word": "An", "start": 3.0, "end": 3.2}],
            },
            {"role": "transfer_target", "content": "Front desk"},
        ],
    },
}
BLAND: dict[str, Any] = {
    "call_id": "b1",
    "from": "+15550100",
    "to": "+15550101",
    "inbound": True,
    "completed": True,
    "call_length": 0.3666666,
    "created_at": "2026-02-13T16:26:40+00:00",
    "call_ended_by": "USER",
    "transcripts": [
        {
            "id": 1,
            "created_at": "2026-02-13T16:26:40+00:00",
            "text": "Hello, how can I help?",
            "user": "assistant",
        },
        {
            "id": 2,
            "created_at": "2026-02-13T16:26:43+00:00",
            "text": "An invoice please",
            "user": "user",
        },
        {
            "id": 3,
            "created_at": "2026-02-13T16:26:44+00:00",
            "text": "looked it up",
            "user": "agent-action",
        },
    ],
}
CASES: list[tuple[Platform, dict[str, Any]]] = [
    (ElevenLabs(SecretStr("wsec_test")), ELEVENLABS),
    (Vapi(SecretStr("secret")), VAPI),
    (Retell(SecretStr("key_test")), RETELL),
    (Bland(SecretStr("secret")), BLAND),
]
NAMES = [platform.name for platform, _ in CASES]


def read(platform: Platform, event: dict[str, Any]) -> Call:
    call = platform.read_call(event, "main")
    assert call is not None
    return call


@pytest.mark.parametrize(("platform", "event"), CASES, ids=NAMES)
def test_every_platform_tells_the_same_call(
    platform: Platform, event: dict[str, Any]
) -> None:
    call = read(platform, event)
    assert (call.source, call.direction, call.caller, call.callee) == (
        platform.name,
        "inbound",
        "+15550100",
        "+15550101",
    )
    assert [(turn.speaker, turn.text) for turn in call.turns] == [
        ("agent", "Hello, how can I help?"),
        ("caller", "An invoice please"),
    ]
    assert call.started_at.timestamp() == START_S
    assert (call.turns[1].at - call.started_at).total_seconds() == 3
    assert 21 <= call.duration_s <= 23


def test_ended_reasons_become_words_of_ours() -> None:
    assert [read(platform, event).end_reason for platform, event in CASES] == [
        "client_disconnected_1000",
        "customer_ended_call",
        "user_hangup",
        "user_hung_up",
    ]
    assert (slug(None), slug("31 seconds"), slug("é")) == (
        "ended",
        "ended_31_seconds",
        "ended",
    )


def test_an_outbound_call_has_its_parties_the_other_way_round() -> None:
    event = copy.deepcopy(ELEVENLABS)
    event["data"]["metadata"]["phone_call"]["direction"] = "outbound"
    call = read(CASES[0][0], event)
    assert (call.direction, call.caller, call.callee) == (
        "outbound",
        "+15550101",
        "+15550100",
    )


def test_events_that_tell_of_no_call_are_taken_and_left_alone() -> None:
    assert (
        CASES[0][0].read_call(
            {"type": "post_call_audio", "data": {"full_audio": "…"}}, "main"
        )
        is None
    )
    busy = {
        "agent_id": "a1",
        "conversation_id": "conv_1",
        "failure_reason": "busy",
        "metadata": {"type": "twilio", "body": {}},
    }
    assert (
        CASES[0][0].read_call({"type": "call_initiation_failure", "data": busy}, "main")
        is None
    )
    assert CASES[1][0].read_call({"message": {"type": "status-update"}}, "main") is None
    assert CASES[2][0].read_call({"event": "call_started", "call": {}}, "main") is None


def test_calls_of_other_agents_of_a_workspace_are_left_alone_when_ours_are_named() -> (
    None
):
    secret = SecretStr("wsec_test")
    assert ElevenLabs(secret, ["a1", "a2"]).read_call(ELEVENLABS, "main") is not None
    assert ElevenLabs(secret, ["a2"]).read_call(ELEVENLABS, "main") is None
    assert (
        ElevenLabs(secret, ["a2"]).read_call(
            {"type": "post_call_transcription", "data": {"conversation_id": "conv_1"}},
            "main",
        )
        is None
    )


def test_ended_and_analysed_tell_of_one_call_whichever_comes_first() -> None:
    analysed = copy.deepcopy(RETELL) | {"event": "call_analyzed"}
    analysed["call"]["call_analysis"] = {"call_summary": "Asked for an invoice."}
    ended, later = read(CASES[2][0], RETELL), read(CASES[2][0], analysed)
    assert (ended.source, ended.sid, ended.turns) == (
        later.source,
        later.sid,
        later.turns,
    )
    assert "platform_summary" not in ended.metadata


def test_a_call_without_words_is_still_a_call() -> None:
    event = copy.deepcopy(RETELL)
    del event["call"]["transcript_object"]
    del event["call"]["start_timestamp"]
    event["call"]["disconnection_reason"] = "dial_no_answer"
    assert read(CASES[2][0], event).turns == ()


def test_a_clock_that_jumps_back_is_held() -> None:
    event = copy.deepcopy(VAPI)
    event["message"]["artifact"]["messages"][2]["time"] = START_S * 1000 - 9_000_000
    assert [turn.seq for turn in read(CASES[1][0], event).turns] == [1, 2]


KNOWN_BODY = b'{"event":"call_ended","call":{"call_id":"c1"}}'
ELEVENLABS_BODY = (
    b'{"type":"post_call_transcription","event_timestamp":1739537297,'
    b'"data":{"conversation_id":"abc"}}'
)
KNOWN = [
    (
        CASES[0][0],
        {
            "elevenlabs-signature": (
                "t=1739537297,v0=6e321e2044a124192e73090ae6cd11a39fe97800cc3e4e6361404552a92914b0"
            )
        },
        ELEVENLABS_BODY,
        1_739_537_300,
    ),
    (CASES[1][0], {"x-vapi-secret": "secret"}, KNOWN_BODY, START_S),
    (CASES[1][0], {"authorization": "Bearer secret"}, KNOWN_BODY, START_S),
    (
        CASES[2][0],
        {
            "x-retell-signature": (
                "v=1700000000000,d=83eec0c731880372ce0de004bd1ce30f8cec0c963edda918404057662d7ddbc8"
            )
        },
        KNOWN_BODY,
        1_700_000_100,
    ),
    (
        CASES[3][0],
        {
            "x-webhook-signature": (
                "218f87ee95a776a54ea124fa33185fd08dad21261eda11c000637f584e032a94"
            )
        },
        KNOWN_BODY,
        START_S,
    ),
]


@pytest.mark.parametrize(("platform", "headers", "body", "now_s"), KNOWN)
def test_known_signatures_hold_and_any_change_is_refused(
    platform: Platform, headers: dict[str, str], body: bytes, now_s: int
) -> None:
    now = datetime.fromtimestamp(now_s, UTC)
    assert platform.is_genuine(headers, body, now)
    assert not platform.is_genuine({}, body, now)
    assert not platform.is_genuine(
        {name: value[:-1] + "0" + "x" for name, value in headers.items()}, body, now
    )
    if "secret" not in "".join(headers.values()):
        assert not platform.is_genuine(headers, body + b" ", now)


def sign_for_vapi(timestamp: str) -> dict[str, str]:
    signed = timestamp.encode() + b"." + KNOWN_BODY
    signature = hmac.new(b"secret", signed, sha256).hexdigest()
    return {"x-signature": signature, "x-timestamp": timestamp}


def test_a_vapi_hmac_covers_time_and_body() -> None:
    vapi, now_s = CASES[1][0], int(NOW.timestamp())
    headers = sign_for_vapi(str(now_s))
    assert vapi.is_genuine(headers, KNOWN_BODY, NOW)
    assert not vapi.is_genuine(headers, KNOWN_BODY + b" ", NOW)
    later = headers | {"x-timestamp": str(now_s + 1)}
    assert not vapi.is_genuine(later, KNOWN_BODY, NOW)


@pytest.mark.parametrize("form", ["seconds", "milliseconds", "iso"])
def test_a_vapi_hmac_is_refused_when_its_time_is_not_now(form: str) -> None:
    def is_genuine_after(age_s: int) -> bool:
        signed_at = NOW - timedelta(seconds=age_s)
        timestamps = {
            "seconds": str(int(signed_at.timestamp())),
            "milliseconds": str(int(signed_at.timestamp() * 1000)),
            "iso": signed_at.isoformat(),
        }
        headers = sign_for_vapi(timestamps[form])
        return CASES[1][0].is_genuine(headers, KNOWN_BODY, NOW)

    assert is_genuine_after(0)
    assert is_genuine_after(299)
    assert not is_genuine_after(301)
    assert not is_genuine_after(-301)


@pytest.mark.parametrize("timestamp", ["", "yesterday", "nan", "inf", "-1", "1e999"])
def test_a_vapi_hmac_without_a_time_is_refused(timestamp: str) -> None:
    assert not CASES[1][0].is_genuine(sign_for_vapi(timestamp), KNOWN_BODY, NOW)


def test_old_signatures_are_stale() -> None:
    for platform, headers, body, now_s in KNOWN:
        if platform.name in ("elevenlabs", "retell"):
            assert not platform.is_genuine(
                headers, body, datetime.fromtimestamp(now_s + 3_600, UTC)
            )


@pytest.mark.parametrize("raw", [b"", b"\xff", b"[]", b"3", b"[" * 100_000])
def test_bodies_that_are_no_event_are_refused(raw: bytes) -> None:
    with pytest.raises(RefusedInput, match=r"^body: "):
        parse_event(raw)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(("platform", "event"), CASES, ids=NAMES)
@given(data=st.data())
def test_any_event_is_a_call_nothing_or_refused(
    platform: Platform, event: dict[str, Any], data: st.DataObject
) -> None:
    broken = json.loads(json.dumps(event))
    place: Any = broken
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if (
            isinstance(place[key], dict | list)
            and place[key]
            and data.draw(st.booleans())
        ):
            place = place[key]
            continue
        place[key] = data.draw(json_values)
        break
    try:
        platform.read_call(broken, "main")
    except RefusedInput as refused:
        assert refused.field  # noqa: PT017 - either outcome is right
