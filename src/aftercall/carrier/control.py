"""What every carrier lets us do with a call and a number, whichever it is: one port, two
adapters.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
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
from aftercall.phone.control import ControlRequest
from aftercall.phone.telnyx import TelnyxControl
from aftercall.phone.twilio import TwilioControl
from aftercall.settings.providers import TelnyxSettings, TwilioSettings

TIMEOUT_S = 4.0  # a caller waits behind most commands
TRIES = 3
RETRY_PAUSES_S = (0.2, 0.8)
IDEMPOTENCY_HEADER = "Idempotency-Key"

IsOver = Callable[[int, bytes], bool]


class CarrierClient:
    def __init__(
        self,
        name: str,
        api_url: str,
        headers: Mapping[str, str],
        is_over: IsOver,
        clock: Clock,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """`headers` carry the credentials.

        With a `transport` (the lab's, say) no socket is opened.
        """
        self._name = name
        self._url = api_url.rstrip("/")
        self._headers = dict(headers)
        self._is_over = is_over
        self._clock = clock
        self._transport = transport
        self._http: httpx2.AsyncClient | None = None

    async def send(self, request: ControlRequest) -> Any:
        """The answer's JSON.

        Raises CallOver, CarrierUnreachable (again may help) or CarrierError (it will not).
        """
        for pause_s in (*RETRY_PAUSES_S, None):
            try:
                return self._check_answer(request, await self._try(request))
            except CarrierUnreachable as error:
                if pause_s is None or not (
                    request.is_repeatable or isinstance(error.__cause__, httpx2.ConnectError)
                ):
                    raise
                await self._clock.sleep(pause_s)
        raise AssertionError  # the last try has returned or raised

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def _try(self, request: ControlRequest) -> httpx2.Response:
        if self._http is None:
            self._http = httpx2.AsyncClient(
                timeout=TIMEOUT_S, trust_env=False, transport=self._transport, headers=self._headers
            )
        headers = {"Content-Type": request.content_type, "Accept": "application/json"}
        if request.idempotency_key:
            headers[IDEMPOTENCY_HEADER] = request.idempotency_key
        try:
            return await self._http.request(
                request.method, self._url + request.path, content=request.body, headers=headers
            )
        except httpx2.HTTPError as error:
            raise CarrierUnreachable(
                f"{self._name}: no answer to {_action_of(request)} "
                f"({describe_network_error(error)})"
            ) from error

    def _check_answer(self, request: ControlRequest, answer: httpx2.Response) -> Any:
        status, body = answer.status_code, answer.content
        if 200 <= status < 300:
            return _read_json(body)
        if self._is_over(status, body):
            raise CallOver(f"{self._name}: the call is over, {_action_of(request)} comes too late")
        if status == 429 or status >= 500:
            raise CarrierUnreachable(f"{self._name}: answered {status} to {_action_of(request)}")
        raise CarrierError(
            f"{self._name}: refused {_action_of(request)} with {status}{_code(body)}"
        )


def _action_of(request: ControlRequest) -> str:
    """The last word of the path says what was asked; ids and fields stay out of messages."""
    return (
        request.path.rpartition("/")[2].removesuffix(".json")
        if "/actions/" in request.path
        else request.method
    )


def _read_json(body: bytes) -> Any:
    try:
        return json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return {}


def _code(body: bytes) -> str:
    """The carrier's own code of an error, where it has one."""
    data = _read_json(body)
    if not isinstance(data, dict):
        return ""
    errors = data.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else data
    code = first.get("code") if isinstance(first, dict) else None
    return (
        f" (code {code})"
        if isinstance(code, int) or (isinstance(code, str) and code.isalnum())
        else ""
    )


class CarrierControl(Protocol):
    async def hang_up(self, sid: str) -> bool:
        """False if the call had ended before. Raises CarrierError."""
        ...

    async def start_recording(self, sid: str, *, callback: str | None = None) -> bool:
        """Both sides, on channels of their own; False if the call had ended before.

        Raises CarrierError.
        """
        ...

    async def send_message(self, to: str, text: str, *, key: str) -> str:
        """A text message from our own number; its id at the carrier.

        Raises CarrierError, and ConfigError without a number.
        """
        ...

    async def close(self) -> None: ...


class TwilioRest:
    def __init__(
        self,
        settings: TwilioSettings,
        clock: Clock,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        account, token = settings.account_sid, settings.auth_token
        if not account or token is None:
            raise ConfigError("twilio: set TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN to steer calls")
        self._commands = TwilioControl(account)
        self._number = settings.phone_number
        headers = {"Authorization": basic_auth(account, token.get_secret_value())}
        self._client = CarrierClient(
            "Twilio", settings.api_url, headers, self._commands.is_call_over, clock, transport
        )

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
        return _id(
            await self._client.send(self._commands.send_message(self._number, to, text, key=key)),
            "sid",
        )

    async def close(self) -> None:
        await self._client.close()


class TelnyxRest:
    def __init__(
        self,
        settings: TelnyxSettings,
        clock: Clock,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        if settings.api_key is None:
            raise ConfigError("telnyx: set TELNYX_API_KEY to steer calls")
        self._commands = TelnyxControl()
        self._number = settings.phone_number
        headers = {"Authorization": f"Bearer {settings.api_key.get_secret_value()}"}
        self.client = CarrierClient(
            "Telnyx", settings.api_url, headers, self._commands.is_call_over, clock, transport
        )

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
        answer = await self.client.send(
            self._commands.send_message(self._number, to, text, key=key)
        )
        return _id(answer.get("data") if isinstance(answer, dict) else None, "id")

    async def close(self) -> None:
        await self.client.close()


def basic_auth(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def _id(data: Any, name: str) -> str:
    found = data.get(name) if isinstance(data, dict) else None
    if not isinstance(found, str):
        raise CarrierError("the carrier took the message but did not name it")
    return found
