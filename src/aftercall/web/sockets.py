"""The sockets of calls: audio that carriers stream, live calls to listen to, and calls from a web
page, spoken or in text.

`WS /browser/audio`: the page sends its microphone and plays the agent. `BrowserWire` says how;
first comes `{"type": "call", "call": …}` or `{"type": "refused", "reason": …}`.

`WS /browser/call`: a call in text.

From the page: `{"type": "say", "text": …, "confidence": …}`, `{"type": "hang_up"}`.
To the page: `{"type": "agent", "text": …}`, `{"type": "ended", "reason": …, "call": …}`,
`{"type": "refused", "reason": …}`.

A carrier's socket is accepted when its upgrade is signed, or its address is one that we made
(Telnyx does not sign sockets). Its first frames must bring the token that a webhook issued for
that call. The caller's identity comes from the webhook; what the stream says about itself is not
trusted.
"""

import asyncio
import json
from contextlib import suppress

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from starlette.concurrency import run_in_threadpool

from aftercall.app import App
from aftercall.bridge.agent_voice import MediaPump
from aftercall.bridge.pending_calls import PendingCall
from aftercall.bridge.turn_call import TurnCall
from aftercall.bridge.voice_call import VoiceCall, VoiceCallParts
from aftercall.errors import AftercallError, RefusedInput
from aftercall.ids import new_id
from aftercall.log import get_logger
from aftercall.model.calls import MAX_TURN_CHARS, LiveCall
from aftercall.model.json_fields import Json
from aftercall.model.people import normalise_caller
from aftercall.phone.signature import TOKEN_PARAMETER, SignedRequest, TwilioSignature
from aftercall.phone.stream import BrowserWire
from aftercall.phone.telnyx import SOURCE as TELNYX
from aftercall.phone.telnyx import TelnyxWire
from aftercall.phone.twilio import SOURCE as TWILIO
from aftercall.phone.twilio import TwilioWire
from aftercall.phone.wire import StreamStarted, StreamStopped, Wire
from aftercall.sockets.server import AsgiMediaSocket, open_media_socket
from aftercall.web.auth import BrowserAuth, may_open
from aftercall.web.carrier import TELNYX_MEDIA, TWILIO_MEDIA
from aftercall.web.limits import CLOSE_REFUSED

FRAMES_BETWEEN_CHECKS = 750  # a logout ends the listening, after a quarter of a minute


def add_sockets(router: APIRouter, app: App, auth: BrowserAuth) -> None:
    @router.websocket("/browser/call")
    async def browser_call(socket: WebSocket, caller: str = "") -> None:
        """A call from a web page, in text."""
        if not await may_open(auth, socket):
            await socket.close(CLOSE_REFUSED)
            return
        await socket.accept()
        try:
            live = _make_call(app, caller)
            app.load.check_live_call(live.source, live.sid)
            call = TurnCall(app.phone.turn_parts, live)
            await _run_call(socket, call)
        except AftercallError as error:
            await socket.send_json({"type": "refused", "reason": str(error)})
            await socket.close(CLOSE_REFUSED)

    @router.websocket("/browser/audio")
    async def browser_audio(socket: WebSocket, caller: str = "") -> None:
        """A call from a web page, spoken."""
        parts = app.phone.voice_parts
        if parts is None or not await may_open(auth, socket):
            await socket.close(CLOSE_REFUSED)
            return
        await socket.accept()
        await _run_spoken_call(app, parts, open_media_socket(socket), caller)

    @router.websocket("/calls/{call_id}/listen")
    async def listen_in(socket: WebSocket, call_id: str) -> None:
        """A live call to listen to: each message is a byte (0 caller, 1 agent, 2 the agent
        was cut off) and μ-law.
        """
        parts = app.phone.voice_parts
        is_allowed = await may_open(auth, socket)
        if not is_allowed or parts is None or not parts.taps.is_audible(call_id):
            await socket.close(CLOSE_REFUSED)
            return
        await socket.accept()
        login = await auth.find_login(socket)
        who = login.name if login else "nobody"
        await run_in_threadpool(app.audit.record, who, "listened", call_id)
        with suppress(WebSocketDisconnect):
            sent = 0
            async for frame in parts.taps.listen(call_id):
                await socket.send_bytes(frame)
                sent += 1
                if sent % FRAMES_BETWEEN_CHECKS == 0 and not (
                    await auth.is_still_allowed(socket)
                ):
                    break
            await socket.close()


async def _run_spoken_call(
    app: App, parts: VoiceCallParts, media: AsgiMediaSocket, caller: str
) -> None:
    calls = app.phone.pending_calls
    try:
        live = _make_call(app, caller)
        app.load.check_live_call(live.source, live.sid)
        token = await calls.register(live)
    except AftercallError as error:
        media.write(json.dumps({"type": "refused", "reason": str(error)}))
        await media.drain()
        await media.close(CLOSE_REFUSED)
        return
    pending = await calls.claim(live.source, live.sid, token, live.sid)
    assert pending is not None  # noqa: S101 - registered with this token a moment ago
    media.write(json.dumps({"type": "call", "call": live.id}))
    pump = MediaPump(media, BrowserWire(), parts.clock)
    await VoiceCall(parts, pending, pump).run()


