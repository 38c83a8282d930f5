"""Telnyx's signature, with Telnyx's own SDK as the judge."""

import base64
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import assume, given
from hypothesis import strategies as st

from aftercall.clock import SystemClock
from aftercall.phone.signature import (
    MAX_AGE_S,
    SignatureFlaw,
    SignedRequest,
    TelnyxSignature,
)
from fakes import VirtualClock

SIGNER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
SIGNED_AT = 1_700_000_000
BODY = b'{"data":{"event_type":"call.initiated"}}'
KNOWN = "aBuTQ1AtxQGraK6PrtJP6VW9Mu+R2aG6TbxS7lim9/ia8dN94a42JYoTifASA18z3xe+GLlYfveWOuyyKq7OCw=="


def clock_at(seconds: float) -> VirtualClock:
    return VirtualClock(datetime.fromtimestamp(seconds, UTC))


def sign(body: bytes, timestamp: object = SIGNED_AT) -> dict[str, str]:
    signature = SIGNER.sign(f"{timestamp}|".encode() + body)
    return {
        "telnyx-timestamp": str(timestamp),
        "telnyx-signature-ed25519": base64.b64encode(signature).decode(),
    }


def flaw(
    body: bytes,
    headers: dict[str, str],
    *,
    now: float = SIGNED_AT,
    key: str | None = KEY,
) -> SignatureFlaw | None:
    return TelnyxSignature(key, clock_at(now)).find_flaw(
        SignedRequest("/telnyx/events", headers, body)
    )


def test_the_known_answer_is_accepted() -> None:
    assert (
        flaw(
            BODY,
            {"Telnyx-Timestamp": str(SIGNED_AT), "Telnyx-Signature-Ed25519": KNOWN},
        )
        is None
    )


def test_the_raw_bytes_are_what_is_signed() -> None:
    body = b'{ "data" : {"name": "\xc3\xa9\\u00e9"} }\n'
    assert flaw(body, sign(body)) is None
    assert flaw(body.strip(), sign(body)) is SignatureFlaw.WRONG
    assert flaw(b"\xff\x00", sign(b"\xff\x00")) is None


@pytest.mark.parametrize(
    ("off", "expected"),
    [
        (0, None),
        (MAX_AGE_S, None),
        (-MAX_AGE_S, None),
        (MAX_AGE_S + 0.001, SignatureFlaw.STALE),
        (-MAX_AGE_S - 0.001, SignatureFlaw.STALE),
    ],
)
def test_a_signature_is_good_for_five_minutes_either_way(
    off: float, expected: SignatureFlaw | None
) -> None:
    assert flaw(BODY, sign(BODY), now=SIGNED_AT + off) is expected


@pytest.mark.parametrize(
    "timestamp",
    [
        "",
        " 1700000000",
        "+1700000000",
        "1_700_000_000",
        "-1",
        "1e9",
        "17.0",
        "١٧٠٠٠٠٠٠٠٠",
        "9" * 400,
    ],
)
def test_a_time_that_is_not_plain_seconds_is_malformed(timestamp: str) -> None:
    assert flaw(BODY, sign(BODY, timestamp)) is SignatureFlaw.MALFORMED


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "x",
        KNOWN[:-4],
        KNOWN + "AAAA",
        KNOWN.replace("=", ""),
        "ÄÖ",
        KNOWN[:40] + "\n" + KNOWN[40:],
    ],
)
def test_a_signature_that_is_not_64_bytes_of_base64_is_malformed(
    signature: str,
) -> None:
    assert (
        flaw(BODY, sign(BODY) | {"telnyx-signature-ed25519": signature})
        is SignatureFlaw.MALFORMED
    )


@pytest.mark.parametrize("name", ["telnyx-timestamp", "telnyx-signature-ed25519"])
def test_a_missing_header_is_missing_and_a_doubled_one_malformed(name: str) -> None:
    headers = sign(BODY)
    assert (
        flaw(BODY, {key: value for key, value in headers.items() if key != name})
        is SignatureFlaw.MISSING
    )
    assert (
        flaw(BODY, headers | {name.title(): headers[name]}) is SignatureFlaw.MALFORMED
    )


@pytest.mark.parametrize(
    "key",
    [None, "", "x", KEY[:-4], KEY + "AAAA", "ÄÖ", base64.b64encode(bytes(64)).decode()],
)
def test_a_key_that_cannot_be_used_believes_nobody(key: str | None) -> None:
    assert flaw(BODY, sign(BODY), key=key) is SignatureFlaw.NO_KEY


def test_another_key_believes_nobody_here() -> None:
    other = base64.b64encode(
        Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    ).decode()
    assert flaw(BODY, sign(BODY), key=other) is SignatureFlaw.WRONG


@given(body=st.binary(max_size=200), data=st.data())
def test_any_change_of_body_time_or_signature_is_refused(
    body: bytes, data: st.DataObject
) -> None:
    headers = sign(body)
    part = data.draw(st.sampled_from(["body", "time", "signature"]))
    if part == "body":
        changed = data.draw(st.binary(max_size=200))
        assume(changed != body)
        assert flaw(changed, headers) is SignatureFlaw.WRONG
    elif part == "time":
        moved = data.draw(st.integers(-MAX_AGE_S, MAX_AGE_S).filter(bool))
        assert (
            flaw(body, headers | {"telnyx-timestamp": str(SIGNED_AT + moved)})
            is SignatureFlaw.WRONG
        )
    else:
        raw = bytearray(base64.b64decode(headers["telnyx-signature-ed25519"]))
        raw[data.draw(st.integers(0, 63))] ^= 1 << data.draw(st.integers(0, 7))
        assert (
            flaw(
                body,
                headers | {"telnyx-signature-ed25519": base64.b64encode(raw).decode()},
            )
            is SignatureFlaw.WRONG
        )


def test_the_judge_and_we_agree() -> None:
    import telnyx

    judge = telnyx.Telnyx(api_key="x", public_key=KEY)
    now = int(SystemClock().now().timestamp())
    good, old = sign(BODY, now), sign(BODY, now - 400)
    cases = [
        (BODY, good),
        (BODY, old),
        (BODY + b" ", good),
        (BODY, good | {"telnyx-timestamp": str(now + 1)}),
        (BODY, {}),
    ]
    for body, headers in cases:
        try:
            judge.webhooks.unwrap(body.decode(), headers=headers)
            is_believed = True
        except ValueError:
            is_believed = False
        assert is_believed is (
            TelnyxSignature(KEY, SystemClock()).find_flaw(
                SignedRequest("/", headers, body)
            )
            is None
        )
