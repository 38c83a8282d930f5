"""Twilio's signature, with Twilio's own validator as the judge: what it signs we accept, what
it refuses we refuse.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterable
from urllib.parse import urlencode

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import SecretStr
from twilio.request_validator import RequestValidator

from aftercall.phone.signature import SignatureFlaw, SignedRequest, TwilioSignature
from aftercall.phone.twilio import FORM_TYPE

TOKEN = "12345"
PUBLIC = "https://mycompany.com"
JUDGE = RequestValidator(TOKEN)
FORM = {
    "CallSid": "CA1234567890ABCDE",
    "Caller": "+14158675309",
    "Digits": "1234",
    "From": "+14158675309",
    "To": "+18005551212",
}


class MultiForm(dict[str, list[str]]):
    """A form with repeated fields in the shape that the judge understands."""

    def getall(self, name: str) -> list[str]:
        return self[name]


def judge_signs(url: str, fields: Iterable[tuple[str, str]] = ()) -> str:
    form = MultiForm()
    for name, value in fields:
        form.setdefault(name, []).append(value)
    return str(JUDGE.compute_signature(url, form))


def posted(
    target: str, fields: Iterable[tuple[str, str]], signature: str
) -> SignedRequest:
    return SignedRequest(
        target,
        {"X-Twilio-Signature": signature, "Content-Type": FORM_TYPE},
        urlencode(list(fields)).encode(),
    )


def flaw(
    request: SignedRequest, public_url: str | None = PUBLIC, token: str | None = TOKEN
) -> SignatureFlaw | None:
    return TwilioSignature(
        SecretStr(token) if token is not None else None, public_url
    ).find_flaw(request)


def test_the_known_answer_of_a_form_is_accepted() -> None:
    assert (
        flaw(
            posted(
                "/myapp.php?foo=1&bar=2", FORM.items(), "RSOYDt4T1cUTdK1PDd93/VVr8B8="
            )
        )
        is None
    )


def test_the_known_answer_of_a_websocket_upgrade_is_accepted() -> None:
    request = SignedRequest(
        "/twilio/media",
        {"x-twilio-signature": "Ko8aymfVk0cCegaxVKH0ZCvSyf4="},
        is_upgrade=True,
    )
    assert flaw(request, "https://example.com") is None


def test_an_upgrade_is_signed_over_wss_and_not_over_https() -> None:
    signature = judge_signs("https://example.com/twilio/media")
    request = SignedRequest(
        "/twilio/media", {"x-twilio-signature": signature}, is_upgrade=True
    )
    assert flaw(request, "https://example.com") is SignatureFlaw.WRONG


def test_a_page_is_signed_over_https_and_not_over_wss() -> None:
    assert (
        flaw(
            posted("/twilio/voice", (), judge_signs("wss://mycompany.com/twilio/voice"))
        )
        is SignatureFlaw.WRONG
    )


def test_the_address_is_the_configured_one_whatever_the_host_header_says() -> None:
    request = posted(
        "/twilio/voice",
        FORM.items(),
        judge_signs("https://mycompany.com/twilio/voice", FORM.items()),
    )
    proxied = SignedRequest(
        request.target,
        {**request.headers, "Host": "10.0.0.7:8080", "X-Forwarded-Proto": "http"},
        request.body,
    )
    assert flaw(proxied) is None
    forged = posted(
        "/twilio/voice",
        FORM.items(),
        judge_signs("https://evil.example/twilio/voice", FORM.items()),
    )
    assert (
        flaw(
            SignedRequest(
                forged.target, {**forged.headers, "Host": "evil.example"}, forged.body
            )
        )
        is SignatureFlaw.WRONG
    )


@pytest.mark.parametrize(
    ("public_url", "signed_url"),
    [
        ("https://mycompany.com", "https://mycompany.com:443/twilio/voice"),
        ("https://mycompany.com:443", "https://mycompany.com/twilio/voice"),
        ("https://mycompany.com:8443", "https://mycompany.com:8443/twilio/voice"),
        ("https://mycompany.com:8443", "https://mycompany.com/twilio/voice"),
        ("http://mycompany.com", "http://mycompany.com:80/twilio/voice"),
        ("https://mycompany.com/", "https://mycompany.com/twilio/voice"),
        ("https://mycompany.com/calls", "https://mycompany.com/calls/twilio/voice"),
    ],
)
def test_a_port_may_be_named_or_left_out(public_url: str, signed_url: str) -> None:
    assert (
        flaw(
            posted(
                "/twilio/voice", FORM.items(), judge_signs(signed_url, FORM.items())
            ),
            public_url,
        )
        is None
    )


def test_an_upgrade_with_its_port_named_means_443() -> None:
    """The judge guesses port 80 here, which no carrier uses for wss."""
    request = SignedRequest(
        "/twilio/media",
        {"x-twilio-signature": judge_signs("wss://mycompany.com:443/twilio/media")},
        is_upgrade=True,
    )
    assert flaw(request) is None


@pytest.mark.parametrize(
    "other",
    [
        "https://mycompany.com:444",
        "http://mycompany.com",
        "https://mycompany.org",
        "https://mycompany.com.evil.org",
    ],
)
def test_another_address_is_another_signature(other: str) -> None:
    assert (
        flaw(
            posted(
                "/twilio/voice",
                FORM.items(),
                judge_signs(f"{other}/twilio/voice", FORM.items()),
            )
        )
        is SignatureFlaw.WRONG
    )


def test_an_empty_field_is_signed_like_the_others() -> None:
    fields = [*FORM.items(), ("FinishedOnKey", "")]
    assert flaw(posted("/v", fields, judge_signs(f"{PUBLIC}/v", fields))) is None


def test_a_field_that_twilio_adds_one_day_is_signed_like_the_others() -> None:
    fields = [*FORM.items(), ("BrandNew", "🎈 &=+%")]
    assert flaw(posted("/v", fields, judge_signs(f"{PUBLIC}/v", fields))) is None
    assert (
        flaw(posted("/v", FORM.items(), judge_signs(f"{PUBLIC}/v", fields)))
        is SignatureFlaw.WRONG
    )


def test_repeated_fields_count_once_each_value() -> None:
    fields = [("Event", "b"), ("Event", "a"), ("Event", "b"), ("A", "1")]
    assert flaw(posted("/v", fields, judge_signs(f"{PUBLIC}/v", fields))) is None


def test_a_get_is_signed_by_its_address_alone() -> None:
    target = "/v?CallSid=CA1&From=%2B15550100"
    assert (
        flaw(
            SignedRequest(target, {"x-twilio-signature": judge_signs(PUBLIC + target)})
        )
        is None
    )
    assert (
        flaw(
            SignedRequest(
                target + "0", {"x-twilio-signature": judge_signs(PUBLIC + target)}
            )
        )
        is SignatureFlaw.WRONG
    )


def json_request(body: bytes, hashed: bytes | None = None) -> SignedRequest:
    target = f"/v?bodySHA256={hashlib.sha256(body if hashed is None else hashed).hexdigest()}"
    return SignedRequest(
        target,
        {
            "x-twilio-signature": judge_signs(PUBLIC + target),
            "content-type": "application/json",
        },
        body,
    )


def test_a_json_body_is_covered_by_the_hash_in_its_address() -> None:
    body = json.dumps({"say": "Grüße"}).encode()
    request = json_request(body)
    assert flaw(request) is None
    assert JUDGE.validate(
        PUBLIC + request.target, body.decode(), request.headers["x-twilio-signature"]
    )


def test_a_json_body_that_was_changed_is_refused() -> None:
    assert flaw(json_request(b'{"a":2}', hashed=b'{"a":1}')) is SignatureFlaw.WRONG


def test_a_body_that_no_signature_covers_is_refused() -> None:
    headers = {
        "x-twilio-signature": judge_signs(f"{PUBLIC}/v"),
        "content-type": "application/json",
    }
    assert flaw(SignedRequest("/v", headers, b'{"a":1}')) is SignatureFlaw.WRONG
    assert (
        flaw(
            SignedRequest(
                "/v", {"x-twilio-signature": headers["x-twilio-signature"]}, b"a=1"
            )
        )
        is SignatureFlaw.WRONG
    )


@pytest.mark.parametrize(
    ("token", "public_url"),
    [
        (None, PUBLIC),
        ("", PUBLIC),
        (TOKEN, None),
        (TOKEN, ""),
        (TOKEN, "ftp://x"),
        (TOKEN, "https://"),
        (TOKEN, "https://h:port"),
    ],
)
def test_without_a_key_or_an_address_nothing_is_believed(
    token: str | None, public_url: str | None
) -> None:
    request = posted(
        "/v",
        FORM.items(),
        str(RequestValidator("").compute_signature(f"{PUBLIC}/v", FORM)),
    )
    assert flaw(request, public_url, token) is SignatureFlaw.NO_KEY


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, SignatureFlaw.MISSING),
        ({"x-twilio-signature": ""}, SignatureFlaw.MALFORMED),
        (
            {"x-twilio-signature": "a", "X-Twilio-Signature": "b"},
            SignatureFlaw.MALFORMED,
        ),
        ({"x-twilio-signature": "ÄÖ\udcff"}, SignatureFlaw.WRONG),
        ({"x-twilio-signature": "x" * 100_000}, SignatureFlaw.WRONG),
    ],
)
def test_an_unreadable_signature_is_a_flaw_and_never_an_exception(
    headers: dict[str, str], expected: SignatureFlaw
) -> None:
    assert flaw(SignedRequest("/v", headers)) is expected


@pytest.mark.parametrize(
    "body",
    [b"&".join(b"a=1" for _ in range(600)), b"x" * 300_000],
)
def test_a_form_that_cannot_be_read_is_a_flaw_and_never_an_exception(
    body: bytes,
) -> None:
    assert (
        flaw(
            SignedRequest(
                "/v", {"x-twilio-signature": "x", "content-type": FORM_TYPE}, body
            )
        )
        is SignatureFlaw.MALFORMED
    )


@pytest.mark.parametrize(
    "body", [b"SpeechResult=Hi+%F0%9F", b"SpeechResult=Hi+\xf0\x9f"]
)
def test_a_text_that_was_cut_inside_an_emoji_is_proven_by_its_bytes(
    body: bytes,
) -> None:
    signed = f"{PUBLIC}/v".encode() + b"SpeechResultHi \xf0\x9f"
    signature = base64.b64encode(hmac.digest(TOKEN.encode(), signed, "sha1")).decode()
    headers = {"x-twilio-signature": signature, "content-type": FORM_TYPE}
    assert flaw(SignedRequest("/v", headers, body)) is None
    assert flaw(SignedRequest("/v", headers, body + b"a")) is SignatureFlaw.WRONG


def test_a_target_that_cannot_be_written_down_is_a_flaw() -> None:
    assert (
        flaw(SignedRequest("/v\udcff", {"x-twilio-signature": "x"}))
        is SignatureFlaw.MALFORMED
    )


_fields = st.lists(
    st.tuples(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
        st.text(st.characters(codec="utf-8"), max_size=12),
    ),
    max_size=6,
)


@given(
    fields=_fields,
    target=st.from_regex(r"/[a-z]{1,8}(\?[a-z]=[a-z0-9%]{0,5})?", fullmatch=True),
)
def test_whatever_the_judge_signs_is_accepted(
    fields: list[tuple[str, str]], target: str
) -> None:
    assert flaw(posted(target, fields, judge_signs(PUBLIC + target, fields))) is None


@given(data=st.data())
def test_any_change_of_address_body_or_signature_is_refused(
    data: st.DataObject,
) -> None:
    """Values only: Twilio joins names and values without a mark between, so `a=bc` and `ab=c`
    sign alike.

    Of an address the judge drops an empty query or fragment and is milder than we are.
    """
    signature = judge_signs(f"{PUBLIC}/twilio/voice", FORM.items())
    part = data.draw(
        st.sampled_from(["target", "value", "added", "removed", "signature", "token"])
    )
    target, fields, token = "/twilio/voice", dict(FORM), TOKEN
    if part == "target":
        target += data.draw(
            st.text(st.characters(codec="ascii"), min_size=1, max_size=5)
        )
    elif part == "value":
        name = data.draw(st.sampled_from(sorted(FORM)))
        fields[name] = data.draw(st.text(st.characters(codec="utf-8"), max_size=20))
        assume(fields[name] != FORM[name])
    elif part == "added":
        fields[data.draw(st.text("abcxyz", min_size=1, max_size=5))] = "1"
    elif part == "removed":
        del fields[data.draw(st.sampled_from(sorted(FORM)))]
    elif part == "signature":
        place = data.draw(st.integers(0, len(signature) - 1))
        other = data.draw(st.characters(codec="ascii"))
        assume(other != signature[place])
        signature = signature[:place] + other + signature[place + 1 :]
    else:
        token = data.draw(
            st.text(st.characters(codec="utf-8"), min_size=1).filter(
                lambda text: text.rstrip("\0") != TOKEN
            )
        )
    request = posted(target, fields.items(), signature)
    assert flaw(request, token=token) is SignatureFlaw.WRONG
    assert part == "target" or not RequestValidator(token).validate(
        PUBLIC + target, fields, signature
    )