async def _run_call(socket: WebSocket, call: TurnCall) -> None:
    try:
        await _send_agent_text(socket, call, (await call.start()).text)
        while call.end_reason is None:
            message = _parse(await socket.receive_text())
            if message["type"] == "hang_up":
                await call.end("caller_hung_up")
                break
            reply = await call.answer(message["text"], message.get("confidence"))
            await _send_agent_text(socket, call, reply.text)
        await socket.send_json(
            {"type": "ended", "reason": call.end_reason, "call": call.call.id}
        )
        await socket.close()
    except WebSocketDisconnect:
        await call.end("caller_hung_up")
    finally:
        await call.end("interrupted")


async def _send_agent_text(socket: WebSocket, call: TurnCall, text: str) -> None:
    await socket.send_json({"type": "agent", "text": text, "call": call.call.id})


def _make_call(app: App, caller: str) -> LiveCall:
    try:
        number = normalise_caller(caller)
    except ValueError as error:
        raise RefusedInput("caller", str(error)) from None
    return LiveCall(
        source="browser",
        sid=new_id(),
        agent_id=app.settings.agent_id,
        caller=number,
        started_at=app.clock.now(),
    )


def _parse(raw: str) -> Json:
    try:
        message = json.loads(raw)
    except ValueError:
        raise RefusedInput("message", "is not valid JSON") from None
    if not isinstance(message, dict) or message.get("type") not in ("say", "hang_up"):
        raise RefusedInput("message.type", "is not say or hang_up")
    text = message.get("text", "")
    confidence = message.get("confidence")
    if not isinstance(text, str) or len(text) > MAX_TURN_CHARS:
        raise RefusedInput(
            "message.text", f"is not text of at most {MAX_TURN_CHARS:,} characters"
        )
    if message["type"] == "say" and not text.strip():
        raise RefusedInput("message.text", "is empty")
    is_number = isinstance(confidence, int | float)
    if confidence is not None and not (is_number and 0 <= confidence <= 1):
        raise RefusedInput("message.confidence", "is not a number from 0 to 1")
    return message


STREAM_START_TIMEOUT_S = 10.0
MAX_FRAMES_BEFORE_START = 20

log = get_logger("media")


def add_carrier_sockets(router: APIRouter, app: App) -> None:
    signature = TwilioSignature(app.settings.twilio.auth_token, app.settings.public_url)

    @router.websocket(TWILIO_MEDIA)
    async def twilio_media(socket: WebSocket) -> None:
        """Twilio: the audio of a call."""
        path: bytes = socket.scope.get("raw_path") or socket.url.path.encode()
        upgrade = SignedRequest(
            path.decode("latin-1"), dict(socket.headers), is_upgrade=True
        )
        flaw = signature.find_flaw(upgrade)
        if flaw is not None:
            log.warning("media socket refused", carrier=TWILIO, flaw=flaw.name.lower())
            await socket.close(CLOSE_REFUSED)
            return
        await _run_socket(app, socket, TWILIO, TwilioWire())

    @router.websocket(f"{TELNYX_MEDIA}/{{token}}")
    async def telnyx_media(socket: WebSocket, token: str) -> None:
        """Telnyx: the audio of a call."""
        if not app.phone.pending_calls.tokens.is_address(token):
            log.warning("media socket refused", carrier=TELNYX, flaw="unknown address")
            await socket.close(CLOSE_REFUSED)
            return
        await _run_socket(app, socket, TELNYX, TelnyxWire())


async def _run_socket(app: App, socket: WebSocket, carrier: str, wire: Wire) -> None:
    parts = app.phone.voice_parts
    if parts is None:
        log.warning(
            "media socket refused", carrier=carrier, flaw="no voice engine is set up"
        )
        await socket.close(CLOSE_REFUSED)
        return
    await socket.accept()
    media = open_media_socket(socket)
    call = await _claim_call(app, media, carrier, wire)
    if call is None:
        log.warning("stream refused", carrier=carrier)
        await media.close(CLOSE_REFUSED)
        return
    await VoiceCall(parts, call, MediaPump(media, wire, parts.clock)).run()


async def _claim_call(
    app: App, media: AsgiMediaSocket, carrier: str, wire: Wire
) -> PendingCall | None:
    """The call of this stream, once the stream has started and brought its token; None if it
    is late or sends anything else.
    """
    try:
        async with asyncio.timeout(STREAM_START_TIMEOUT_S):
            for _ in range(MAX_FRAMES_BEFORE_START):
                frame = await media.receive()
                for event in wire.receive(frame) if frame is not None else wire.close():
                    if isinstance(event, StreamStarted):
                        token = event.parameters.get(TOKEN_PARAMETER)
                        return await app.phone.pending_calls.claim(
                            carrier, event.call_sid, token, event.stream_sid
                        )
                    if isinstance(event, StreamStopped):
                        return None
    except TimeoutError:
        return None
    return None
