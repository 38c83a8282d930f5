"""What every carrier's control promises, against the emulated carriers."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from aftercall.carrier.control import CarrierControl, TelnyxRest, TwilioRest
from aftercall.clock import SystemClock
from aftercall.errors import CarrierError
from aftercall.lab import telnyx_rest, twilio_rest
from aftercall.lab.exchange import LabDial, LabNumber, PhoneNetwork
from aftercall.lab.leg import Leg
from aftercall.lab.rest import REFUSALS
from aftercall.lab.telnyx import EmulatedTelnyx, TelnyxCall
from aftercall.settings.providers import TelnyxSettings, TwilioSettings
from telnyx_setup import until

ACCOUNT, TOKEN, KEY = "AC" + "0" * 32, "token", "KEY"
NOWHERE = httpx2.MockTransport(lambda request: httpx2.Response(200))


@dataclass
class Side:
    control: CarrierControl
    stranger: CarrierControl
    lab: Any

    async def call(self) -> Leg | TelnyxCall:
        """A call that is going on."""
        if isinstance(self.lab, EmulatedTelnyx):
            call = await self.lab.ring("https://agent.example", caller="+15550100")
            call.state = "answered"
            return call
        leg: Leg = self.lab.dial(
            LabDial(
                "+15550105", "+15550100", "<Response><Pause length='600'/></Response>"
            )
        )
        await until(lambda: leg.state == "in-progress")
        return leg

    def sid(self, call: Leg | TelnyxCall) -> str:
        return call.sid if isinstance(call, Leg) else call.control_id


def make_network() -> PhoneNetwork:
    numbers = {"+15550105": LabNumber(outcome="voicemail")}
    return PhoneNetwork(
        TOKEN, ACCOUNT, numbers=numbers, transport=NOWHERE, in_real_time=True
    )


def make_twilio(app: FastAPI, token: str = TOKEN) -> TwilioRest:
    settings = TwilioSettings(
        account_sid=ACCOUNT, auth_token=SecretStr(token), api_url="http://lab"
    )
    return TwilioRest(settings, SystemClock(), httpx2.ASGITransport(app))


def make_telnyx(app: FastAPI, key: str = KEY) -> TelnyxRest:
    settings = TelnyxSettings(api_key=SecretStr(key), api_url="http://lab")
    return TelnyxRest(settings, SystemClock(), httpx2.ASGITransport(app))


@pytest.fixture(params=["twilio", "telnyx"])
async def side(request: pytest.FixtureRequest) -> AsyncIterator[Side]:
    app = FastAPI(exception_handlers=REFUSALS)
    lab: Any
    if request.param == "twilio":
        lab = make_network()
        app.include_router(twilio_rest.make_router(lab))
        side = Side(make_twilio(app), make_twilio(app, "wrong"), lab)
    else:
        lab = EmulatedTelnyx(KEY, transport=NOWHERE)
        app.include_router(telnyx_rest.make_router(lab))
        side = Side(make_telnyx(app), make_telnyx(app, "wrong"), lab)
    async with lab:
        yield side
        for control in (side.control, side.stranger):
            await control.close()


@pytest.fixture
async def twilio() -> AsyncIterator[tuple[TwilioRest, PhoneNetwork]]:
    app = FastAPI(exception_handlers=REFUSALS)
    async with make_network() as lab:
        app.include_router(twilio_rest.make_router(lab))
        control = make_twilio(app)
        yield control, lab
        await control.close()


async def test_a_call_is_hung_up_and_hanging_up_again_is_no_error(side: Side) -> None:
    call = await side.call()
    assert await side.control.hang_up(side.sid(call)) is True
    await until(lambda: call.is_over)
    assert await side.control.hang_up(side.sid(call)) is False


async def test_wrong_credentials_are_a_refusal(side: Side) -> None:
    call = await side.call()
    with pytest.raises(CarrierError, match="401"):
        await side.stranger.hang_up(side.sid(call))


async def test_a_twilio_message_is_sent(
    twilio: tuple[TwilioRest, PhoneNetwork],
) -> None:
    control, lab = twilio
    sid = await control.send_message("+15550101", "+15550100", "It is done.")
    (message,) = lab.messages
    assert (message["from"], message["to"], message["body"]) == (
        "+15550101",
        "+15550100",
        "It is done.",
    )
    assert sid


async def test_twilio_dials(twilio: tuple[TwilioRest, PhoneNetwork]) -> None:
    control, lab = twilio
    page = "<Response><Pause length='600'/></Response>"
    sid = await control.dial({"To": "+15550105", "From": "+15550100", "Twiml": page})
    await until(lambda: lab.legs[sid].state == "in-progress")
    assert await control.hang_up(sid) is True
