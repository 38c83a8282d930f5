"""Telnyx media streaming: snake_case names, audio in the codec of the caller's leg, frames in
any order.

What we send is μ-law because the stream was asked for that way (`telnyx_control.py`), whatever
the leg brings.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import NAMESPACE_OID, uuid5

from aftercall.clock import parse_instant
from aftercall.phone.control import ControlRequest, path_part
from aftercall.phone.stream import Events, MediaStream, Message, StreamOpening, text_values
from aftercall.phone.wire import MIN_AUDIO_BYTES, SILENCE, Oddity, OddMessage


def _to_linear(alaw: int) -> int:
    """One A-law byte as a 16-bit sample (ITU-T G.711: every other bit is sent inverted)."""
    bits = alaw ^ 0x55
    segment = bits >> 4 & 0x07
    magnitude = ((bits & 0x0F) << 4) + 8
    if segment:
        magnitude = magnitude + 0x100 << segment - 1
    return magnitude if bits & 0x80 else -magnitude


def _to_mulaw(sample: int) -> int:
    magnitude = min(abs(sample), 32_635) + 0x84
    segment = magnitude.bit_length() - 8
    sign = 0x80 if sample < 0 else 0
    return ~(sign | segment << 4 | magnitude >> segment + 3 & 0x0F) & 0xFF


ALAW_TO_MULAW = bytes(_to_mulaw(_to_linear(byte)) for byte in range(256))


RATE_LIMIT_REACHED = 100_005


class TelnyxWire(MediaStream):
    stream_key = "stream_id"
    sequence_key = "sequence_number"
    encodings: ClassVar[Mapping[str, bytes | None]] = {"PCMU": None, "PCMA": ALAW_TO_MULAW}

    def __init__(self) -> None:
        super().__init__()
        self._last_order = 0

    def _read_opening(self, message: Message, start: Message) -> StreamOpening:
        media: dict[str, Any] = (
            start["media_format"] if isinstance(start.get("media_format"), dict) else {}
        )
        return StreamOpening(
            call_sid=start.get("call_control_id"),
            stream_sid=message.get("stream_id"),
            encoding=media.get("encoding"),
            rate_hz=media.get("sample_rate"),
            channels=media.get("channels"),
            parameters=unpack_state(start.get("client_state"))
            | _custom_parameters(start.get("custom_parameters")),
        )

    def _address_of(self, stream_sid: str) -> str:
        return ""

    def _digit_order(self, message: Message) -> int:
        """Frames overtake each other, so keys sort by the time they were pressed."""
        self._last_order = _milliseconds(message.get("occurred_at")) or self._last_order + 1
        return self._last_order

    def _pad(self, payload: bytes) -> bytes:
        """Less than 20 ms is refused by the carrier; silence fills it up."""
        return payload.ljust(MIN_AUDIO_BYTES, SILENCE)

    def _read_error(self, message: Message) -> Events:
        payload = message.get("payload")
        code = payload.get("code") if isinstance(payload, dict) else None
        return (OddMessage(Oddity.TOO_FAST if code == RATE_LIMIT_REACHED else Oddity.COMPLAINT),)


def _custom_parameters(value: object) -> dict[str, str]:
    """An object, or the list of names and values in which they were asked for."""
    if isinstance(value, list):
        pairs = [
            item for item in value if isinstance(item, dict) and isinstance(item.get("name"), str)
        ]
        return text_values({item["name"]: item.get("value") for item in pairs})
    return text_values(value)


def _milliseconds(value: object) -> int | None:
    try:
        return int(parse_instant(value).timestamp() * 1_000)
    except ValueError:
        return None


def pack_state(state: Mapping[str, str]) -> str:
    return b64encode(
        json.dumps(dict(state), separators=(",", ":"), sort_keys=True).encode()
    ).decode("ascii")


def unpack_state(state: object) -> dict[str, str]:
    """Whatever is not ours, or not whole, is nothing: another program may have set it."""
    if not isinstance(state, str):
        return {}
    try:
        return text_values(json.loads(b64decode(state, validate=True)))
    except (ValueError, RecursionError):
        return {}


CALL_HAS_ENDED = "90018"
DEFAULT_VOICE = (
    "AWS.Polly.Joanna-Neural"  # comes with Telnyx; plain `female` is for its basic service only
)
# Without rtp the stream takes MP3 files at one a second and ignores our audio; without PCMU it
# would not be μ-law.
_STREAM = {
    "stream_track": "inbound_track",
    "stream_codec": "PCMU",
    "stream_bidirectional_mode": "rtp",
    "stream_bidirectional_codec": "PCMU",
}


class TelnyxControl:
    def answer(
        self,
        sid: str,
        *,
        cause: str,
        stream_url: str | None = None,
        state: Mapping[str, str] | None = None,
    ) -> ControlRequest:
        """Pick up; with `stream_url` the audio goes to that socket at once, and `state` arrives
        in its start.
        """
        stream = {"stream_url": stream_url, **_STREAM} if stream_url else {}
        return _command(sid, "answer", cause, state, stream)

    def start_stream(
        self, sid: str, stream_url: str, *, cause: str, state: Mapping[str, str] | None = None
    ) -> ControlRequest:
        return _command(sid, "streaming_start", cause, state, {"stream_url": stream_url, **_STREAM})

    def stop_stream(self, sid: str, *, cause: str = "") -> ControlRequest:
        return _command(sid, "streaming_stop", cause)

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
        """Say something, in place of whatever is being said: answers do not queue up behind a
        caller who has gone on.
        """
        return _command(
            sid,
            "speak",
            cause,
            state,
            {"payload": text, "voice": voice, "language": language, "stop": "all"},
        )

    def gather_keys(
        self,
        sid: str,
        prompt: str,
        *,
        cause: str,
        max_digits: int = 1,
        voice: str = DEFAULT_VOICE,
        language: str = "en-US",
    ) -> ControlRequest:
        """Say something and wait for keys.

        Speech is not gathered here but transcribed: see `start_transcription`.
        """
        body = {
            "payload": prompt,
            "voice": voice,
            "language": language,
            "minimum_digits": 1,
            "maximum_digits": max_digits,
        }
        return _command(sid, "gather_using_speak", cause, None, body)

    def start_transcription(self, sid: str, *, cause: str, language: str = "en") -> ControlRequest:
        """What the caller says arrives as events, in pieces; only their side, or the agent
        would hear itself.

        Interim pieces are wanted, too: without them a caller who speaks for long cannot be told
        from one who is silent.
        """
        engine = {"transcription_engine": "Google", "language": language, "interim_results": True}
        body = {
            "transcription_engine": "Google",
            "transcription_engine_config": engine,
            "transcription_tracks": "inbound",
        }
        return _command(sid, "transcription_start", cause, None, body)

    def start_recording(
        self,
        sid: str,
        *,
        callback: str | None = None,
        cause: str = "",
        state: Mapping[str, str] | None = None,
    ) -> ControlRequest:
        """The finished recording is told to the connection's webhook; Telnyx takes no
        `callback` of its own.
        """
        return _command(sid, "record_start", cause, state, {"channels": "dual", "format": "wav"})

    def hang_up(self, sid: str, *, cause: str = "") -> ControlRequest:
        return _command(sid, "hangup", cause)

    def find_recording(self, recording_sid: str) -> ControlRequest:
        """Where a recording can be fetched now: the address that a webhook told is good for ten
        minutes only.
        """
        return ControlRequest("GET", f"/v2/recordings/{path_part(recording_sid)}")

    def send_message(self, sender: str, to: str, text: str, *, key: str) -> ControlRequest:
        """A text message; the same `key` twice is one message."""
        return ControlRequest(
            "POST",
            "/v2/messages",
            json={"from": sender, "to": to, "text": text},
            idempotency_key=key,
        )

    def is_call_over(self, status: int, body: bytes) -> bool:
        try:
            return status == 422 and any(
                str(error["code"]) == CALL_HAS_ENDED for error in json.loads(body)["errors"]
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            return False


def _command(
    sid: str,
    action: str,
    cause: str,
    state: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
) -> ControlRequest:
    fields: dict[str, Any] = {
        **(body or {}),
        "command_id": str(uuid5(NAMESPACE_OID, f"{sid} {action} {cause}")),
    }
    if state:
        fields["client_state"] = pack_state(state)
    return ControlRequest("POST", f"/v2/calls/{path_part(sid)}/actions/{action}", json=fields)
