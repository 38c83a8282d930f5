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
from aftercall.errors import CarrierError, ConfigError
from aftercall.lab import telnyx_rest, twilio_rest
from aftercall.lab.exchange import LabDial, PhoneNetwork
from aftercall.lab.leg import Leg
from aftercall.lab.numbers import LabNumber
from aftercall.lab.telnyx import EmulatedTelnyx, TelnyxCall
from aftercall.settings.providers import TelnyxSettings, TwilioSettings
from towns import until

ACCOUNT, TOKEN, KEY = "AC" + "0" * 32, "token", "KEY"
NOWHERE = httpx2.MockTransport(lambda request: httpx2.Response(200))


@dataclass
class Side:
    control: CarrierControl
    stranger: CarrierControl
    without_number: CarrierControl
    lab: Any

    async def call(self) -> Leg | TelnyxCall:
        """A call that is going on."""
        if isinstance(self.lab, EmulatedTelnyx):
            call = await self.lab.ring("https://agent.example", caller="+15550100")
            call.state = "answered"
            return call
        leg: Leg = self.lab.dial(
            LabDial("+15550105", "+15550100", "<Response><Pause length='600'/></Response>")
        )
        await until(lambda: leg.state == "in-progress")
        return leg

    def sid(self, call: Leg | TelnyxCall) -> str:
        return call.sid if isinstance(call, Leg) else call.control_id

    def recordings(self, call: Leg | TelnyxCall) -> int:
        return len(call.recordings) if isinstance(call, Leg) else int(call.is_recorded)

    def texts(self) -> list[tuple[str, str, str]]:
        return [
            (message["from"], message["to"], message.get("text", message.get("body")))
            for message in self.lab.messages
        ]


@pytest.fixture(params=["twilio", "telnyx"])
async def side(request: pytest.FixtureRequest) -> AsyncIterator[Side]:
    app, clock = FastAPI(), SystemClock()
    transport = httpx2.ASGITransport(app)
    if request.param == "twilio":
        lab: Any = PhoneNetwork(
            TOKEN,
            ACCOUNT,
            numbers={"+15550105": LabNumber(outcome="voicemail")},
            transport=NOWHERE,
            in_real_time=True,
        )
        app.include_router(twilio_rest.make_router(lab))

        def make(secret: str = TOKEN, number: str | None = "+15550101") -> CarrierControl:
            settings = TwilioSettings(
                account_sid=ACCOUNT,
                auth_token=SecretStr(secret),
                phone_number=number,
                api_url="http://lab",
            )
            return TwilioRest(settings, clock, transport)
    else:
        lab = EmulatedTelnyx(KEY, transport=NOWHERE)
        app.include_router(telnyx_rest.make_router(lab))

        def make(secret: str = KEY, number: str | None = "+15550101") -> CarrierControl:
            return TelnyxRest(
                TelnyxSettings(
                    api_key=SecretStr(secret), phone_number=number, api_url="http://lab"
                ),
                clock,
                transport,
            )

    async with lab:
        side = Side(make(), make("wrong"), make(number=None), lab)
        yield side
        for control in (side.control, side.stranger, side.without_number):
            await control.close()


async def test_a_call_is_hung_up_and_hanging_up_again_is_no_error(side: Side) -> None:
    call = await side.call()
    assert await side.control.hang_up(side.sid(call)) is True
    await until(lambda: call.is_over)
    assert await side.control.hang_up(side.sid(call)) is False


async def test_a_recording_is_started_on_a_call_that_goes_on(side: Side) -> None:
    call = await side.call()
    assert (
        await side.control.start_recording(
            side.sid(call), callback="https://calls.example/twilio/recording"
        )
        is True
    )
    assert side.recordings(call) == 1
    await side.control.hang_up(side.sid(call))
    await until(lambda: call.is_over)
    assert await side.control.start_recording(side.sid(call)) is False


async def test_a_message_goes_out_from_our_number(side: Side) -> None:
    assert await side.control.send_message("+15550100", "It is done.", key="k1")
    assert side.texts() == [("+15550101", "+15550100", "It is done.")]


async def test_wrong_credentials_are_a_refusal(side: Side) -> None:
    with pytest.raises(CarrierError, match="401"):
        await side.stranger.send_message("+15550100", "It is done.", key="k1")
    assert side.texts() == []


async def test_without_a_number_nothing_is_sent(side: Side) -> None:
    with pytest.raises(ConfigError, match="PHONE_NUMBER"):
        await side.without_number.send_message("+15550100", "It is done.", key="k1")
