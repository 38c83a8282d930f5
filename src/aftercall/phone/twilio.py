"""Twilio: its webhooks, TwiML, Media Streams, and requests to its REST API.

Webhooks are forms; unknown fields are ignored. The stream has camelCase names and numbers as
text; every frame names its stream, both ways. TwiML is written with the standard library:
Twilio's SDK brings a score of packages for three short answers. The tests compare them with the
SDK's.
"""

import json
import re
from collections.abc import Mapping
from datetime import date
from typing import ClassVar
from urllib.parse import parse_qsl, urlsplit
from xml.etree.ElementTree import Element, SubElement, tostring

from aftercall.errors import RefusedInput
from aftercall.model.calls import is_sid
from aftercall.model.json_fields import Json
from aftercall.model.plain_json import clean_text
from aftercall.phone.notices import (
    CallProgress,
    CarrierCallState,
    ControlRequest,
    RecordingNotice,
    RecordingState,
    RingNotice,
    SpeechGathered,
    clean_detail,
    path_part,
    read_confidence,
    read_party,
)
from aftercall.phone.stream import (
    MediaStream,
    Message,
    StreamOpening,
    parse_whole_number,
    text_values,
)

CONTENT_TYPE = "text/xml"
MAX_PARAMETER_CHARS = 500
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def connect_stream(
    url: str,
    parameters: Mapping[str, str],
    *,
    next_url: str | None = None,
    recording_callback: str | None = None,
) -> str:
    """Connect the call's audio to a media socket.

    When the socket closes, Twilio asks `next_url` what to do, or hangs up without one. It drops
    the query of a stream's address, so values travel as parameters.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("wss", "ws") or parts.query or parts.fragment:
        raise ValueError("a stream's address begins with wss:// and has no query")
    response = _begin(recording_callback)
    stream = SubElement(SubElement(response, "Connect"), "Stream", url=_clean(url))
    for name, value in parameters.items():
        if len(name) + len(value) >= MAX_PARAMETER_CHARS:
            raise ValueError(
                f"a parameter has less than {MAX_PARAMETER_CHARS} characters"
            )
        SubElement(stream, "Parameter", name=_clean(name), value=_clean(value))
    _add_next(response, next_url)
    return _write(response)


def gather_speech(
    prompt: str,
    action: str,
    *,
    silence_url: str | None = None,
    recording_callback: str | None = None,
) -> str:
    """Say something and listen. Speech goes to `action`, silence to `silence_url` or hangs up."""
    response = _begin(recording_callback)
    options = {"input": "speech", "method": "POST", "speechTimeout": "auto"}
    gather = SubElement(response, "Gather", options, action=_clean(action))
    SubElement(gather, "Say").text = _clean(prompt)
    _add_next(response, silence_url)
    return _write(response)


def say_and_hang_up(text: str) -> str:
    response = Element("Response")
    SubElement(response, "Say").text = _clean(text)
    SubElement(response, "Hangup")
    return _write(response)


def reject_call() -> str:
    """The caller hears that the line is busy. Costs nothing."""
    response = Element("Response")
    SubElement(response, "Reject", reason="busy")
    return _write(response)


def hang_up() -> str:
    response = Element("Response")
    SubElement(response, "Hangup")
    return _write(response)


def _add_next(response: Element, url: str | None) -> None:
    """What follows when nothing more is to be played here."""
    if url is None:
        SubElement(response, "Hangup")
    else:
        SubElement(response, "Redirect", method="POST").text = _clean(url)


def _begin(recording_callback: str | None) -> Element:
    """With a callback the call is recorded. Silence stays in: audio and turns share one clock."""
    response = Element("Response")
    if recording_callback:
        options = {
            "recordingStatusCallback": _clean(recording_callback),
            "recordingStatusCallbackEvent": "completed absent",
            "channels": "dual",
            "track": "both",
            "trim": "do-not-trim",
        }
        SubElement(SubElement(response, "Start"), "Recording", options)
    return response


def _clean(text: str) -> str:
    """XML cannot hold control characters and lone surrogates, not even escaped."""
    return _NOT_XML.sub("", text)


def _write(response: Element) -> str:
    return '<?xml version="1.0" encoding="UTF-8"?>' + tostring(
        response, encoding="unicode"
    )


class TwilioWire(MediaStream):
    stream_key = "streamSid"
    sequence_key = "sequenceNumber"
    encodings: ClassVar[Mapping[str, bytes | None]] = {"audio/x-mulaw": None}

    def _read_opening(self, message: Message, start: Message) -> StreamOpening:
        given = start.get("mediaFormat")
        media: Json = given if isinstance(given, dict) else {}
        return StreamOpening(
            call_sid=start.get("callSid"),
            stream_sid=message.get("streamSid"),
            encoding=media.get("encoding"),
            rate_hz=media.get("sampleRate"),
            channels=media.get("channels"),
            parameters=text_values(start.get("customParameters")),
        )

    def _address_of(self, stream_sid: str) -> str:
        return f',"streamSid":{json.dumps(stream_sid)}'

    def _digit_order(self, message: Message) -> int:
        return parse_whole_number(message.get("sequenceNumber")) or 0


NOT_FOUND = 20_404


class TwilioControl:
    """The requests to Twilio's REST API."""

    def __init__(self, account_sid: str) -> None:
        self._account = f"/2010-04-01/Accounts/{path_part(account_sid)}"

    def hang_up(self, sid: str) -> ControlRequest:
        path = f"{self._account}/Calls/{path_part(sid)}.json"
        return ControlRequest("hang-up", "POST", path, form=(("Status", "completed"),))

    def dial(self, fields: Mapping[str, str]) -> ControlRequest:
        path = f"{self._account}/Calls.json"
        return ControlRequest(
            "dial", "POST", path, tuple(fields.items()), is_repeatable=False
        )

    def send_message(self, sender: str, to: str, text: str) -> ControlRequest:
        """Twilio takes no idempotency key: look for the message with `list_messages` first."""
        path = f"{self._account}/Messages.json"
        form = (("From", sender), ("To", to), ("Body", text))
        return ControlRequest("message", "POST", path, form, is_repeatable=False)

    def list_messages(self, to: str, since: date) -> ControlRequest:
        path = f"{self._account}/Messages.json"
        form = (("To", to), ("DateSent>", f"{since:%Y-%m-%d}"), ("PageSize", "200"))
        return ControlRequest("messages", "GET", path, form)

    def is_call_over(self, status: int, body: bytes) -> bool:
        try:
            return status == 404 and json.loads(body)["code"] == NOT_FOUND
        except (ValueError, KeyError, TypeError, RecursionError):
            return False


