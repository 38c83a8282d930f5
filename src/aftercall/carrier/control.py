"""The carriers' REST APIs: hang up, dial, send messages. One client for each carrier."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Protocol

import httpx2

from aftercall.clock import Clock
from aftercall.errors import (
    CallOver,
    CarrierError,
    CarrierUnreachable,
    ConfigError,
    describe_network_error,
)
from aftercall.phone.notices import ControlRequest
from aftercall.phone.telnyx import TelnyxControl
from aftercall.phone.twilio import TwilioControl
from aftercall.settings.providers import TelnyxSettings, TwilioSettings

TIMEOUT_S = 4.0  # a caller waits behind most commands
RETRY_PAUSES_S = (0.2, 0.8)

IsOver = Callable[[int, bytes], bool]


class CarrierControl(Protocol):
    """What the app does with a call on every carrier."""

    async def hang_up(self, sid: str) -> bool:
        """False if the call had ended before. Raises CarrierError."""
        ...

    async def close(self) -> None: ...


class CarrierClient:
    """Requests to one carrier's REST API."""

    def __init__(
        self,
        name: str,
        api_url: str,
        authorization: str,
        is_over: IsOver,
        clock: Clock,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """With a `transport` (the lab's, for example) no socket is opened."""
        self._name = name
        self._url = api_url.rstrip("/")
        self._headers = {"Authorization": authorization, "Accept": "application/json"}
        self._is_over = is_over
        self._clock = clock
        self._transport = transport
        self._http: httpx2.AsyncClient | None = None

    async def send(self, request: ControlRequest) -> Any:
        """The answer's JSON.

        Raises CallOver, CarrierUnreachable (a retry may help) or CarrierError (it will not).
        """
        for pause_s in RETRY_PAUSES_S:
            try:
                return await self._try(request)
            except CarrierUnreachable as error:
                never_arrived = isinstance(error.__cause__, httpx2.ConnectError)
                if not request.is_repeatable and not never_arrived:
                    raise
            await self._clock.sleep(pause_s)
        return await self._try(request)

    async def hang_up(self, request: ControlRequest) -> bool:
        try:
            await self.send(request)
        except CallOver:
            return False
        return True

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def _try(self, request: ControlRequest) -> Any:
        if self._http is None:
            self._http = httpx2.AsyncClient(
                timeout=TIMEOUT_S,
                trust_env=False,
                transport=self._transport,
                headers=self._headers,
            )
        url, headers = (
            self._url + request.target,
            {"Content-Type": request.content_type},
        )
        try:
            answer = await self._http.request(
                request.method, url, content=request.body, headers=headers
            )
        except httpx2.HTTPError as error:
            reason = describe_network_error(error)
            message = f"{self._name}: no answer to {request.action} ({reason})"
            raise CarrierUnreachable(message) from error
        return self._check_answer(request.action, answer.status_code, answer.content)

    def _check_answer(self, action: str, status: int, body: bytes) -> Any:
        if 200 <= status < 300:
            return _read_json(body)
        if self._is_over(status, body):
            raise CallOver(f"{self._name}: the call is over, {action} comes too late")
        if status == 429 or status >= 500:
            raise CarrierUnreachable(f"{self._name}: answered {status} to {action}")
        raise CarrierError(f"{self._name}: refused {action} with {status}{_code(body)}")


class TwilioRest:
    """The few requests we make to Twilio's REST API."""

    def __init__(
        self,
        settings: TwilioSettings,
        clock: Clock,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        account, token = settings.account_sid, settings.auth_token
        if not account or token is None:
            raise ConfigError(
                "twilio: set TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN to steer calls"
            )
        self._requests = TwilioControl(account)
        authorization = basic_auth(account, token.get_secret_value())
        is_over = self._requests.is_call_over
        self._client = CarrierClient(
            "Twilio", settings.api_url, authorization, is_over, clock, transport
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
        authorization = f"Bearer {settings.api_key.get_secret_value()}"
        is_over = self._requests.is_call_over
        self.client = CarrierClient(
            "Telnyx", settings.api_url, authorization, is_over, clock, transport
        )

    async def hang_up(self, sid: str) -> bool:
        return await self.client.hang_up(self._requests.hang_up(sid))

    async def close(self) -> None:
        await self.client.close()


def basic_auth(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def _read_json(body: bytes) -> Any:
    try:
        return json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return {}


def _read_sid(answer: Any) -> str:
    sid = answer.get("sid") if isinstance(answer, dict) else None
    if not isinstance(sid, str):
        raise CarrierError("Twilio accepted the request but returned no id")
    return sid


def _code(body: bytes) -> str:
    """The carrier's code of an error, where it has one."""
    data = _read_json(body)
    errors = data.get("errors") if isinstance(data, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else data
    code = first.get("code") if isinstance(first, dict) else None
    is_code = isinstance(code, int) or (isinstance(code, str) and code.isalnum())
    return f" (code {code})" if is_code else ""
