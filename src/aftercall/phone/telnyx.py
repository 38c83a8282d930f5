"""Telnyx media streaming: snake_case names, audio in the codec of the caller's leg, frames in any order.

What we send is μ-law because the stream was asked for that way (`telnyx_control.py`), whatever the leg brings.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from aftercall.model.instants import parse_instant
from aftercall.phone.client_state import unpack_state
from aftercall.phone.g711 import ALAW_TO_MULAW
from aftercall.phone.stream import Events, MediaStream, Message, Opening, only_text
from aftercall.phone.wire import SHORTEST_AUDIO, SILENCE, Odd, Oddity

RATE_LIMIT_REACHED = 100_005


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
        self._last_order = _milliseconds(message.get("occurred_at")) or self._last_order + 1
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


def _milliseconds(value: object) -> int | None:
    try:
        return int(parse_instant(value).timestamp() * 1_000)
    except ValueError:
        return None
