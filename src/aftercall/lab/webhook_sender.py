"""Delivers an emulated carrier's callbacks with its habits: those that come late go beside the
others, which do not wait.
"""

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha1
from hmac import digest
from typing import Any

import httpx2

from aftercall.clock import Clock
from aftercall.lab.twiml import INVALID_CONTENT_TYPE, TwimlFault

Send = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class DeliveryFaults:
    """Kinds of webhook are named as the carrier names them (`completed`, `call.hangup`); `*` is
    every kind.
    """

    duplicated_kinds: frozenset[str] = frozenset()
    delay_s_by_kind: Mapping[str, float] = field(default_factory=dict)
    """How long a kind waits before it is sent. It waits beside the others, which go on."""

    def delivery_count(self, kind: str) -> int:
        return 2 if {kind, "*"} & self.duplicated_kinds else 1

    def delay_s(self, kind: str) -> float:
        return self.delay_s_by_kind.get(kind, self.delay_s_by_kind.get("*", 0.0))


NO_DELIVERY_FAULTS = DeliveryFaults()


class WebhookSender:
    def __init__(self, clock: Clock, delivery_faults: DeliveryFaults) -> None:
        self.delivery_faults = delivery_faults
        self._clock = clock
        self._under_way: set[asyncio.Task[None]] = set()

    async def deliver(self, kind: str, send: Send) -> None:
        """Returns when it was taken; at once if this kind comes late."""
        late_s = self.delivery_faults.delay_s(kind)
        if late_s:
            self.spawn(self._deliver_late(kind, send, late_s))
        else:
            await self._send(kind, send)

    def spawn(self, job: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(job)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def drain(self) -> None:
        """Wait until everything under way has been delivered."""
        while self._under_way:
            await asyncio.gather(*self._under_way, return_exceptions=True)

    async def close(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _deliver_late(self, kind: str, send: Send, late_s: float) -> None:
        await self._clock.sleep(late_s)
        await self._send(kind, send)

    async def _send(self, kind: str, send: Send) -> None:
        await asyncio.gather(*(send() for _ in range(self.delivery_faults.delivery_count(kind))))


HTTP_FAILED = 11200
WEBHOOK_TIMEOUT_S = 15.0  # how long Twilio waits for an answer
_TWIML_TYPES = ("text/xml", "application/xml")


class TwilioWebhookClient:
    def __init__(self, auth_token: str, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._token = auth_token.encode()
        self._http = httpx2.AsyncClient(
            timeout=WEBHOOK_TIMEOUT_S, trust_env=False, transport=transport
        )

    async def close(self) -> None:
        await self._http.aclose()

    def sign(self, url: str, form: dict[str, str]) -> str:
        signed = url + "".join(name + form[name] for name in sorted(form))
        return b64encode(digest(self._token, signed.encode(), sha1)).decode()

    async def post(self, url: str, form: dict[str, str]) -> httpx2.Response:
        return await self._http.post(
            url, data=form, headers={"X-Twilio-Signature": self.sign(url, form)}
        )

    async def send_callback(self, url: str, form: dict[str, str]) -> None:
        """A callback; Twilio does not try one again."""
        with suppress(httpx2.HTTPError):
            await self.post(url, form)

    async def fetch_twiml(self, url: str, form: dict[str, str]) -> str:
        try:
            answer = await self.post(url, form)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise TwimlFault(
                HTTP_FAILED, f"no answer from the webhook ({type(error).__name__})"
            ) from None
        if answer.status_code != 200:
            raise TwimlFault(HTTP_FAILED, f"the webhook answered {answer.status_code}")
        if answer.headers.get("content-type", "").partition(";")[0] not in _TWIML_TYPES:
            raise TwimlFault(INVALID_CONTENT_TYPE, "the webhook's answer is not text/xml")
        return answer.text
