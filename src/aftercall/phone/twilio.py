"""Twilio Media Streams: camelCase names, numbers as text, the stream named in every frame both ways."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from aftercall.phone.stream import MediaStream, Message, Opening, only_text, whole


class TwilioWire(MediaStream):
    stream_key = "streamSid"
    sequence_key = "sequenceNumber"
    encodings: ClassVar[Mapping[str, bytes | None]] = {"audio/x-mulaw": None}

    def _read_opening(self, message: Message, start: Message) -> Opening:
        media: dict[str, Any] = start["mediaFormat"] if isinstance(start.get("mediaFormat"), dict) else {}
        return Opening(
            call_sid=start.get("callSid"),
            stream_sid=message.get("streamSid"),
            encoding=media.get("encoding"),
            rate_hz=media.get("sampleRate"),
            channels=media.get("channels"),
            parameters=only_text(start.get("customParameters")),
        )

    def _address_of(self, stream_sid: str) -> str:
        return f',"streamSid":{json.dumps(stream_sid)}'

    def _order_of_key(self, message: Message) -> int:
        return whole(message.get("sequenceNumber")) or 0
