"""Telnyx's webhooks: one address for all events. An event that repeats has the same id."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aftercall.errors import RefusedInput
from aftercall.model.calls import is_sid
from aftercall.model.plain_json import parse_json
from aftercall.phone.notices import (
    CallProgress,
    CarrierCallState,
    Notice,
    RecordingNotice,
    RecordingState,
    RingNotice,
    SpeakingEnded,
    SpeechGathered,
    StreamFailed,
    clean_detail,
    read_confidence,
    read_party,
)
from aftercall.phone.telnyx import unpack_state

SOURCE = "telnyx"
MAX_BODY_BYTES = 262_144
CALL_STATE_KEY = "call"
NUMBER_STATE_KEY, REFUSED = "number", "refused"
_ATTESTED = "A"
_NOT_VALIDATED: tuple[object, ...] = (False, "false", "False", "0")  # 0 is False
_DETAILS = ("caller_id_name", "connection_id", "shaken_stir_attestation", "start_time")
_CAUSES = {
    "user_busy": CarrierCallState.BUSY,
    "call_rejected": CarrierCallState.FAILED,
    "not_found": CarrierCallState.FAILED,
    "no_answer": CarrierCallState.NO_ANSWER,
    "timeout": CarrierCallState.NO_ANSWER,
    "originator_cancel": CarrierCallState.CANCELLED,
}


@dataclass(frozen=True, slots=True)
class _Envelope:
    id: str
    payload: dict[str, Any]


def read_event(body: bytes) -> Notice | None:
    """The notice of an event; None for the many events without use here."""
    data = _read_data(body)
    reader = (
        _READERS.get(data["event_type"])
        if isinstance(data.get("event_type"), str)
        else None
    )
    if reader is None:
        return None
    if not is_sid(data.get("id")):
        raise RefusedInput("data.id", "is missing or not an id")
    payload = data.get("payload")
    if not isinstance(payload, dict):
        raise RefusedInput("data.payload", "is not an object")
    return reader(_Envelope(data["id"], payload))


def _read_data(body: bytes) -> dict[str, Any]:
    if len(body) > MAX_BODY_BYTES:
        raise RefusedInput("body", "is too long for an event")
    envelope = parse_json(body)
    data = envelope.get("data") if isinstance(envelope, dict) else None
    if not isinstance(data, dict):
        raise RefusedInput("data", "is not an object")
    return data


def _ring(event: _Envelope) -> RingNotice:
    payload = event.payload
    metadata: dict[str, Any] = {
        name: clean_detail(payload[name])
        for name in _DETAILS
        if isinstance(payload.get(name), str)
    }
    metadata["ids"] = list(_other_ids(payload))
    caller = read_party(payload.get("from"), "caller", metadata)
    callee = read_party(payload.get("to"), "callee", metadata)
    is_inbound = payload.get("direction", "incoming") == "incoming"
    attestation = payload.get("shaken_stir_attestation")
    is_valid = payload.get("shaken_stir_validated")
    ring = RingNotice(
        key=event.id,
        source=SOURCE,
        sid=_sid(payload),
        caller=caller,
        callee=callee,
        direction="inbound" if is_inbound else "outbound",
        verified=is_inbound
        and caller is not None
        and attestation == _ATTESTED
        and is_valid is True,
        metadata=metadata,
    )
    # without an attestation there was nothing to validate
    has_failed = is_valid in _NOT_VALIDATED
    is_forged = is_inbound and bool(attestation) and has_failed
    return ring.refuse_number() if is_forged else ring


def _answered(event: _Envelope) -> CallProgress:
    return _progress(event, CarrierCallState.ANSWERED)


def _hung_up(event: _Envelope) -> CallProgress:
    cause = event.payload.get("hangup_cause")
    known = _CAUSES.get(cause) if isinstance(cause, str) else None
    return _progress(event, known or CarrierCallState.COMPLETED)


def _progress(event: _Envelope, state: CarrierCallState) -> CallProgress:
    """Later events may not repeat the attestation; our own state says that it failed."""
    ring, client_state = _ring(event), unpack_state(event.payload.get("client_state"))
    if client_state.get(NUMBER_STATE_KEY) == REFUSED:
        ring = ring.refuse_number()
    return CallProgress(
        event.id, _sid(event.payload), state, ring=ring, client_state=client_state
    )


def _spoken(event: _Envelope) -> SpeakingEnded:
    state = unpack_state(event.payload.get("client_state"))
    return SpeakingEnded(event.id, _sid(event.payload), state)


def _transcribed(event: _Envelope) -> SpeechGathered | None:
    data = event.payload.get("transcription_data")
    if not isinstance(data, dict) or not isinstance(data.get("transcript"), str):
        raise RefusedInput("data.payload.transcription_data", "holds no transcript")
    if data.get("transcription_track", "inbound") != "inbound":
        return None  # the agent's voice
    confidence = read_confidence(data.get("confidence"))
    is_final = data.get("is_final") is not False
    sid, text = _sid(event.payload), data["transcript"]
    return SpeechGathered(event.id, sid, text, confidence, is_final=is_final)


def _recorded(event: _Envelope) -> RecordingNotice:
    """The address is good for ten minutes. The event names the leg and session, not the call."""
    payload = event.payload
    given = payload.get("recording_urls")
    urls = given if isinstance(given, dict) else {}
    found = [urls[kind] for kind in ("wav", "mp3") if isinstance(urls.get(kind), str)]
    recording = payload.get("recording_id")
    return RecordingNotice(
        key=event.id,
        call_sids=_recorded_calls(payload),
        state=RecordingState.READY if found else RecordingState.ABSENT,
        recording_sid=recording if isinstance(recording, str) else None,
        url=found[0] if found else None,
    )


def _not_recorded(event: _Envelope) -> RecordingNotice:
    return RecordingNotice(
        event.id, _recorded_calls(event.payload), RecordingState.FAILED
    )


def _stream_failed(event: _Envelope) -> StreamFailed:
    return StreamFailed(event.id, _sid(event.payload))


_READERS: dict[str, Callable[[_Envelope], Notice | None]] = {
    "call.initiated": _ring,
    "call.answered": _answered,
    "call.hangup": _hung_up,
    "call.transcription": _transcribed,
    "call.speak.ended": _spoken,
    "call.recording.saved": _recorded,
    "call.recording.error": _not_recorded,
    "streaming.failed": _stream_failed,
}


def _sid(payload: dict[str, Any]) -> str:
    sid = payload.get("call_control_id")
    if not isinstance(sid, str) or not is_sid(sid):
        raise RefusedInput("data.payload.call_control_id", "is missing or not an id")
    return sid


def _recorded_calls(payload: dict[str, Any]) -> tuple[str, ...]:
    """Our state names the call, if it comes back. The leg and session ids always come."""
    sid = unpack_state(payload.get("client_state")).get(CALL_STATE_KEY)
    others = _other_ids(payload)
    return (sid, *others) if sid and is_sid(sid) else others


def _other_ids(payload: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        payload[name]
        for name in ("call_leg_id", "call_session_id")
        if is_sid(payload.get(name))
    )
