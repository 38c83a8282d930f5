"""The emulated Telnyx's REST routes: call commands, dialling, messages, recordings.

Refusals have Telnyx's codes and form.
"""

import base64
import binascii
import hmac
from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from aftercall.clock import format_instant
from aftercall.lab.carrier import refuse_by_fault
from aftercall.lab.rest import Refusal
from aftercall.lab.telnyx import EmulatedTelnyx, TelnyxCall
from aftercall.model.json_fields import Json

NOT_FOUND = "The requested resource or URL could not be found."
_STREAM_FIELDS = (
    "stream_url",
    "stream_track",
    "stream_codec",
    "stream_bidirectional_mode",
    "stream_bidirectional_codec",
    "client_state",
)
_BEFORE_ANSWER = ("answer", "hangup", "reject")
_CAUSES = {"busy": "user_busy", "no-answer": "timeout", "failed": "not_found"}

Body = Json


def make_router(
    telnyx: EmulatedTelnyx, outcomes: dict[str, str] | None = None
) -> APIRouter:
    """`outcomes` of dialled numbers: `busy`, `no-answer`, `failed`. Other numbers answer."""
    router = APIRouter(tags=["telnyx"])

    @router.post("/v2/calls/{control_id}/actions/{action}")
    async def post_action(control_id: str, action: str, request: Request) -> Response:
        body = await _read(request, telnyx)
        call = telnyx.calls.get(control_id)
        if call is None:
            reason = "The call_control_id provided was not valid."
            raise _refuse(422, "90015", "Invalid Call Control ID", reason)
        _run_command(telnyx, call, action, body)
        return JSONResponse({"data": {"result": "ok"}})

    @router.post("/v2/calls")
    async def post_call(request: Request) -> Response:
        body = await _read(request, telnyx)
        for name in ("connection_id", "to", "from"):
            if not isinstance(body.get(name), str):
                raise _missing(f"The parameter {name} is required.")
        call = telnyx.open_call(
            str(body.get("webhook_url", "")), body["from"], body["to"]
        )
        call.client_state = body.get("client_state")
        _dial(telnyx, call, (outcomes or {}).get(body["to"], "answered"))
        data = {
            "record_type": "call",
            "is_alive": True,
            "call_control_id": call.control_id,
            "call_leg_id": call.leg_id,
            "call_session_id": call.session_id,
        }
        return JSONResponse({"data": data})

    @router.post("/v2/messages")
    async def post_message(request: Request) -> Response:
        body = await _read(request, telnyx)
        if not body.get("to") or not body.get("text") or not body.get("from"):
            raise _missing("from, to and text are required.")
        key = request.headers.get("idempotency-key")
        return JSONResponse({"data": _store_message(telnyx, body, key)})

    _add_reading_routes(router, telnyx)
    return router


def _add_reading_routes(router: APIRouter, telnyx: EmulatedTelnyx) -> None:
    @router.get("/v2/call_control_applications")
    async def list_applications(request: Request) -> Response:
        """None: the lab rings the agent that the order of a call names."""
        await _read(request, telnyx)
        return JSONResponse({"data": [], "meta": {"total_results": 0}})

    @router.get("/v2/call_events")
    async def list_events(request: Request) -> Response:
        await _read(request, telnyx)
        refuse_by_fault(telnyx)
        return JSONResponse(_list_events(telnyx, dict(request.query_params)))

    @router.get("/v2/recordings/{sid}")
    async def get_recording(sid: str, request: Request) -> Response:
        await _read(request, telnyx)
        recording = telnyx.recordings.by_sid.get(sid)
        if recording is None:
            raise _refuse(404, "10005", "Resource not found", NOT_FOUND)
        telnyx.recordings.refresh(recording)
        urls = {"wav": telnyx.recording_url(sid)}
        data = {"record_type": "recording", "id": sid, "status": "completed"}
        return JSONResponse({"data": data | {"download_urls": urls}})

    @router.get("/telephony-recorder-lab/{name}")
    async def get_audio(name: str, request: Request) -> Response:
        return telnyx.recordings.serve(name.rpartition(".")[0], request)


