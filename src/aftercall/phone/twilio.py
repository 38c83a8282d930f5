"""Twilio: Media Streams, and requests to its REST API.

The stream has camelCase names and numbers as text; every frame names its stream, both ways.
"""

import json
from collections.abc import Mapping
from datetime import date
from typing import Any, ClassVar

from aftercall.phone.control import ControlRequest, path_part
from aftercall.phone.stream import (
    MediaStream,
    Message,
    StreamOpening,
    parse_whole_number,
    text_values,
)


class TwilioWire(MediaStream):
    stream_key = "streamSid"
    sequence_key = "sequenceNumber"
    encodings: ClassVar[Mapping[str, bytes | None]] = {"audio/x-mulaw": None}

    def _read_opening(self, message: Message, start: Message) -> StreamOpening:
        given = start.get("mediaFormat")
        media: dict[str, Any] = given if isinstance(given, dict) else {}
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
