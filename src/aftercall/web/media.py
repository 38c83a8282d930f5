"""The carriers' media sockets: one bridge, two wires.

A socket is let in when its upgrade is signed (by carriers that sign it) and its first frames bring the pass that a webhook gave
out for that call. Who calls is what the webhook said; what the stream says about itself is not believed.
"""

import asyncio

from fastapi import APIRouter, WebSocket

from aftercall.app import App
from aftercall.bridge.answer import VoiceCall, VoiceParts
from aftercall.bridge.lobby import Guest
from aftercall.bridge.pump import Pump
from aftercall.log import get_logger
from aftercall.model.calls import LiveCall
from aftercall.phone.passes import PARAMETER
from aftercall.phone.signature import SignedRequest
from aftercall.phone.telnyx import TelnyxWire
from aftercall.phone.telnyx_webhooks import SOURCE as TELNYX
from aftercall.phone.twilio import TwilioWire
from aftercall.phone.twilio_signature import TwilioSignature
from aftercall.phone.wire import Started, Stopped, Wire
from aftercall.web.line import SocketLine, open_line
from aftercall.web.telnyx_calls import StreamOffer

TWILIO_MEDIA = "/twilio/media"
TELNYX_MEDIA = "/telnyx/media"
REFUSED = 1008
START_WITHIN_S = 10.0
MOST_FRAMES_BEFORE = 20

log = get_logger("media")


def make_router(app: App) -> APIRouter:
    router = APIRouter()
    signature = TwilioSignature(app.settings.twilio.auth_token, app.settings.public_url)

    @router.websocket(TWILIO_MEDIA)
    async def twilio_media(socket: WebSocket) -> None:
        """Twilio: the audio of a call."""
        path: bytes = socket.scope.get("raw_path") or socket.url.path.encode()
        flaw = signature.find_flaw(SignedRequest(path.decode("latin-1"), dict(socket.headers), is_upgrade=True))
        if flaw is not None:
            log.warning("a media socket was refused", carrier="twilio", flaw=flaw.name.lower())
            await socket.close(REFUSED)
            return
        await _take(app, socket, "twilio", TwilioWire())

    @router.websocket(TELNYX_MEDIA)
    async def telnyx_media(socket: WebSocket) -> None:
        """Telnyx: the audio of a call."""
        await _take(app, socket, "telnyx", TelnyxWire())

    return router


def stream_url(app: App, path: str) -> str:
    """Where a carrier brings a call's audio: the public address, as that of a socket."""
    return f"ws{(app.settings.public_url or '').removeprefix('http').rstrip('/')}{path}"


async def _take(app: App, socket: WebSocket, carrier: str, wire: Wire) -> None:
    parts = app.voice_parts
    if parts is None:
        log.warning("a media socket was refused", carrier=carrier, flaw="no engine of streamed audio is set up")
        await socket.close(REFUSED)
        return
    await socket.accept()
    line = open_line(socket)
    guest = await _admit(app, line, carrier, wire)
    if guest is None:
        log.warning("a stream was refused", carrier=carrier)
        await line.close(REFUSED)
        return
    await hold(parts, guest, line, wire)


async def hold(parts: VoiceParts, guest: Guest, line: SocketLine, wire: Wire) -> None:
    await VoiceCall(parts, guest, Pump(line, wire, parts.clock)).hold()


async def _admit(app: App, line: SocketLine, carrier: str, wire: Wire) -> Guest | None:
    """The call of this stream, once it has started and shown its pass; whoever dawdles or sends something else is refused."""
    try:
        async with asyncio.timeout(START_WITHIN_S):
            for _ in range(MOST_FRAMES_BEFORE):
                frame = await line.receive()
                for event in wire.receive(frame) if frame is not None else wire.close():
                    if isinstance(event, Started):
                        return app.lobby.admit(carrier, event.call_sid, event.parameters.get(PARAMETER), event.stream_sid)
                    if isinstance(event, Stopped):
                        return None
    except TimeoutError:
        return None
    return None


class StreamedCalls:
    """How Telnyx's webhooks have a call's audio brought to the media socket."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def offer(self, call: LiveCall) -> StreamOffer | None:
        given = await self._app.lobby.announce(call)
        return StreamOffer(stream_url(self._app, TELNYX_MEDIA), {PARAMETER: given})

    async def end(self, sid: str, reason: str) -> None:
        await self._app.lobby.end(TELNYX, sid, reason)
