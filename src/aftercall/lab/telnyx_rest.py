"""The emulated Telnyx' REST routes: commands on a call, dialling, messages, recordings.

Refusals read as the real ones.
"""

import base64
import binascii
import hmac
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from aftercall.lab.telnyx import EmulatedTelnyx, TelnyxCall

CALL_ENDED = JSONResponse(
    {
        "errors": [
            {
                "code": "90018",
                "title": "Call has already ended",
                "detail": "This call is no longer active and can't receive commands.",
            }
        ]
    },
    422,
)
_STREAMS = (
    "stream_url",
    "stream_track",
    "stream_codec",
    "stream_bidirectional_mode",
    "stream_bidirectional_codec",
)


def make_router(telnyx: EmulatedTelnyx, outcomes: dict[str, str] | None = None) -> APIRouter:
    """`outcomes`: what becomes of a call that is dialled to a number: `busy`, `no-answer`,
    `failed`; else it is answered.
    """
    router = APIRouter(tags=["telnyx"])

    @router.post("/v2/calls/{control_id}/actions/{action}")
    async def post_action(control_id: str, action: str, request: Request) -> Response:
        body, refusal = await _read(request, telnyx)
        if refusal is not None:
            return refusal
        call = telnyx.calls.get(control_id)
        if call is None:
            return _refuse(
                422,
                "90015",
                "Invalid Call Control ID",
                "The call_control_id provided was not valid.",
            )
        return _command(telnyx, call, action, body)

    @router.post("/v2/calls")
    async def post_call(request: Request) -> Response:
        body, refusal = await _read(request, telnyx)
        if refusal is not None:
            return refusal
        for name in ("connection_id", "to", "from"):
            if not isinstance(body.get(name), str):
                return _refuse(
                    422, "10004", "Missing required parameter", f"The parameter {name} is required."
                )
        call = telnyx.open_call(
            str(body.get("webhook_url", "")), body["from"], body["to"], "outgoing"
        )
        call.client_state = body.get("client_state")
        _dial(telnyx, call, (outcomes or {}).get(body["to"], "answered"))
        ids = {
            "call_control_id": call.control_id,
            "call_leg_id": call.leg_id,
            "call_session_id": call.session_id,
        }
        return JSONResponse({"data": {"record_type": "call", "is_alive": True, **ids}})

    @router.post("/v2/messages")
    async def post_message(request: Request) -> Response:
        body, refusal = await _read(request, telnyx)
        if refusal is not None:
            return refusal
        if not body.get("to") or not body.get("text") or not body.get("from"):
            return _refuse(
                422, "10004", "Missing required parameter", "from, to and text are required."
            )
        return JSONResponse(
            {"data": _store_message(telnyx, body, request.headers.get("idempotency-key"))}
        )

    @router.get("/v2/recordings/{sid}")
    async def get_recording(sid: str, request: Request) -> Response:
        _, refusal = await _read(request, telnyx)
        if refusal is not None:
            return refusal
        recording = telnyx.recordings.by_sid.get(sid)
        if recording is None:
            return _refuse(
                404,
                "10005",
                "Resource not found",
                "The requested resource or URL could not be found.",
            )
        telnyx.recordings.refresh(recording)
        urls = {"wav": telnyx.recording_url(sid)}
        return JSONResponse(
            {
                "data": {
                    "record_type": "recording",
                    "id": sid,
                    "status": "completed",
                    "download_urls": urls,
                }
            }
        )

    @router.get("/telephony-recorder-lab/{name}")
    async def get_audio(name: str, request: Request) -> Response:
        return telnyx.recordings.serve(name.rpartition(".")[0], request)

    return router