def _list_events(telnyx: EmulatedTelnyx, query: dict[str, str]) -> Body:
    """Without a leg only events of the last 24 hours."""
    leg = query.get("filter[leg_id]")
    since = query.get("filter[occurred_at][gte]", "")
    day_ago = format_instant(telnyx.clock.now() - timedelta(hours=24))
    found = [
        event
        for event in telnyx.call_events
        if (event["call_leg_id"] == leg if leg else event["event_timestamp"] >= day_ago)
        and event["event_timestamp"] >= since
    ]
    size, number = (
        int(query.get("page[size]", "20")),
        int(query.get("page[number]", "1")),
    )
    meta = {
        "page_number": number,
        "page_size": size,
        "total_pages": max(1, -(-len(found) // size)),
        "total_results": len(found),
    }
    return {"data": found[(number - 1) * size : number * size], "meta": meta}


def _refuse(status: int, code: str, title: str, detail: str) -> Refusal:
    error = {"code": code, "title": title, "detail": detail}
    return Refusal(JSONResponse({"errors": [error]}, status))


def _missing(detail: str) -> Refusal:
    return _refuse(422, "10004", "Missing required parameter", detail)


async def _read(request: Request, telnyx: EmulatedTelnyx) -> Body:
    given = request.headers.get("authorization", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {telnyx.api_key}".encode()):
        reason = "Could not understand the provided credentials."
        raise _refuse(401, "10009", "Authentication failed", reason)
    if request.method == "GET":
        return {}
    try:
        body = await request.json() if await request.body() else {}
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise _refuse(
            400, "10015", "Bad Request", "The request body is not a JSON object."
        )
    state = body.get("client_state")
    if state is not None and not _is_base64(state):
        reason = "The client_state must be valid base64."
        raise _refuse(422, "90024", "Invalid client_state", reason)
    return body


def _is_base64(text: object) -> bool:
    try:
        base64.b64decode(str(text), validate=True)
    except binascii.Error:
        return False
    return isinstance(text, str)


def _run_command(
    telnyx: EmulatedTelnyx, call: TelnyxCall, action: str, body: Body
) -> None:
    run = _ACTIONS.get(action)
    if run is None:
        raise _refuse(404, "10005", "Resource not found", NOT_FOUND)
    if call.is_over:
        reason = "This call is no longer active and can't receive commands."
        raise _refuse(422, "90018", "Call has already ended", reason)
    command_id = body.get("command_id")
    if command_id in call.command_ids:
        return
    if action not in _BEFORE_ANSWER and call.state == "parked":
        reason = "This command can't be issued before the call has been answered."
        raise _refuse(422, "90034", "Call not answered yet", reason)
    run(telnyx, call, body)
    if isinstance(command_id, str):
        call.command_ids.add(command_id)
    if isinstance(body.get("client_state"), str):
        call.client_state = body["client_state"]
    call.actions.append(action)


def _answer(telnyx: EmulatedTelnyx, call: TelnyxCall, body: Body) -> None:
    call.state = "answered"
    state = body.get("client_state", call.client_state)
    telnyx.queue_event(
        call, "call.answered", {"state": "answered", "client_state": state}
    )
    if body.get("stream_url"):
        _stream(telnyx, call, body)


def _stream(telnyx: EmulatedTelnyx, call: TelnyxCall, body: Body) -> None:
    if not str(body.get("stream_url", "")).startswith(("wss://", "ws://")):
        reason = "The stream_url must be a websocket address."
        raise _refuse(422, "90046", "Invalid stream_url", reason)
    call.streams.append({name: body.get(name) for name in _STREAM_FIELDS})
    telnyx.open_stream(
        call, body["stream_url"], body.get("client_state") or call.client_state
    )


def _speak(telnyx: EmulatedTelnyx, call: TelnyxCall, body: Body) -> None:
    """Reports start and end of speech that takes as long as its words."""
    text = body.get("payload")
    if not isinstance(text, str) or not text or not body.get("voice"):
        raise _missing("payload and voice are required.")
    call.heard.append(text)
    state = {"client_state": body.get("client_state", call.client_state)}
    telnyx.queue_event(call, "call.speak.started", state)
    ended = state | {"status": "completed"}
    telnyx.queue_event(call, "call.speak.ended", ended, telnyx.speech_duration_s(text))


def _gather(telnyx: EmulatedTelnyx, call: TelnyxCall, body: Body) -> None:
    call.heard.append(str(body.get("payload", "")))
    telnyx.queue_event(call, "call.gather.ended", {"digits": "", "status": "timeout"})


def _transcribe(telnyx: EmulatedTelnyx, call: TelnyxCall, body: Body) -> None:
    engine = body.get("transcription_engine_config")
    call.is_transcribed = True
    call.has_interim_results = (
        isinstance(engine, dict) and engine.get("interim_results") is True
    )


def _record(telnyx: EmulatedTelnyx, call: TelnyxCall, body: Body) -> None:
    if body.get("channels") not in ("single", "dual") or body.get("format") not in (
        "wav",
        "mp3",
    ):
        raise _missing("channels and format are required.")
    call.is_recorded = True


def _stop_recording(telnyx: EmulatedTelnyx, call: TelnyxCall, body: Body) -> None:
    if call.is_recorded:
        telnyx.save_recording(call)


def _hang_up(telnyx: EmulatedTelnyx, call: TelnyxCall, body: Body) -> None:
    telnyx.end(call, "normal_clearing", "callee")


def _accept(telnyx: EmulatedTelnyx, call: TelnyxCall, body: Body) -> None:
    """Accepts a command that changes nothing here."""


_ACTIONS: dict[str, Callable[[EmulatedTelnyx, TelnyxCall, Body], None]] = {
    "answer": _answer,
    "hangup": _hang_up,
    "reject": _hang_up,
    "speak": _speak,
    "gather_using_speak": _gather,
    "transcription_start": _transcribe,
    "transcription_stop": _accept,
    "playback_stop": _accept,
    "record_start": _record,
    "record_stop": _stop_recording,
    "streaming_start": _stream,
    "streaming_stop": _accept,
}


def _dial(telnyx: EmulatedTelnyx, call: TelnyxCall, outcome: str) -> None:
    telnyx.queue_event(
        call, "call.initiated", {"direction": "outgoing", "state": "bridging"}
    )
    if outcome in _CAUSES:
        telnyx.end(call, _CAUSES[outcome], "callee")
        return
    call.state = "answered"
    telnyx.queue_event(call, "call.answered", {"state": "answered"})


def _store_message(telnyx: EmulatedTelnyx, body: Body, key: str | None) -> Body:
    """The same idempotency key is the same message."""
    message = next(
        (known for known in telnyx.messages if key and known["key"] == key), None
    )
    if message is None:
        message = {name: body[name] for name in ("from", "to", "text")}
        message |= {"id": str(uuid4()), "key": key}
        telnyx.messages.append(message)
    return {
        "record_type": "message",
        "id": message["id"],
        "direction": "outbound",
        "type": "SMS",
        "to": [{"phone_number": message["to"], "status": "queued"}],
        "text": message["text"],
    }
