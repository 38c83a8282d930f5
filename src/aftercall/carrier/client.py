"""Sending requests to a carrier's REST address: time-limited, tried again where that does no harm, and told apart when they fail."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx2

from aftercall.clock import Clock
from aftercall.errors import CallOver, CarrierError, CarrierUnreachable, tell_network_trouble
from aftercall.phone.control import ControlRequest

TIMEOUT_S = 4.0  # a caller waits behind most commands
TRIES = 3
PAUSES_S = (0.2, 0.8)
KEY_HEADER = "Idempotency-Key"

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
        """`headers` carry the credentials. With a `transport` (the lab's, say) no socket is opened."""
        self._name = name
        self._url = api_url.rstrip("/")
        self._headers = dict(headers)
        self._is_over = is_over
        self._clock = clock
        self._transport = transport
        self._http: httpx2.AsyncClient | None = None

    async def send(self, request: ControlRequest) -> Any:
        """The answer's JSON. Raises CallOver, CarrierUnreachable (again may help) or CarrierError (it will not)."""
        for pause_s in (*PAUSES_S, None):
            try:
                return self._judge(request, await self._try(request))
            except CarrierUnreachable as error:
                if pause_s is None or not (request.is_repeatable or isinstance(error.__cause__, httpx2.ConnectError)):
                    raise
                await self._clock.sleep(pause_s)
        raise AssertionError  # the last try has returned or raised

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def _try(self, request: ControlRequest) -> httpx2.Response:
        if self._http is None:
            self._http = httpx2.AsyncClient(timeout=TIMEOUT_S, trust_env=False, transport=self._transport, headers=self._headers)
        headers = {"Content-Type": request.content_type, "Accept": "application/json"}
        if request.key:
            headers[KEY_HEADER] = request.key
        try:
            return await self._http.request(request.method, self._url + request.path, content=request.body, headers=headers)
        except httpx2.HTTPError as error:
            raise CarrierUnreachable(f"{self._name}: no answer to {_what(request)} ({tell_network_trouble(error)})") from error

    def _judge(self, request: ControlRequest, answer: httpx2.Response) -> Any:
        status, body = answer.status_code, answer.content
        if 200 <= status < 300:
            return _read_json(body)
        if self._is_over(status, body):
            raise CallOver(f"{self._name}: the call is over, {_what(request)} comes too late")
        if status == 429 or status >= 500:
            raise CarrierUnreachable(f"{self._name}: answered {status} to {_what(request)}")
        raise CarrierError(f"{self._name}: refused {_what(request)} with {status}{_code(body)}")


def _what(request: ControlRequest) -> str:
    """The last word of the path says what was asked; ids and fields stay out of messages."""
    return request.path.rpartition("/")[2].removesuffix(".json") if "/actions/" in request.path else request.method


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
    return f" (code {code})" if isinstance(code, int) or (isinstance(code, str) and code.isalnum()) else ""
