"""The carriers' REST APIs: hang up, dial, send messages. One client for each carrier."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Protocol

import httpx2

from aftercall.clock import Clock
from aftercall.errors import CallOver, CarrierError, CarrierUnreachable, ConfigError
from aftercall.phone.notices import ControlRequest
from aftercall.phone.telnyx import TelnyxControl
from aftercall.phone.twilio import TwilioControl
from aftercall.rest import Explain, RestClient, RetryRule, basic_auth, read_json
from aftercall.settings.providers import (
    TelnyxSettings,
    TwilioSettings,
    make_key_headers,
)

# a caller waits behind most commands
RETRY_RULE = RetryRule(timeout_s=4.0, pauses_s=(0.2, 0.8))


class CarrierControl(Protocol):
    """What the app does with a call on every carrier."""

    async def hang_up(self, sid: str) -> bool:
        """False if the call had ended before. Raises CarrierError."""
        ...

    async def close(self) -> None: ...


class CarrierClient(RestClient):
    """Sends commands to one carrier."""

    refusal = CarrierError
    no_answer = CarrierUnreachable

    async def send(self, request: ControlRequest) -> Any:
        """The answer's JSON. Raises CallOver, CarrierUnreachable or CarrierError."""
        body = await self.request(
            request.action,
            request.method,
            request.target,
            is_repeatable=request.is_repeatable,
            content=request.body,
            headers={"Content-Type": request.content_type},
        )
        return read_json(body)

    async def hang_up(self, request: ControlRequest) -> bool:
        """False if the call had ended before."""
        try:
            await self.send(request)
        except CallOver:
            return False
        return True


def make_explainer(name: str, is_over: Callable[[int, bytes], bool]) -> Explain:
    """A command may reach a call that has ended."""

    def explain(status: int, body: bytes) -> CallOver | None:
        late = f"{name}: the call is over, the command comes too late"
        return CallOver(late) if is_over(status, body) else None

    return explain


class TwilioRest:
    """The few requests we make to Twilio's REST API."""

    def __init__(
        self,
        settings: TwilioSettings,
        clock: Clock,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        account = settings.account_sid
        token = settings.auth_token
        if not account or token is None:
            raise ConfigError(
                "twilio: set TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN to steer calls"
            )
        self._requests = TwilioControl(account)
        authorization = basic_auth(account, token.get_secret_value())
        self._client = CarrierClient(
            "Twilio",
            settings.api_url,
            {"Authorization": authorization},
            RETRY_RULE,
            make_explainer("Twilio", self._requests.is_call_over),
            clock,
            transport,
        )

    async def hang_up(self, sid: str) -> bool:
        return await self._client.hang_up(self._requests.hang_up(sid))

    async def dial(self, fields: Mapping[str, str]) -> str:
        """Start a call with these fields of Twilio's. Returns its id."""
        return _read_sid(await self._client.send(self._requests.dial(fields)))

    async def send_message(self, sender: str, to: str, text: str) -> str:
        """Returns the id of the message. An error may hide that it was sent."""
        return _read_sid(
            await self._client.send(self._requests.send_message(sender, to, text))
        )

    async def find_message(self, to: str, text: str, since: date) -> str | None:
        """The id of a message with this text that was sent already."""
        answer = await self._client.send(self._requests.list_messages(to, since))
        for message in answer.get("messages", ()) if isinstance(answer, dict) else ():
            if message.get("body") == text and message.get("status") != "failed":
                return str(message["sid"])
        return None

    async def close(self) -> None:
        await self._client.close()


class TelnyxRest:
    """Hangs up over Telnyx's REST API."""

    def __init__(
        self,
        settings: TelnyxSettings,
        clock: Clock,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        if settings.api_key is None:
            raise ConfigError("telnyx: set TELNYX_API_KEY to steer calls")
        self._requests = TelnyxControl()
        self.client = CarrierClient(
            "Telnyx",
            settings.api_url,
            make_key_headers("telnyx", settings.api_key),
            RETRY_RULE,
            make_explainer("Telnyx", self._requests.is_call_over),
            clock,
            transport,
        )

    async def hang_up(self, sid: str) -> bool:
        return await self.client.hang_up(self._requests.hang_up(sid))

    async def close(self) -> None:
        await self.client.close()


def _read_sid(answer: Any) -> str:
    sid = answer.get("sid") if isinstance(answer, dict) else None
    if not isinstance(sid, str):
        raise CarrierError("Twilio accepted the request but returned no id")
    return sid
