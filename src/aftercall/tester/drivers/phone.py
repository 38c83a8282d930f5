"""A phone number as a target, by Twilio: one call at a time, in real time, paid for.

Its webhooks are a small ASGI app: `/tester/voice`, `/agent`, `/status`, `/recording` and the
socket `/media`. Requests that Twilio did not sign are refused. An agent that calls us reaches
`/incoming`, the webhook of our own number.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from urllib.parse import parse_qs

import httpx2
import uvicorn

from aftercall.carrier.control import TwilioRest
from aftercall.clock import Clock
from aftercall.errors import (
    ConfigError,
    LineFailed,
    RefusedInput,
    UnknownTestName,
)
from aftercall.model.json_fields import Json
from aftercall.model.people import normalise_caller
from aftercall.phone.signature import SignedRequest, TwilioSignature
from aftercall.phone.twilio import MAX_BODY_BYTES, TwilioWire, read_form
from aftercall.phone.wire import StreamStarted
from aftercall.settings import Settings
from aftercall.speech.sound import write_wav
from aftercall.tester.call import ScriptedCall
from aftercall.tester.call_audio import Recognise
from aftercall.tester.drivers.dialer import SpendingLimit, TwilioDialer, check_allowed
from aftercall.tester.drivers.twilio_gather import GatherCalls
from aftercall.tester.drivers.twilio_media import (
    InboundAgent,
    MediaCall,
    MediaCalls,
    MediaConnection,
)
from aftercall.tester.models import OPENAI_URL, transcribe
from aftercall.tester.record import CallRecord
from aftercall.tester.target import AgentTarget, CallSetup, TargetSession

PAGES = ("voice", "agent", "status", "recording", "incoming")
INBOUND = "inbound"
Scope = Json
Receive = Callable[[], Awaitable[Json]]
Send = Callable[[Json], Awaitable[None]]


class DialerWebhooks:
    """Receives the carrier's webhooks for calls that the tester dials."""

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
                    self._receiver.apply_event(call, event)
        for event in wire.close():
            if call is not None:
                self._receiver.apply_event(call, event)
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


async def _call_by_media(
    setup: CallSetup, calls: MediaCalls, limit: SpendingLimit, call: ScriptedCall
) -> CallRecord:
    """Sound both ways: the caller speaks with our voice, and can interrupt."""
    limit_s = call.scenario.limits.max_duration_s
    reserved = limit.reserve(limit_s)
    record = await setup.hold_call(
        lambda pace: MediaConnection(calls, pace, limit_s), call
    )
    limit.refund_unused(reserved, record.duration_s)
    return record


async def _call_by_gather(
    settings: Settings, http: httpx2.AsyncClient, calls: GatherCalls, call: ScriptedCall
) -> CallRecord:
    """The carrier speaks our text and reports the words it recognised."""
    record, openai = await calls.call(call), settings.openai
    is_wanted = settings.tester.whisper and record.agent_sound
    if not is_wanted or openai.api_key is None:
        return record
    wav, url = write_wav(record.agent_sound), openai.base_url or OPENAI_URL
    try:
        whisper = await transcribe(http, url, openai.api_key, wav)
    except LineFailed:
        return record
    return replace(record, whisper=whisper)


@asynccontextmanager
async def open_phone(
    settings: Settings, number: str, setup: CallSetup
) -> AsyncIterator[AgentTarget]:
    """Checks the allow-list and the settings, and serves the webhooks that Twilio calls.

    `inbound:NUMBER` or `inbound:ADDRESS` is an agent that calls us.
    """
    twilio, tester, url = settings.twilio, settings.tester, settings.public_url
    kind, _, caller = number.partition(":")
    is_inbound = kind == INBOUND
    allowed = tester.allow_numbers.replace(" ", "").split(",")
    to = caller if is_inbound else check_allowed(number, tuple(filter(None, allowed)))
    if not (twilio.account_sid and twilio.auth_token and twilio.phone_number and url):
        raise ConfigError(
            "a call by phone needs TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN, TWILIO_PHONE_NUMBER "
            "and AFTERCALL_PUBLIC_URL"
        )
    limit = _read_spending_limit(settings, setup.clock)
    signature = TwilioSignature(twilio.auth_token, url)
    rest = TwilioRest(twilio, setup.clock)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(rest.close)
        http = await stack.enter_async_context(httpx2.AsyncClient(timeout=30.0))
        dialer = TwilioDialer(http, rest, twilio)
        calls: MediaCalls | GatherCalls
        session: TargetSession
        if is_inbound or tester.phone_mode == "media":
            live = replace(
                setup, is_live=True, recognise=make_recogniser(settings, http)
            )
            inbound = None
            if is_inbound:
                inbound = _read_inbound(caller, twilio.phone_number, http)
            calls = MediaCalls(dialer, url, to, setup.clock, inbound)
            session = partial(_call_by_media, live, calls, limit)
        else:
            calls = GatherCalls(dialer, url, to, limit, setup.clock)
            session = partial(_call_by_gather, settings, http, calls)
        await stack.enter_async_context(
            _serve(DialerWebhooks(calls, signature), tester.port)
        )
        # the name is without the last digits of the number
        yield AgentTarget(f"phone {to[:-4]}…", True, lambda: nullcontext(session))


def _read_spending_limit(settings: Settings, clock: Clock) -> SpendingLimit:
    tester, path = settings.tester, settings.home / "tests" / "spent.json"
    return SpendingLimit(path, tester.spend_limit, tester.price_per_minute, clock)


def _read_inbound(
    caller: str, our_number: str, http: httpx2.AsyncClient
) -> InboundAgent:
    if caller.startswith(("http://", "https://")):
        return InboundAgent(our_number, address=caller, http=http)
    try:
        number = normalise_caller(caller)
    except ValueError as error:
        raise UnknownTestName(f"{INBOUND}:{caller}: {error}") from None
    if number is None:
        raise UnknownTestName(f"write {INBOUND}:NUMBER or {INBOUND}:https://…")
    return InboundAgent(our_number, number=number)


def make_recogniser(settings: Settings, http: httpx2.AsyncClient) -> Recognise:
    url, key = settings.openai.base_url or OPENAI_URL, settings.openai.api_key
    if key is None:
        raise ConfigError(
            "tester.phone_mode: media needs OPENAI_API_KEY, to understand what the agent says"
        )

    async def recognise(sound: bytes) -> str:
        return (await transcribe(http, url, key, write_wav(sound))).text

    return recognise


@asynccontextmanager
async def _serve(webhooks: DialerWebhooks, port: int) -> AsyncIterator[None]:
    server = uvicorn.Server(
        uvicorn.Config(
            webhooks, host="127.0.0.1", port=port, log_level="warning", lifespan="off"
        )
    )
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            if task.done():
                raise ConfigError(
                    f"tester.port: {port} cannot be listened on; choose another"
                )
            await asyncio.sleep(0.02)
        yield
    finally:
        server.should_exit = True
        with suppress(SystemExit):
            await task