FORM_TYPE = "application/x-www-form-urlencoded"
MAX_BODY_BYTES = 262_144
MAX_FIELDS = 500

Fields = tuple[tuple[str, str], ...]


def read_form(body: bytes) -> Fields:
    """Every field in order, with the empty ones: Twilio signs them too.

    Bytes that are no UTF-8 stay as they are (as surrogates), since they were signed so.
    """
    if len(body) > MAX_BODY_BYTES:
        raise RefusedInput("body", "is too long for a form")
    try:
        pairs = parse_qsl(
            body.decode("utf-8", "surrogateescape"),
            keep_blank_values=True,
            errors="surrogateescape",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:
        raise RefusedInput("body", "is not a form, or has too many fields") from None
    return tuple(pairs)


SOURCE = "twilio"
FULL_ATTESTATION = "TN-Validation-Passed-A"  # B and C do not vouch for the number
_FAILED_ATTESTATION = "tn-validation-failed"  # any level, diverted or not
_DETAILS = {
    "AccountSid": "account_sid",
    "CallerName": "caller_name",
    "ForwardedFrom": "forwarded_from",
    "FromCity": "from_city",
    "FromCountry": "from_country",
    "ParentCallSid": "parent_call_sid",
    "StirVerstat": "stir_verstat",
}
_STATES = {
    "queued": CarrierCallState.RINGING,
    "initiated": CarrierCallState.RINGING,
    "ringing": CarrierCallState.RINGING,
    "in-progress": CarrierCallState.ANSWERED,
    "answered": CarrierCallState.ANSWERED,
    "completed": CarrierCallState.COMPLETED,
    "busy": CarrierCallState.BUSY,
    "failed": CarrierCallState.FAILED,
    "no-answer": CarrierCallState.NO_ANSWER,
    "canceled": CarrierCallState.CANCELLED,
}
_RECORDING_STATES = {
    "in-progress": RecordingState.RUNNING,
    "completed": RecordingState.READY,
    "absent": RecordingState.ABSENT,
    "failed": RecordingState.FAILED,
}


def read_ring(form: Fields) -> RingNotice:
    fields = _first_of_each(form)
    metadata: Json = {
        ours: clean_detail(fields[theirs])
        for theirs, ours in _DETAILS.items()
        if fields.get(theirs)
    }
    caller = read_party(fields.get("From") or fields.get("Caller"), "caller", metadata)
    callee = read_party(fields.get("To") or fields.get("Called"), "callee", metadata)
    is_inbound = fields.get("Direction", "inbound") == "inbound"
    verstat = fields.get("StirVerstat", "")
    is_attested = verstat == FULL_ATTESTATION
    sid = _sid(fields)
    ring = RingNotice(
        key=f"{sid}:ring",
        source=SOURCE,
        sid=sid,
        caller=caller,
        callee=callee,
        direction="inbound" if is_inbound else "outbound",
        verified=is_inbound and caller is not None and is_attested,
        metadata=metadata,
    )
    is_forged = is_inbound and _FAILED_ATTESTATION in verstat.lower()
    return ring.refuse_number() if is_forged else ring


def read_gathered(form: Fields, retry_token: str = "") -> SpeechGathered:
    """The answer to a Gather. Empty text: the caller said nothing.

    A caller may say the same word twice: only Twilio's retry token (a header) marks a repeat.
    """
    fields = _first_of_each(form)
    sid = _sid(fields)
    confidence = read_confidence(fields.get("Confidence"))
    return SpeechGathered(retry_token, sid, fields.get("SpeechResult", ""), confidence)


def read_progress(form: Fields) -> CallProgress:
    """Keyed by call and state: each state of a call may be reported twice."""
    fields = _first_of_each(form)
    sid = _sid(fields)
    state = _STATES.get(fields.get("CallStatus", ""))
    if state is None:
        raise RefusedInput("CallStatus", "is not a known state of a call")
    return CallProgress(f"{sid}:{state}", sid, state)


def read_recorded(form: Fields) -> RecordingNotice:
    fields = _first_of_each(form)
    sid, recording = _sid(fields), _sid(fields, "RecordingSid")
    state = _RECORDING_STATES.get(fields.get("RecordingStatus", ""))
    if state is None:
        raise RefusedInput("RecordingStatus", "is not a known state of a recording")
    url = fields.get("RecordingUrl") if state is RecordingState.READY else None
    return RecordingNotice(
        f"{recording}:{state}", (sid,), state, recording, url or None
    )


def _first_of_each(form: Fields) -> dict[str, str]:
    return {name: clean_text(_recode(value)) for name, value in reversed(form)}


def _recode(text: str) -> str:
    """Bytes that are no UTF-8 as one character: Twilio may cut a text inside an emoji."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _sid(fields: dict[str, str], name: str = "CallSid") -> str:
    sid = fields.get(name, "")
    if not is_sid(sid):
        raise RefusedInput(name, "is missing or not an id")
    return sid
