"""Steering calls: the requests that the carriers' own SDKs would send, without sending any."""

import json
from datetime import date
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from aftercall.phone.notices import ControlRequest
from aftercall.phone.telnyx import TelnyxControl, unpack_state
from aftercall.phone.twilio import TwilioControl

ACCOUNT = "AC" + "0" * 32
CALL = "CA" + "0" * 32
LEG = "v3:ZkP3-q_1"
TWILIO = TwilioControl(ACCOUNT)
TELNYX = TelnyxControl()


class TwilioTape:
    """Stands in for the SDK's HTTP client and keeps what it was asked to send."""

    def request(self, method: str, url: str, **rest: Any) -> Any:
        from twilio.http.response import Response

        form: list[tuple[str, str]] = []
        for name, value in rest["data"].items():
            form += [
                (name, item) for item in (value if isinstance(value, list) else [value])
            ]
        self.sent = (method, urlsplit(url).path, sorted(form))
        return Response(200, "{}")


@pytest.fixture
def twilio_sdk() -> tuple[Any, TwilioTape]:
    from twilio.rest import Client

    tape = TwilioTape()
    return Client(ACCOUNT, "token", http_client=tape), tape


def as_sent(request: ControlRequest) -> tuple[str, str, list[tuple[str, str]]]:
    assert request.content_type == "application/x-www-form-urlencoded"
    return (
        request.method,
        request.path,
        sorted(parse_qsl(request.body.decode(), keep_blank_values=True)),
    )


def test_twilio_is_asked_to_hang_up_as_its_sdk_would(
    twilio_sdk: tuple[Any, TwilioTape],
) -> None:
    client, tape = twilio_sdk
    client.calls(CALL).update(status="completed")
    assert as_sent(TWILIO.hang_up(CALL)) == tape.sent


def test_twilio_is_asked_to_dial_as_its_sdk_would(
    twilio_sdk: tuple[Any, TwilioTape],
) -> None:
    client, tape = twilio_sdk
    client.calls.create(
        to="+15550100", from_="+15550101", url="https://x.org/voice?call=1"
    )
    fields = {
        "To": "+15550100",
        "From": "+15550101",
        "Url": "https://x.org/voice?call=1",
    }
    request = TWILIO.dial(fields)
    assert as_sent(request) == tape.sent
    assert not request.is_repeatable


def test_twilio_is_asked_to_send_a_message_as_its_sdk_would(
    twilio_sdk: tuple[Any, TwilioTape],
) -> None:
    client, tape = twilio_sdk
    client.messages.create(
        from_="+15550101", to="+15550100", body="It is done & dusted."
    )
    request = TWILIO.send_message("+15550101", "+15550100", "It is done & dusted.")
    assert as_sent(request) == tape.sent
    assert not request.is_repeatable


def test_a_list_of_twilio_messages_is_asked_for_by_query() -> None:
    request = TWILIO.list_messages("+15550100", date(2026, 2, 13))
    path = f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json"
    query = "To=%2B15550100&DateSent%3E=2026-02-13&PageSize=200"
    assert (request.method, request.target, request.body) == (
        "GET",
        f"{path}?{query}",
        b"",
    )


def test_telnyx_is_asked_for_recordings_as_its_sdk_would() -> None:
    import httpx
    import telnyx

    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"data": {}})

    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        telnyx.Telnyx(api_key="x", http_client=http).recordings.retrieve("rec-1")
    recording = TELNYX.find_recording("rec-1")
    assert (recording.method, recording.path) == (sent[0].method, sent[0].url.path)


def telnyx_sends(
    action: str, *words: str, **fields: Any
) -> tuple[str, str, dict[str, Any]]:
    """What the SDK puts on the wire for an action with these fields."""
    import httpx
    import telnyx

    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"data": {"result": "ok"}})

    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        sdk = telnyx.Telnyx(api_key="x", http_client=http)
        getattr(sdk.calls.actions, action)(*words, **fields)
    return sent[0].method, sent[0].url.path, json.loads(sent[0].content or b"{}")


