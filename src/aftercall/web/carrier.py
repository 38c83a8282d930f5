"""The carriers' webhooks.

Only what a carrier signed is believed; everything else is refused, and logged without content.

Twilio listens and speaks for the receptionist here (`<Gather input="speech">` and `<Say>`): a
number needs no other account. Where an engine of streamed audio is set up, the call's audio
goes to the media socket instead (`media.py`).
"""

from collections.abc import Callable
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Request, Response
from starlette.concurrency import run_in_threadpool

from aftercall.app import App
from aftercall.bridge.switchboard import SpokenReply, Switchboard
from aftercall.bridge.turn_call import NOT_WRITTEN
from aftercall.errors import AftercallError
from aftercall.log import get_logger
from aftercall.model.calls import LiveCall
from aftercall.phone import twilio_webhooks, twiml
from aftercall.phone.notices import RingNotice
from aftercall.phone.signature import TOKEN_PARAMETER, SignatureFlaw, SignedRequest, TwilioSignature
from aftercall.phone.twilio_webhooks import MAX_BODY_BYTES, Fields, read_form
from aftercall.web.media import TWILIO_MEDIA, stream_url
from aftercall.web.queries import read_body
from aftercall.web.recordings import store_recording_notice

VOICE, RECORDING = "/twilio/voice", "/twilio/recording"
NOT_SET_UP = "Twilio is not set up here: set TWILIO_AUTH_TOKEN and AFTERCALL_PUBLIC_URL"

log = get_logger("carrier")


def make_router(app: App) -> APIRouter:
    router = APIRouter(prefix="/twilio", tags=["carriers"])
    signature = TwilioSignature(app.settings.twilio.auth_token, app.settings.public_url)
    board = Switchboard(app.turn_parts, app.clock)

    @router.post(
        "/voice",
        summary="Twilio: a call rings, or its caller said something",
        response_class=Response,
    )
    async def post_voice(request: Request, turn: int | None = None) -> Response:
        form = await _read_signed(request, signature)
        ring = twilio_webhooks.read_ring(form)
        make_call = _make_call_factory(app, ring)
        if turn is None and app.voice_parts is not None:
            return await _connect_stream(app, make_call(ring.sid))
        if turn is None:
            return _speak(app, await board.ring(ring.sid, make_call), is_first=True)
        heard = twilio_webhooks.read_gathered(form)
        return _speak(
            app, await board.answer_turn(ring.sid, turn, heard.text, heard.confidence, make_call)
        )

    @router.post("/status", summary="Twilio: where a call stands", status_code=204)
    async def post_status(request: Request) -> None:
        progress = twilio_webhooks.read_progress(await _read_signed(request, signature))
        if progress.state.is_final:
            await board.end(progress.sid, progress.state.end_reason)
            await app.pending_calls.end(
                twilio_webhooks.SOURCE, progress.sid, progress.state.end_reason
            )

    @router.post("/recording", summary="Twilio: how a recording stands", status_code=204)
    async def post_recording(request: Request) -> None:
        recorded = twilio_webhooks.read_recorded(await _read_signed(request, signature))
        await run_in_threadpool(store_recording_notice, app, twilio_webhooks.SOURCE, recorded)

    return router


def _make_call_factory(app: App, ring: RingNotice) -> Callable[[str], LiveCall]:
    """How the call of this webhook is opened; a leg that picks up gets a sid of its own, and
    the carrier's in its metadata.
    """

    def make_call(sid: str) -> LiveCall:
        call = ring.open_call(app.clock.now(), app.settings.agent_id)
        return (
            call
            if sid == ring.sid
            else call.model_copy(
                update={"sid": sid, "metadata": {**call.metadata, "call_sid": ring.sid}}
            )
        )

    return make_call


async def _connect_stream(app: App, call: LiveCall) -> Response:
    """Have the call's audio brought to our media socket, with a pass that opens it once."""
    try:
        given = await app.pending_calls.register(call)
    except AftercallError as error:
        log.error("could not open the call", call=call.id, error=error.code)
        text = twiml.say_and_hang_up(NOT_WRITTEN.text)
    else:
        text = twiml.connect_stream(
            stream_url(app, TWILIO_MEDIA),
            {TOKEN_PARAMETER: given},
            recording_callback=_record_to(app),
        )
    return Response(text, media_type=twiml.CONTENT_TYPE)


def _speak(app: App, answer: SpokenReply, *, is_first: bool = False) -> Response:
    if answer.reply.ends_call:
        text = twiml.say_and_hang_up(answer.reply.text)
    else:
        public = (app.settings.public_url or "").rstrip("/")
        action = f"{public}{VOICE}?{urlencode({'turn': answer.turn})}"
        text = twiml.gather_speech(
            answer.reply.text,
            action,
            silence_url=action,
            recording_callback=_record_to(app) if is_first else None,
        )
    return Response(text, media_type=twiml.CONTENT_TYPE)


def _record_to(app: App) -> str | None:
    """Who is told of the recording; None where calls are not recorded."""
    return (
        f"{(app.settings.public_url or '').rstrip('/')}{RECORDING}"
        if app.settings.recordings.enabled
        else None
    )


async def _read_signed(request: Request, signature: TwilioSignature) -> Fields:
    """The form, once its signature is proven over the raw bytes."""
    body = await read_body(request, MAX_BODY_BYTES)
    flaw = signature.find_flaw(SignedRequest(_target(request), dict(request.headers), body))
    if flaw is SignatureFlaw.NO_KEY:
        raise HTTPException(503, NOT_SET_UP)
    if flaw is not None:
        log.warning("a webhook was refused", flaw=flaw.name.lower(), path=request.url.path)
        raise HTTPException(403, "the signature is not Twilio's")
    return read_form(body)


def _target(request: Request) -> str:
    """The path and query as they came over the line: decoded ones may differ from what was
    signed.
    """
    path: bytes = request.scope.get("raw_path") or request.url.path.encode()
    query: bytes = request.scope.get("query_string", b"")
    return (path + b"?" + query if query else path).decode("latin-1")
