"""Twilio's webhooks. Only signed requests are accepted.

For the receptionist, Twilio itself listens and speaks (`<Gather input="speech">` and `<Say>`):
a number needs no other account. With a voice engine, the call's audio goes to the media socket
instead (`media.py`).
"""

from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from aftercall.app import App
from aftercall.bridge.switchboard import SpokenReply
from aftercall.bridge.turn_call import NOT_WRITTEN
from aftercall.errors import AftercallError
from aftercall.log import get_logger
from aftercall.model.calls import LiveCall
from aftercall.overload import BUSY
from aftercall.phone import twilio
from aftercall.phone.notices import RingNotice
from aftercall.phone.signature import TOKEN_PARAMETER, TwilioSignature
from aftercall.phone.twilio import SOURCE, Fields, read_form
from aftercall.web.carrier import (
    TWILIO_MEDIA,
    get_stream_url,
    is_refused,
    make_call_factory,
    read_signed_body,
    store_recording_notice,
)
from aftercall.web.routes import add_section

VOICE = "/twilio/voice"
RECORDING = "/twilio/recording"
STREAM_ENDED = "/twilio/stream-ended"
CUT_OFF = (
    "Sorry, the connection to me was lost. Please call again, "
    "and we go on where we stopped. Goodbye."
)
REFUSED = "refused"
NOT_SET_UP = "Twilio is not set up here: set TWILIO_AUTH_TOKEN and AFTERCALL_PUBLIC_URL"

log = get_logger("carrier")


def add_routes(parent: APIRouter, app: App) -> None:
    router = add_section(parent, "/twilio", tags=["carriers"])
    signature = TwilioSignature(app.settings.twilio.auth_token, app.settings.public_url)
    switchboard = app.phone.switchboards[SOURCE]

    async def read_signed(request: Request) -> Fields:
        body = await read_signed_body(
            request,
            signature,
            carrier="Twilio",
            not_set_up=NOT_SET_UP,
        )
        return read_form(body)

    @router.post(
        "/voice",
        summary="Twilio: a call rings, or its caller said something",
        response_class=Response,
    )
    async def post_voice(
        request: Request, turn: int | None = None, number: str = ""
    ) -> Response:
        form = await read_signed(request)
        ring = twilio.read_ring(form)
        if number == REFUSED:
            ring = ring.refuse_number()
        if turn is None and not app.phone.intake.is_open:
            return Response(twilio.reject_call(), media_type=twilio.CONTENT_TYPE)
        make_call = make_call_factory(app, ring)
        if turn is None and is_refused(app, SOURCE, ring.sid):
            busy = twilio.say_and_hang_up(BUSY)
            return Response(busy, media_type=twilio.CONTENT_TYPE)
        if turn is None and app.phone.voice_parts is not None:
            return await _connect_stream(app, make_call(ring.sid))
        if turn is None:
            answer = await switchboard.ring(ring.sid, make_call)
            return _speak(app, ring, answer, is_first=True)
        heard = twilio.read_gathered(form)
        reply = await switchboard.answer_turn(
            ring.sid, turn, heard.text, heard.confidence, make_call
        )
        return _speak(app, ring, reply)

    _add_notice_routes(router, app, read_signed)


def _add_notice_routes(
    router: APIRouter, app: App, read_signed: Callable[[Request], Awaitable[Fields]]
) -> None:
    @router.post(
        "/stream-ended",
        summary="Twilio: the audio of a call has ended, what next",
        response_class=Response,
    )
    async def post_stream_ended(request: Request) -> Response:
        """Hangs up; a caller whose stream was cut off hears why."""
        sid = twilio.read_ring(await read_signed(request)).sid
        try:
            is_cut_off = await app.phone.pending_calls.is_cut_off(SOURCE, sid)
        except AftercallError as error:
            log.warning("could not look the call up", error=error.code)
            is_cut_off = True
        text = twilio.say_and_hang_up(CUT_OFF) if is_cut_off else twilio.hang_up()
        return Response(text, media_type=twilio.CONTENT_TYPE)

    @router.post("/status", summary="Twilio: the state of a call", status_code=204)
    async def post_status(request: Request) -> None:
        progress = twilio.read_progress(await read_signed(request))
        if progress.state.is_final:
            reason = progress.state.end_reason
            await app.phone.end_call(SOURCE, progress.sid, reason)

    @router.post(
        "/recording", summary="Twilio: the state of a recording", status_code=204
    )
    async def post_recording(request: Request) -> None:
        notice = twilio.read_recorded(await read_signed(request))
        await run_in_threadpool(store_recording_notice, app, SOURCE, notice)


async def _connect_stream(app: App, call: LiveCall) -> Response:
    """Sends the call's audio to our media socket, with a token that opens it once."""
    try:
        token = await app.phone.pending_calls.register(call)
    except AftercallError as error:
        log.error("could not open the call", call=call.id, error=error.code)
        text = twilio.say_and_hang_up(NOT_WRITTEN.text)
    else:
        text = twilio.connect_stream(
            get_stream_url(app, TWILIO_MEDIA),
            {TOKEN_PARAMETER: token},
            next_url=f"{_public_url(app)}{STREAM_ENDED}",
            recording_callback=_recording_callback(app),
        )
    return Response(text, media_type=twilio.CONTENT_TYPE)


def _speak(
    app: App, ring: RingNotice, answer: SpokenReply, *, is_first: bool = False
) -> Response:
    """The answer's address carries what later requests may not repeat; Twilio signs it."""
    if answer.reply.ends_call:
        text = twilio.say_and_hang_up(answer.reply.text)
    else:
        query = {"turn": answer.turn}
        refused = {"number": REFUSED} if ring.is_number_refused else {}
        action = f"{_public_url(app)}{VOICE}?{urlencode(query | refused)}"
        text = twilio.gather_speech(
            answer.reply.text,
            action,
            silence_url=action,
            recording_callback=_recording_callback(app) if is_first else None,
        )
    return Response(text, media_type=twilio.CONTENT_TYPE)


def _recording_callback(app: App) -> str | None:
    """None where calls are not recorded."""
    return f"{_public_url(app)}{RECORDING}" if app.settings.recordings.enabled else None


def _public_url(app: App) -> str:
    return (app.settings.public_url or "").rstrip("/")
