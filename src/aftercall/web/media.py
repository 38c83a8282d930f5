"""The carriers' media sockets: one bridge, two wires.

A socket is let in when its upgrade is signed (by carriers that sign it) and its first frames
bring the pass that a webhook gave out for that call. Who calls is what the webhook said; what
the stream says about itself is not believed.
"""

import asyncio

from fastapi import APIRouter, WebSocket

from aftercall.app import App
from aftercall.bridge.pending_calls import PendingCall
from aftercall.bridge.pump import MediaPump
from aftercall.bridge.voice_call import VoiceCall, VoiceCallParts
from aftercall.log import get_logger
from aftercall.model.calls import LiveCall
from aftercall.phone.signature import TOKEN_PARAMETER, SignedRequest, TwilioSignature
from aftercall.phone.telnyx import TelnyxWire
from aftercall.phone.telnyx_webhooks import SOURCE as TELNYX
from aftercall.phone.twilio import TwilioWire
from aftercall.phone.wire import StreamStarted, StreamStopped, Wire
from aftercall.sockets.server import AsgiMediaSocket, open_media_socket
from aftercall.web.telnyx_calls import StreamDestination

TWILIO_MEDIA = "/twilio/media"
TELNYX_MEDIA = "/telnyx/media"
CLOSE_REFUSED = 1008
STREAM_START_TIMEOUT_S = 10.0
MAX_FRAMES_BEFORE_START = 20

log = get_logger("media")


def make_router(app: App) -> APIRouter:
    router = APIRouter()
    signature = TwilioSignature(app.settings.twilio.auth_token, app.settings.public_url)

    @router.websocket(TWILIO_MEDIA)
    async def twilio_media(socket: WebSocket) -> None:
        """Twilio: the audio of a call."""
        path: bytes = socket.scope.get("raw_path") or socket.url.path.encode()
        flaw = signature.find_flaw(
            SignedRequest(path.decode("latin-1"), dict(socket.headers), is_upgrade=True)
        )
        if flaw is not None:
            log.warning("a media socket was refused", carrier="twilio", flaw=flaw.name.lower())
            await socket.close(CLOSE_REFUSED)
            return
        await _accept_socket(app, socket, "twilio", TwilioWire())

    @router.websocket(TELNYX_MEDIA)
    async def telnyx_media(socket: WebSocket) -> None:
        """Telnyx: the audio of a call."""
        await _accept_socket(app, socket, "telnyx", TelnyxWire())

    return router


def stream_url(app: App, path: str) -> str:
    """Where a carrier brings a call's audio: the public address, as that of a socket."""
    return f"ws{(app.settings.public_url or '').removeprefix('http').rstrip('/')}{path}"


async def _accept_socket(app: App, socket: WebSocket, carrier: str, wire: Wire) -> None:
    parts = app.voice_parts
    if parts is None:
        log.warning(
            "a media socket was refused",
            carrier=carrier,
            flaw="no engine of streamed audio is set up",
        )
        await socket.close(CLOSE_REFUSED)
        return
    await socket.accept()
    line = open_media_socket(socket)
    guest = await _claim_call(app, line, carrier, wire)
    if guest is None:
        log.warning("a stream was refused", carrier=carrier)
        await line.close(CLOSE_REFUSED)
        return
    await run_voice_call(parts, guest, line, wire)


async def run_voice_call(
    parts: VoiceCallParts, pending_call: PendingCall, line: AsgiMediaSocket, wire: Wire
) -> None:
    await VoiceCall(parts, pending_call, MediaPump(line, wire, parts.clock)).run()


async def _claim_call(
    app: App, line: AsgiMediaSocket, carrier: str, wire: Wire
) -> PendingCall | None:
    """The call of this stream, once it has started and shown its pass; whoever dawdles or sends
    something else is refused.
    """
    try:
        async with asyncio.timeout(STREAM_START_TIMEOUT_S):
            for _ in range(MAX_FRAMES_BEFORE_START):
                frame = await line.receive()
                for event in wire.receive(frame) if frame is not None else wire.close():
                    if isinstance(event, StreamStarted):
                        return app.pending_calls.claim(
                            carrier,
                            event.call_sid,
                            event.parameters.get(TOKEN_PARAMETER),
                            event.stream_sid,
                        )
                    if isinstance(event, StreamStopped):
                        return None
    except TimeoutError:
        return None
    return None


class StreamedCalls:
    """How Telnyx's webhooks have a call's audio brought to the media socket."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def register_stream(self, call: LiveCall) -> StreamDestination | None:
        given = await self._app.pending_calls.register(call)
        return StreamDestination(stream_url(self._app, TELNYX_MEDIA), {TOKEN_PARAMETER: given})

    async def end(self, sid: str, reason: str) -> None:
        await self._app.pending_calls.end(TELNYX, sid, reason)
