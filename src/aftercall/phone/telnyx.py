"""Telnyx: its webhooks, media streaming, and commands to its REST API.

Webhooks have one address for all events; an event that repeats has the same id. The stream has
snake_case names, audio in the codec of the caller's leg, and frames in any order. We send μ-law:
`TelnyxControl` asks for the stream that way.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar
from uuid import NAMESPACE_OID, uuid5

from aftercall.clock import parse_instant
from aftercall.errors import RefusedInput
from aftercall.model.calls import is_sid
from aftercall.model.json_fields import Json
from aftercall.model.plain_json import parse_json
from aftercall.phone.notices import (
    CallProgress,
    CarrierCallState,
    ControlRequest,
    Notice,
    RecordingNotice,
    RecordingState,
    RingNotice,
    SpeakingEnded,
    SpeechGathered,
    StreamFailed,
    clean_detail,
    path_part,
    read_confidence,
    read_party,
)
from aftercall.phone.stream import (
    Events,
    MediaStream,
    Message,
    StreamOpening,
    text_values,
)
from aftercall.phone.wire import MIN_AUDIO_BYTES, SILENCE, Oddity, OddMessage
from aftercall.speech.sound import to_mulaw


def _to_linear(alaw: int) -> int:
    """One A-law byte as a 16-bit sample (ITU-T G.711: every other bit is sent inverted)."""
    bits = alaw ^ 0x55
    segment = bits >> 4 & 0x07
    magnitude = ((bits & 0x0F) << 4) + 8
    if segment:
        magnitude = magnitude + 0x100 << segment - 1
    return magnitude if bits & 0x80 else -magnitude


ALAW_TO_MULAW = bytes(to_mulaw(_to_linear(byte)) for byte in range(256))
RATE_LIMIT_REACHED = 100_005
CALL_HAS_ENDED = "90018"
# Telnyx includes this voice; plain `female` works with its basic service only.
DEFAULT_VOICE = "AWS.Polly.Joanna-Neural"
# Without rtp the stream takes MP3 files at one a second and ignores our audio; without PCMU it
# would not be μ-law.
_STREAM = {
    "stream_track": "inbound_track",
    "stream_codec": "PCMU",
    "stream_bidirectional_mode": "rtp",
    "stream_bidirectional_codec": "PCMU",
}


class TelnyxWire(MediaStream):
    """Telnyx's media messages as values."""

    stream_key = "stream_id"
    sequence_key = "sequence_number"
    encodings: ClassVar[Mapping[str, bytes | None]] = {
        "PCMU": None,
        "PCMA": ALAW_TO_MULAW,
    }

    def __init__(self) -> None:
        super().__init__()
        self._last_order = 0

    def _read_opening(self, message: Message, start: Message) -> StreamOpening:
        given = start.get("media_format")
        media: Json = given if isinstance(given, dict) else {}
        state = unpack_state(start.get("client_state"))
        return StreamOpening(
            call_sid=start.get("call_control_id"),
            stream_sid=message.get("stream_id"),
            encoding=media.get("encoding"),
            rate_hz=media.get("sample_rate"),
            channels=media.get("channels"),
            parameters=state | _custom_parameters(start.get("custom_parameters")),
        )

    def _address_of(self, stream_sid: str) -> str:
        return ""

    def _digit_order(self, message: Message) -> int:
        """Frames arrive out of order, so keys are sorted by the time they were pressed."""
        self._last_order = (
            _milliseconds(message.get("occurred_at")) or self._last_order + 1
        )
        return self._last_order

    def _pad(self, payload: bytes) -> bytes:
        """Telnyx refuses less than 20 ms; silence fills it up."""
        return payload.ljust(MIN_AUDIO_BYTES, SILENCE)

    def _read_error(self, message: Message) -> Events:
        payload = message.get("payload")
        code = payload.get("code") if isinstance(payload, dict) else None
        return (
            OddMessage(
                Oddity.TOO_FAST if code == RATE_LIMIT_REACHED else Oddity.COMPLAINT
            ),
        )


def _custom_parameters(value: object) -> dict[str, str]:
    """An object, or a list of names and values."""
    if not isinstance(value, list):
        return text_values(value)
    pairs = [item for item in value if isinstance(item, dict)]
    named = {
        item["name"]: item.get("value")
        for item in pairs
        if isinstance(item.get("name"), str)
    }
    return text_values(named)


def _milliseconds(value: object) -> int | None:
    try:
        return int(parse_instant(value).timestamp() * 1_000)
    except ValueError:
        return None


def pack_state(state: Mapping[str, str]) -> str:
    text = json.dumps(dict(state), separators=(",", ":"), sort_keys=True)
    return b64encode(text.encode()).decode("ascii")