@pytest.mark.parametrize(
    ("action", "request_"),
    [
        (
            "answer",
            TELNYX.answer(
                LEG,
                cause="e1",
                stream_url="wss://x.org/telnyx/media",
                state={"token": "t"},
            ),
        ),
        ("answer", TELNYX.answer(LEG, cause="e1")),
        ("speak", TELNYX.speak(LEG, "Grüß Gott", cause="e3", language="de-DE")),
        ("start_transcription", TELNYX.start_transcription(LEG, cause="e5")),
        ("start_recording", TELNYX.start_recording(LEG)),
        ("hangup", TELNYX.hang_up(LEG)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_telnyx_is_asked_as_its_sdk_would(
    action: str, request_: ControlRequest
) -> None:
    """The SDK takes only fields that it knows, so a wrong name would fail here."""
    assert request_.json is not None
    method, path, body = telnyx_sends(action, LEG, **request_.json)
    assert (request_.method, request_.path, json.loads(request_.body)) == (
        method,
        path,
        body,
    )
    assert request_.content_type == "application/json"


def test_a_telnyx_stream_is_always_asked_for_as_raw_mu_law_of_the_caller_only() -> None:
    request_ = TELNYX.answer(LEG, cause="e", stream_url="wss://x")
    assert request_.json is not None
    assert request_.json["stream_bidirectional_mode"] == "rtp"
    assert request_.json["stream_bidirectional_codec"] == "PCMU"
    assert request_.json["stream_codec"] == "PCMU"
    assert request_.json["stream_track"] == "inbound_track"


def test_a_webhook_that_comes_twice_cannot_answer_twice() -> None:
    first, again = (
        TELNYX.answer(LEG, cause="event-1"),
        TELNYX.answer(LEG, cause="event-1"),
    )
    other = TELNYX.answer(LEG, cause="event-2")
    recording = TELNYX.start_recording(LEG, cause="event-1")
    ids = [
        request.json["command_id"]
        for request in (first, again, other, recording)
        if request.json
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


def test_words_for_ourselves_travel_as_base64() -> None:
    request = TELNYX.answer(LEG, cause="e", state={"token": "one-time"})
    assert request.json is not None
    assert unpack_state(request.json["client_state"]) == {"token": "one-time"}


@pytest.mark.parametrize("control", [TWILIO, TELNYX], ids=["twilio", "telnyx"])
def test_an_id_cannot_lead_to_another_path(
    control: TwilioControl | TelnyxControl,
) -> None:
    path = control.hang_up("../../Accounts?x=1#y").path
    assert ".." not in path.split("/")
    assert not {"?", "#"} & set(path)


@pytest.mark.parametrize(
    ("control", "status", "body", "is_over"),
    [
        (TWILIO, 404, b'{"code":20404,"message":"gone","status":404}', True),
        (TWILIO, 404, b"<html>", False),
        (TWILIO, 404, b"[]", False),
        (TWILIO, 500, b'{"code":20404}', False),
        (TELNYX, 422, b'{"errors":[{"code":"90018"}]}', True),
        (TELNYX, 422, b'{"errors":[{"code":90018}]}', True),
        (TELNYX, 422, b'{"errors":[{"code":"90015"}]}', False),
        (TELNYX, 422, b'{"errors":3}', False),
        (TELNYX, 422, b"[" * 100_000, False),
        (TELNYX, 404, b'{"errors":[{"code":"90018"}]}', False),
    ],
)
def test_an_answer_that_the_call_is_gone_is_told_from_other_failures(
    control: TwilioControl | TelnyxControl, status: int, body: bytes, is_over: bool
) -> None:
    assert control.is_call_over(status, body) is is_over


def test_what_is_spoken_is_in_no_repr() -> None:
    assert "canary" not in repr(TELNYX.speak(LEG, "canary", cause="e"))
    assert "canary" not in repr(TWILIO.send_message("+15550101", "+15550100", "canary"))
