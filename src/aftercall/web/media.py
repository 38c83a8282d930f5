"""The carriers' media sockets: one bridge, two wires.

A socket is accepted when its upgrade is signed, or its address is one that we made (Telnyx does
not sign sockets). Its first frames must bring the token that a webhook issued for that call.
The caller's identity comes from the webhook; what the stream says about itself is not trusted.
"""

import asyncio

from fastapi import APIRouter, WebSocket

from aftercall.app import App
from aftercall.bridge.pending_calls import PendingCall
from aftercall.bridge.pump import MediaPump
from aftercall.bridge.voice_call import VoiceCall
from aftercall.log import get_logger
from aftercall.phone.signature import TOKEN_PARAMETER, SignedRequest, TwilioSignature
from aftercall.phone.telnyx import TelnyxWire
from aftercall.phone.telnyx_webhooks import SOURCE as TELNYX
from aftercall.phone.twilio import TwilioWire
from aftercall.phone.twilio_webhooks import SOURCE as TWILIO
from aftercall.phone.wire import StreamStarted, StreamStopped, Wire
from aftercall.sockets.server import AsgiMediaSocket, open_media_socket
from aftercall.web.carrier import TELNYX_MEDIA, TWILIO_MEDIA

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
        if not app.phone.pending_calls.is_address(token):
            log.warning("media socket refused", carrier=TELNYX, flaw="unknown address")
            await socket.close(CLOSE_REFUSED)
            return
        await _run_socket(app, socket, TELNYX, TelnyxWire())

    return router


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
                        return app.phone.pending_calls.claim(
                            carrier, event.call_sid, token, event.stream_sid
                        )
                    if isinstance(event, StreamStopped):
                        return None
    except TimeoutError:
        return None
    return None