async def _read(request: Request, telnyx: EmulatedTelnyx) -> tuple[dict[str, Any], Response | None]:
    given = request.headers.get("authorization", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {telnyx.api_key}".encode()):
        return {}, _refuse(
            401, "10009", "Authentication failed", "Could not understand the provided credentials."
        )
    if request.method == "GET":
        return {}, None
    try:
        body = await request.json() if await request.body() else {}
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return {}, _refuse(400, "10015", "Bad Request", "The request body is not a JSON object.")
    state = body.get("client_state")
    if state is not None and not _is_base64(state):
        return {}, _refuse(
            422, "90024", "Invalid client_state", "The client_state must be valid base64."
        )
    return body, None


def _command(
    telnyx: EmulatedTelnyx, call: TelnyxCall, action: str, body: dict[str, Any]
) -> Response:
    does = _ACTIONS.get(action)
    if does is None:
        return _refuse(
            404, "10005", "Resource not found", "The requested resource or URL could not be found."
        )
    if call.is_over:
        return CALL_ENDED
    command = body.get("command_id")
    if command in call.command_ids:
        return _done()
    if action not in ("answer", "hangup", "reject") and call.state == "parked":
        return _refuse(
            422,
            "90034",
            "Call not answered yet",
            "This command can't be issued before the call has been answered.",
        )
    if (refusal := does(telnyx, call, body)) is not None:
        return refusal
    if isinstance(command, str):
        call.command_ids.add(command)
    if isinstance(body.get("client_state"), str):
        call.client_state = body["client_state"]
    call.actions.append(action)
    return _done()


def _answer(telnyx: EmulatedTelnyx, call: TelnyxCall, body: dict[str, Any]) -> Response | None:
    call.state = "answered"
    state = body.get("client_state", call.client_state)
    telnyx.queue_event(call, "call.answered", {"state": "answered", "client_state": state})
    return _stream(telnyx, call, body) if body.get("stream_url") else None


def _stream(telnyx: EmulatedTelnyx, call: TelnyxCall, body: dict[str, Any]) -> Response | None:
    if not str(body.get("stream_url", "")).startswith(("wss://", "ws://")):
        return _refuse(
            422, "90046", "Invalid stream_url", "The stream_url must be a websocket address."
        )
    call.streams.append(
        {name: body.get(name) for name in _STREAMS} | {"client_state": body.get("client_state")}
    )
    telnyx.open_stream(call, body["stream_url"], body.get("client_state") or call.client_state)
    return None


def _speak(telnyx: EmulatedTelnyx, call: TelnyxCall, body: dict[str, Any]) -> Response | None:
    text = body.get("payload")
    if not isinstance(text, str) or not text or not body.get("voice"):
        return _refuse(
            422, "10004", "Missing required parameter", "payload and voice are required."
        )
    call.heard.append(text)
    state = {"client_state": body.get("client_state", call.client_state)}
    telnyx.queue_event(call, "call.speak.started", state)
    telnyx.queue_event(
        call, "call.speak.ended", {**state, "status": "completed"}, telnyx.speech_duration_s(text)
    )
    return None


def _gather(telnyx: EmulatedTelnyx, call: TelnyxCall, body: dict[str, Any]) -> Response | None:
    call.heard.append(str(body.get("payload", "")))
    telnyx.queue_event(call, "call.gather.ended", {"digits": "", "status": "timeout"})
    return None


def _transcribe(telnyx: EmulatedTelnyx, call: TelnyxCall, body: dict[str, Any]) -> Response | None:
    engine = body.get("transcription_engine_config")
    call.is_transcribed = True
    call.has_interim_results = isinstance(engine, dict) and engine.get("interim_results") is True
    return None


def _record(telnyx: EmulatedTelnyx, call: TelnyxCall, body: dict[str, Any]) -> Response | None:
    if body.get("channels") not in ("single", "dual") or body.get("format") not in ("wav", "mp3"):
        return _refuse(
            422, "10004", "Missing required parameter", "channels and format are required."
        )
    call.is_recorded = True
    return None


def _stop_recording(
    telnyx: EmulatedTelnyx, call: TelnyxCall, body: dict[str, Any]
) -> Response | None:
    if call.is_recorded:
        telnyx.save_recording(call)
    return None


def _hang_up(telnyx: EmulatedTelnyx, call: TelnyxCall, body: dict[str, Any]) -> Response | None:
    telnyx.end(call, "normal_clearing", "callee")
    return None


def _nothing(telnyx: EmulatedTelnyx, call: TelnyxCall, body: dict[str, Any]) -> Response | None:
    return None


_ACTIONS: dict[str, Callable[[EmulatedTelnyx, TelnyxCall, dict[str, Any]], Response | None]] = {
    "answer": _answer,
    "hangup": _hang_up,
    "reject": _hang_up,
    "speak": _speak,
    "gather_using_speak": _gather,
    "transcription_start": _transcribe,
    "transcription_stop": _nothing,
    "playback_stop": _nothing,
    "record_start": _record,
    "record_stop": _stop_recording,
    "streaming_start": _stream,
    "streaming_stop": _nothing,
}
_CAUSES = {"busy": "user_busy", "no-answer": "timeout", "failed": "not_found"}


def _dial(telnyx: EmulatedTelnyx, call: TelnyxCall, outcome: str) -> None:
    telnyx.queue_event(call, "call.initiated", {"direction": "outgoing", "state": "bridging"})
    if outcome in _CAUSES:
        telnyx.end(call, _CAUSES[outcome], "callee")
        return
    call.state = "answered"
    telnyx.queue_event(call, "call.answered", {"state": "answered"})


def _store_message(telnyx: EmulatedTelnyx, body: dict[str, Any], key: str | None) -> dict[str, Any]:
    known = [message for message in telnyx.messages if key and message["key"] == key]
    if not known:
        message = {
            "id": str(uuid4()),
            "key": key,
            "from": body["from"],
            "to": body["to"],
            "text": body["text"],
        }
        telnyx.messages.append(message)
        known = [message]
    found = known[0]
    to = [{"phone_number": found["to"], "status": "queued"}]
    return {
        "record_type": "message",
        "id": found["id"],
        "direction": "outbound",
        "type": "SMS",
        "to": to,
        "text": found["text"],
    }


def _refuse(status: int, code: str, title: str, detail: str) -> Response:
    return JSONResponse({"errors": [{"code": code, "title": title, "detail": detail}]}, status)


def _done() -> Response:
    return JSONResponse({"data": {"result": "ok"}})


def _is_base64(text: object) -> bool:
    try:
        base64.b64decode(str(text), validate=True)
    except binascii.Error:
        return False
    return isinstance(text, str)
