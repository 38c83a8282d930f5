"""Twilio's webhooks: forms. Unknown fields are ignored."""

from typing import Any
from urllib.parse import parse_qsl

from aftercall.errors import RefusedInput
from aftercall.model.calls import is_sid
from aftercall.model.plain_json import clean_text
from aftercall.phone.notices import (
    CallProgress,
    CarrierCallState,
    RecordingNotice,
    RecordingState,
    RingNotice,
    SpeechGathered,
    clean_detail,
    read_confidence,
    read_party,
)

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
    metadata: dict[str, Any] = {
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
