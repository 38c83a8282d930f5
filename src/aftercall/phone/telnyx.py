"""Telnyx media streaming: snake_case names, audio in the codec of the caller's leg, frames in any order.

What we send is μ-law because the stream was asked for that way (`telnyx_control.py`), whatever the leg brings.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from aftercall.phone.client_state import unpack_state
from aftercall.phone.g711 import ALAW_TO_MULAW
from aftercall.phone.stream import Events, MediaStream, Message, Opening, only_text
from aftercall.phone.wire import SHORTEST_AUDIO, SILENCE, Odd, Oddity

RATE_LIMIT_REACHED = 100_005
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TelnyxWire(MediaStream):
    stream_key = "stream_id"
    sequence_key = "sequence_number"
    encodings: ClassVar[Mapping[str, bytes | None]] = {"PCMU": None, "PCMA": ALAW_TO_MULAW}

    def __init__(self) -> None:
        super().__init__()
        self._last_order = 0

    def _read_opening(self, message: Message, start: Message) -> Opening:
        media: dict[str, Any] = start["media_format"] if isinstance(start.get("media_format"), dict) else {}
        return Opening(
            call_sid=start.get("call_control_id"),
            stream_sid=message.get("stream_id"),
            encoding=media.get("encoding"),
            rate_hz=media.get("sample_rate"),
            channels=media.get("channels"),
            parameters=unpack_state(start.get("client_state")) | _custom_parameters(start.get("custom_parameters")),
        )

    def _address_of(self, stream_sid: str) -> str:
        return ""

    def _order_of_key(self, message: Message) -> int:
        """Frames overtake each other, so keys sort by the time they were pressed."""
        self._last_order = _microseconds(message.get("occurred_at")) or self._last_order + 1
        return self._last_order

    def _pad(self, payload: bytes) -> bytes:
        """Less than 20 ms is refused by the carrier; silence fills it up."""
        return payload.ljust(SHORTEST_AUDIO, SILENCE)

    def _complain(self, message: Message) -> Events:
        payload = message.get("payload")
        code = payload.get("code") if isinstance(payload, dict) else None
        return (Odd(Oddity.TOO_FAST if code == RATE_LIMIT_REACHED else Oddity.COMPLAINT),)


def _custom_parameters(value: object) -> dict[str, str]:
    """An object, or the list of names and values in which they were asked for."""
    if isinstance(value, list):
        pairs = [item for item in value if isinstance(item, dict) and isinstance(item.get("name"), str)]
        return only_text({item["name"]: item.get("value") for item in pairs})
    return only_text(value)


def _microseconds(value: object) -> int | None:
    try:
        return int((datetime.fromisoformat(str(value)) - _EPOCH).total_seconds() * 1_000_000)
    except (ValueError, TypeError, OverflowError):
        return None