def unpack_state(state: object) -> dict[str, str]:
    """Empty for a state that is not ours or not whole: another program may have set it."""
    if not isinstance(state, str):
        return {}
    try:
        return text_values(json.loads(b64decode(state, validate=True)))
    except (ValueError, RecursionError):
        return {}


class TelnyxControl:
    """The requests to Telnyx's REST API.

    `cause` is the event that led to a command: with it the same command sent twice works once.
    """

    def answer(
        self,
        sid: str,
        *,
        cause: str,
        stream_url: str | None = None,
        state: Mapping[str, str] | None = None,
    ) -> ControlRequest:
        """Answer the call. With `stream_url` the audio goes to that socket at once, and `state`
        arrives in its start.
        """
        stream = {"stream_url": stream_url, **_STREAM} if stream_url else {}
        return _command(sid, "answer", cause, state, stream)

    def speak(
        self,
        sid: str,
        text: str,
        *,
        cause: str,
        voice: str = DEFAULT_VOICE,
        language: str = "en-US",
        state: Mapping[str, str] | None = None,
    ) -> ControlRequest:
        """Say something instead of what is being said: answers must not queue up."""
        body = {"payload": text, "voice": voice, "language": language, "stop": "all"}
        return _command(sid, "speak", cause, state, body)

    def start_transcription(
        self, sid: str, *, cause: str, language: str = "en"
    ) -> ControlRequest:
        """Transcribe the caller only, or the agent would hear itself.

        Interim results tell a caller who speaks for long from one who is silent.
        """
        engine = {
            "transcription_engine": "Google",
            "language": language,
            "interim_results": True,
        }
        body = {
            "transcription_engine": "Google",
            "transcription_engine_config": engine,
            "transcription_tracks": "inbound",
        }
        return _command(sid, "transcription_start", cause, None, body)

    def start_recording(
        self, sid: str, *, cause: str = "", state: Mapping[str, str] | None = None
    ) -> ControlRequest:
        """Record both sides. The webhook of the connection reports the finished recording."""
        return _command(
            sid, "record_start", cause, state, {"channels": "dual", "format": "wav"}
        )

    def hang_up(self, sid: str, *, cause: str = "") -> ControlRequest:
        return _command(sid, "hangup", cause)

    def find_recording(self, recording_sid: str) -> ControlRequest:
        """Ask for a fresh address: the one from the webhook is good for ten minutes only."""
        return ControlRequest(
            "recording", "GET", f"/v2/recordings/{path_part(recording_sid)}"
        )

    def is_call_over(self, status: int, body: bytes) -> bool:
        if status != 422:
            return False
        try:
            return CALL_HAS_ENDED in [
                str(error["code"]) for error in json.loads(body)["errors"]
            ]
        except (ValueError, KeyError, TypeError, RecursionError):
            return False


def _command(
    sid: str,
    action: str,
    cause: str,
    state: Mapping[str, str] | None = None,
    body: Json | None = None,
) -> ControlRequest:
    command_id = str(uuid5(NAMESPACE_OID, f"{sid} {action} {cause}"))
    fields: Json = {**(body or {}), "command_id": command_id}
    if state:
        fields["client_state"] = pack_state(state)
    path = f"/v2/calls/{path_part(sid)}/actions/{action}"
    return ControlRequest(action, "POST", path, json=fields)


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
    payload: Json


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


def _read_data(body: bytes) -> Json:
    if len(body) > MAX_BODY_BYTES:
        raise RefusedInput("body", "is too long for an event")
    envelope = parse_json(body)
    data = envelope.get("data") if isinstance(envelope, dict) else None
    if not isinstance(data, dict):
        raise RefusedInput("data", "is not an object")
    return data


def _ring(event: _Envelope) -> RingNotice:
    payload = event.payload
    metadata: Json = {
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
    """What the caller said; None for the agent's own voice."""
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


def _sid(payload: Json) -> str:
    sid = payload.get("call_control_id")
    if not isinstance(sid, str) or not is_sid(sid):
        raise RefusedInput("data.payload.call_control_id", "is missing or not an id")
    return sid


def _recorded_calls(payload: Json) -> tuple[str, ...]:
    """Our state names the call, if it comes back. The leg and session ids always come."""
    sid = unpack_state(payload.get("client_state")).get(CALL_STATE_KEY)
    others = _other_ids(payload)
    return (sid, *others) if sid and is_sid(sid) else others


def _other_ids(payload: Json) -> tuple[str, ...]:
    return tuple(
        payload[name]
        for name in ("call_leg_id", "call_session_id")
        if is_sid(payload.get(name))
    )
