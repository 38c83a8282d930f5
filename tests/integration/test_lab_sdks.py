"""The carriers' own SDKs talk to the lab without patches, and see what they would see of the
real ones.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from aftercall.lab.exchange import LabNumber
from aftercall.lab.server import Lab
from aftercall.lab.telnyx import EmulatedTelnyx
from loopback_server import ACCOUNT, KEY, TOKEN, lab_box

TWIML = "<Response><Say>Hello, this is a test.</Say><Pause length='3'/></Response>"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with lab_box() as lab:
        lab.exchange.numbers["+15550102"] = LabNumber(outcome="busy")
        lab.exchange.numbers["+15550105"] = LabNumber(outcome="voicemail")
        yield lab


@pytest.fixture
def twilio(lab: Lab) -> Any:
    return twilio_client(lab, TOKEN)


def twilio_client(lab: Lab, token: str) -> Any:
    from twilio.rest import Client

    client = Client(ACCOUNT, token)
    client.api.base_url = lab.address
    return client


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(500):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to that")


def test_twilios_client_places_a_call_and_sees_how_it_ends(
    lab: Lab, twilio: Any
) -> None:
    call = twilio.calls.create(to="+15550102", from_="+15550100", twiml=TWIML)
    assert call.status == "queued"
    until(lambda: twilio.calls(call.sid).fetch().status == "busy")
    call = twilio.calls.create(
        to="+15550105", from_="+15550100", twiml=TWIML, machine_detection="Enable"
    )
    until(lambda: twilio.calls(call.sid).fetch().status == "completed")
    assert twilio.calls(call.sid).fetch().answered_by == "machine_start"


def test_twilios_client_is_refused_as_by_twilio(lab: Lab, twilio: Any) -> None:
    from twilio.base.exceptions import TwilioRestException

    def code(ask: Callable[[], object]) -> tuple[int, int]:
        with pytest.raises(TwilioRestException) as refusal:
            ask()
        return refusal.value.status, refusal.value.code

    assert code(
        lambda: twilio_client(lab, "wrong").calls.create(
            to="+1", from_="+1", twiml=TWIML
        )
    ) == (401, 20003)
    assert code(lambda: twilio.calls("CA" + "9" * 32).update(status="completed")) == (
        404,
        20404,
    )
    assert code(
        lambda: twilio.calls.create(to="five", from_="+15550100", twiml=TWIML)
    ) == (
        400,
        21211,
    )
    assert code(
        lambda: twilio.messages.create(to="+15550100", from_="+15550101", body="")
    ) == (
        400,
        21602,
    )


def test_twilios_client_sends_a_message_and_steers_a_call(
    lab: Lab, twilio: Any
) -> None:
    message = twilio.messages.create(
        to="+15550100", from_="+15550101", body="It is done."
    )
    assert (message.status, lab.exchange.messages[-1]["body"]) == (
        "queued",
        "It is done.",
    )
    lab.exchange.in_real_time = True
    call = twilio.calls.create(
        to="+15550105",
        from_="+15550100",
        twiml="<Response><Pause length='60'/></Response>",
    )
    until(lambda: twilio.calls(call.sid).fetch().status == "in-progress")
    recording = twilio.calls(call.sid).recordings.create(recording_channels="dual")
    assert recording.sid.startswith("RE")
    twilio.calls(call.sid).update(twiml="<Response><Say>Sorry</Say></Response>")
    until(lambda: twilio.calls(call.sid).fetch().status == "completed")
    lab.exchange.in_real_time = False
    audio = httpx2.get(
        f"{lab.address}/2010-04-01/Accounts/{ACCOUNT}/Recordings/{recording.sid}.wav",
        auth=(ACCOUNT, TOKEN),
    )
    assert audio.content.startswith(b"RIFF")
    assert (
        httpx2.get(
            f"{lab.address}/2010-04-01/Accounts/{ACCOUNT}/Recordings/{recording.sid}"
        ).status_code
        == 401
    )


def telnyx_client(lab: Lab, key: str = KEY) -> Any:
    import telnyx

    return telnyx.Telnyx(api_key=key, base_url=f"{lab.address}/v2", max_retries=0)


def test_telnyxs_client_dials_speaks_and_is_told_when_the_call_is_over(
    lab: Lab,
) -> None:
    import telnyx

    with telnyx_client(lab) as client:
        dialled = client.calls.dial(
            connection_id="1", to="+15550109", from_="+15550100"
        ).data
        control = dialled.call_control_id
        assert (
            client.calls.actions.speak(
                control, payload="Hello.", voice="female"
            ).data.result
            == "ok"
        )
        assert client.calls.actions.hangup(control).data.result == "ok"
        assert lab.telnyx.calls[control].heard == ["Hello."]
        with pytest.raises(telnyx.UnprocessableEntityError) as refusal:
            client.calls.actions.speak(control, payload="Hello?", voice="female")
        assert refusal.value.body["errors"][0]["code"] == "90018"
        sent = client.messages.send(
            from_="+15550101", to="+15550100", text="It is done."
        )
        assert sent.data.id == lab.telnyx.messages[-1]["id"]
    with (
        telnyx_client(lab, "wrong") as stranger,
        pytest.raises(telnyx.AuthenticationError),
    ):
        stranger.calls.dial(connection_id="1", to="+15550109", from_="+15550100")


async def test_telnyxs_client_believes_the_labs_webhooks_and_no_others() -> None:
    import telnyx

    sent: list[httpx2.Request] = []

    def take(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200)

    async with EmulatedTelnyx(transport=httpx2.MockTransport(take)) as lab:
        call = await lab.ring("https://agent.example/telnyx/events", caller="+15550100")
        await lab.hang_up(call)
        client = telnyx.Telnyx(api_key="x", public_key=lab.public_key)
        for request in sent:
            event = client.webhooks.unwrap(
                request.content.decode(), headers=dict(request.headers)
            )
            assert event.data.payload.call_control_id == call.control_id
        with pytest.raises(Exception, match=r"(?i)signature"):
            client.webhooks.unwrap(
                json.dumps({"data": {}}), headers=dict(sent[0].headers)
            )
        client.close()
    assert [json.loads(request.content)["data"]["event_type"] for request in sent] == [
        "call.initiated",
        "call.hangup",
    ]
