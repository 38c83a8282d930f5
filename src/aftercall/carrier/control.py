"""What every carrier lets us do with a call and a number, whichever it is: one port, two adapters."""

from base64 import b64encode
from typing import Any, Protocol

import httpx2

from aftercall.carrier.client import CarrierClient
from aftercall.clock import Clock
from aftercall.errors import CallOver, CarrierError, ConfigError
from aftercall.phone.telnyx_control import TelnyxControl
from aftercall.phone.twilio_control import TwilioControl
from aftercall.settings import TelnyxSettings, TwilioSettings


class CarrierControl(Protocol):
    async def hang_up(self, sid: str) -> bool:
        """False if the call had ended before. Raises CarrierError."""
        ...

    async def start_recording(self, sid: str, *, callback: str | None = None) -> bool:
        """Both sides, on channels of their own; False if the call had ended before. Raises CarrierError."""
        ...

    async def send_message(self, to: str, text: str, *, key: str) -> str:
        """A text message from our own number; its id at the carrier. Raises CarrierError, and ConfigError without a number."""
        ...

    async def close(self) -> None: ...


class TwilioRest:
    def __init__(self, settings: TwilioSettings, clock: Clock, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        account, token = settings.account_sid, settings.auth_token
        if not account or token is None:
            raise ConfigError("twilio: set TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN to steer calls")
        self._commands = TwilioControl(account)
        self._number = settings.phone_number
        headers = {"Authorization": basic(account, token.get_secret_value())}
        self._client = CarrierClient("Twilio", settings.api_url, headers, self._commands.is_over, clock, transport)

    async def hang_up(self, sid: str) -> bool:
        try:
            await self._client.send(self._commands.hang_up(sid))
        except CallOver:
            return False
        return True

    async def start_recording(self, sid: str, *, callback: str | None = None) -> bool:
        try:
            await self._client.send(self._commands.start_recording(sid, callback=callback))
        except CallOver:
            return False
        return True

    async def send_message(self, to: str, text: str, *, key: str) -> str:
        if not self._number:
            raise ConfigError("twilio: set TWILIO_PHONE_NUMBER to send messages")
        return _id(await self._client.send(self._commands.send_message(self._number, to, text, key=key)), "sid")

    async def close(self) -> None:
        await self._client.close()


class TelnyxRest:
    def __init__(self, settings: TelnyxSettings, clock: Clock, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        if settings.api_key is None:
            raise ConfigError("telnyx: set TELNYX_API_KEY to steer calls")
        self._commands = TelnyxControl()
        self._number = settings.phone_number
        headers = {"Authorization": f"Bearer {settings.api_key.get_secret_value()}"}
        self.client = CarrierClient("Telnyx", settings.api_url, headers, self._commands.is_over, clock, transport)

    async def hang_up(self, sid: str) -> bool:
        try:
            await self.client.send(self._commands.hang_up(sid))
        except CallOver:
            return False
        return True

    async def start_recording(self, sid: str, *, callback: str | None = None) -> bool:
        try:
            await self.client.send(self._commands.start_recording(sid))
        except CallOver:
            return False
        return True

    async def send_message(self, to: str, text: str, *, key: str) -> str:
        if not self._number:
            raise ConfigError("telnyx: set TELNYX_PHONE_NUMBER to send messages")
        answer = await self.client.send(self._commands.send_message(self._number, to, text, key=key))
        return _id(answer.get("data") if isinstance(answer, dict) else None, "id")

    async def close(self) -> None:
        await self.client.close()


def basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def _id(data: Any, name: str) -> str:
    found = data.get(name) if isinstance(data, dict) else None
    if not isinstance(found, str):
        raise CarrierError("the carrier took the message but did not name it")
    return found
