"""What the webhooks of both carriers share: signed bodies, the call of a ring, recordings."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from fastapi import APIRouter, HTTPException, Request, WebSocket

from aftercall.app import App
from aftercall.bridge.pending_calls import PendingCall
from aftercall.bridge.pump import MediaPump
from aftercall.bridge.voice_call import VoiceCall
from aftercall.log import get_logger
from aftercall.model.calls import LiveCall
from aftercall.model.calls import RecordingState as StoredState
from aftercall.phone.notices import RecordingNotice, RecordingState, RingNotice
from aftercall.phone.signature import (
    TOKEN_PARAMETER,
    Signature,
    SignatureFlaw,
    SignedRequest,
    TwilioSignature,
)
from aftercall.phone.telnyx import TelnyxWire
from aftercall.phone.telnyx_webhooks import SOURCE as TELNYX
from aftercall.phone.twilio import TwilioWire
from aftercall.phone.twilio_webhooks import SOURCE as TWILIO
from aftercall.phone.wire import StreamStarted, StreamStopped, Wire
from aftercall.sockets.server import AsgiMediaSocket, open_media_socket

if TYPE_CHECKING:
    from aftercall.app import App

TWILIO_MEDIA = "/twilio/media"
TELNYX_MEDIA = "/telnyx/media"
MAX_CALL_DURATION = timedelta(days=2)
_STORED_STATES: dict[RecordingState, StoredState] = {
    RecordingState.READY: "waiting",
    RecordingState.ABSENT: "absent",
    RecordingState.FAILED: "failed",
}
_REASONS = {
    RecordingState.ABSENT: "the carrier has nothing: too short, or silent",
    RecordingState.FAILED: "the carrier failed to record",
}

log = get_logger("carrier")


async def read_signed_body(
    request: Request,
    signature: Signature,
    *,
    carrier: str,
    not_set_up: str,
) -> bytes:
    """The body, once its signature is proven over the raw bytes; a refusal logs no content."""
    body = await request.body()
    flaw = signature.find_flaw(
        SignedRequest(_raw_target(request), dict(request.headers), body)
    )
    if flaw is SignatureFlaw.NO_KEY:
        raise HTTPException(503, not_set_up)
    if flaw is not None:
        log.warning("webhook refused", flaw=flaw.name.lower(), carrier=carrier)
        raise HTTPException(403, f"the signature is not from {carrier}")
    return body


def _raw_target(request: Request) -> str:
    """Path and query as sent: the carrier signed them before decoding."""
    path: bytes = request.scope.get("raw_path") or request.url.path.encode()
    query: bytes = request.scope.get("query_string", b"")
    return (path + b"?" + query if query else path).decode("latin-1")


def make_call_factory(app: "App", ring: RingNotice) -> Callable[[str], LiveCall]:
    """Opens the call of a ring under a sid; the metadata of a resumed leg, which gets a new sid,
    keeps the carrier's.
    """

    def make_call(sid: str) -> LiveCall:
        call = ring.open_call(app.clock.now(), app.settings.agent_id)
        if sid == ring.sid:
            return call
        metadata = {**call.metadata, "call_sid": ring.sid}
        return call.model_copy(update={"sid": sid, "metadata": metadata})

    return make_call


def get_stream_url(app: "App", path: str) -> str:
    """The address to which a carrier streams a call's audio."""
    return f"ws{(app.settings.public_url or '').removeprefix('http').rstrip('/')}{path}"


def store_recording_notice(app: "App", source: str, notice: RecordingNotice) -> None:
    """Stores the recording of a known call; the same notice twice is stored once.

    A recording still in progress is not stored.
    """
    if not notice.state.is_final:
        return
    row = None
    if notice.call_sids:
        since = app.clock.now() - MAX_CALL_DURATION
        row = app.store.find_by_ids(source, notice.call_sids, since=since)
    if row is None:
        log.warning("recording of an unknown call", source=source)
        return
    state = _STORED_STATES[notice.state]
    if notice.state is RecordingState.READY and not notice.url:
        state = "absent"
    app.recordings.register(
        row.live.id,
        source,
        notice.recording_sid or notice.key,
        notice.url,
        state,
        app.clock.now(),
        _REASONS.get(notice.state, ""),
    )


CLOSE_REFUSED = 1008
STREAM_START_TIMEOUT_S = 10.0
MAX_FRAMES_BEFORE_START = 20


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
        if not app.phone.pending_calls.tokens.is_address(token):
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
