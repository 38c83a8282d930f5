"""The tester's own webhooks as a small ASGI app: `/tester/voice`, `/agent`, `/status` and `/recording`, signatures checked."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from aftercall.errors import RefusedInput
from aftercall.phone.forms import MAX_BODY, read_form
from aftercall.phone.signature import SignedRequest
from aftercall.phone.twilio_signature import TwilioSignature
from aftercall.tester.drivers.twilio_gather import GatherDesk

PAGES = ("voice", "agent", "status", "recording")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class TesterWebhooks:
    def __init__(self, desk: GatherDesk, signature: TwilioSignature) -> None:
        self._desk = desk
        self._signature = signature

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        page = str(scope["path"]).removeprefix("/tester/")
        if scope["method"] != "POST" or page not in PAGES:
            await _answer(send, 404, b"")
            return
        body = await _read(receive)
        target = scope["path"] + ("?" + scope["query_string"].decode("ascii", "replace") if scope["query_string"] else "")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if body is None or self._signature.find_flaw(SignedRequest(target=target, headers=headers, body=body)) is not None:
            await _answer(send, 403, b"")
            return
        call = parse_qs(scope["query_string"].decode("ascii", "replace")).get("call", [""])[0]
        try:
            form = dict(read_form(body))
        except RefusedInput:
            await _answer(send, 422, b"")
            return
        twiml = await self._desk.answer(page, call, form)
        await _answer(send, 200 if twiml else 204, (twiml or "").encode())


async def _read(receive: Receive) -> bytes | None:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MAX_BODY or message["type"] == "http.disconnect":
            return None
        if not message.get("more_body"):
            return bytes(body)


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"text/xml"), (b"content-length", str(len(body)).encode())] if body else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
