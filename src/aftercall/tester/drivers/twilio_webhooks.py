"""The tester's webhooks as a small ASGI app.

`/tester/voice`, `/agent`, `/status`, `/recording` and the socket `/media`; requests that Twilio
did not sign are refused.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from aftercall.errors import RefusedInput
from aftercall.phone.signature import SignedRequest, TwilioSignature
from aftercall.phone.twilio import TwilioWire
from aftercall.phone.twilio_webhooks import MAX_BODY_BYTES, read_form
from aftercall.phone.wire import StreamStarted
from aftercall.tester.drivers.twilio_gather import GatherCalls
from aftercall.tester.drivers.twilio_media import MediaCall, MediaCalls

PAGES = ("voice", "agent", "status", "recording")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class DialerWebhooks:
    def __init__(
        self, receiver: GatherCalls | MediaCalls, signature: TwilioSignature
    ) -> None:
        self._receiver = receiver
        self._signature = signature

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        page = str(scope["path"]).removeprefix("/tester/")
        if scope["method"] != "POST" or page not in PAGES:
            await _reply(send, 404, b"")
            return
        body = await _read(receive)
        if body is None or not self._is_signed(scope, body, is_upgrade=False):
            await _reply(send, 403, b"")
            return
        call = parse_qs(scope["query_string"].decode("ascii", "replace")).get(
            "call", [""]
        )[0]
        try:
            form = dict(read_form(body))
        except RefusedInput:
            await _reply(send, 422, b"")
            return
        twiml = await self._receiver.answer(page, call, form)
        await _reply(send, 200 if twiml else 204, (twiml or "").encode())

    def _is_signed(self, scope: Scope, body: bytes, *, is_upgrade: bool) -> bool:
        query = scope["query_string"].decode("ascii", "replace")
        target = f"{scope['path']}?{query}" if query else scope["path"]
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        request = SignedRequest(
            target=target, headers=headers, body=body, is_upgrade=is_upgrade
        )
        return self._signature.find_flaw(request) is None

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A media socket from its first frame, which names the call, to its last."""
        await receive()
        if (
            scope["path"] != "/tester/media"
            or not isinstance(self._receiver, MediaCalls)
            or not self._is_signed(scope, b"", is_upgrade=True)
        ):
            await send({"type": "websocket.close", "code": 1008})
            return
        await send({"type": "websocket.accept"})
        wire, call, sender = TwilioWire(), None, None
        while (message := await receive())["type"] == "websocket.receive":
            for event in wire.receive(
                message.get("text") or message.get("bytes") or ""
            ):
                if isinstance(event, StreamStarted):
                    call = self._receiver.find(event.parameters.get("call", ""))
                    if call is not None:
                        call.wire = wire
                        sender = asyncio.ensure_future(_send_out(call, send))
                if call is not None:
                    call.apply_event(event)
        for event in wire.close():
            if call is not None:
                call.apply_event(event)
        if sender is not None:
            sender.cancel()
            with suppress(asyncio.CancelledError):
                await sender


async def _send_out(call: MediaCall, send: Send) -> None:
    """Sends until an empty frame, then closes the socket; Twilio hangs up then."""
    while frame := await call.outgoing.get():
        await send({"type": "websocket.send", "text": frame})
    await send({"type": "websocket.close", "code": 1000})


async def _read(receive: Receive) -> bytes | None:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES or message["type"] == "http.disconnect":
            return None
        if not message.get("more_body"):
            return bytes(body)


async def _reply(send: Send, status: int, body: bytes) -> None:
    headers = []
    if body:
        headers = [
            (b"content-type", b"text/xml"),
            (b"content-length", str(len(body)).encode()),
        ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
