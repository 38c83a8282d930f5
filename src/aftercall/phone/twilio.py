"""Twilio Media Streams: camelCase names, numbers as text, the stream named in every frame both
ways.
"""

import json
from collections.abc import Mapping
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
        media: dict[str, Any] = (
            start["mediaFormat"] if isinstance(start.get("mediaFormat"), dict) else {}
        )
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
    def __init__(self, account_sid: str) -> None:
        self._account = f"/2010-04-01/Accounts/{path_part(account_sid)}"

    def hang_up(self, sid: str) -> ControlRequest:
        return self._post(f"{path_part(sid)}.json", ("Status", "completed"))

    def replace_twiml(self, sid: str, twiml: str) -> ControlRequest:
        """Break off what the call is doing and do this instead: the way out when a media stream
        cannot go on.
        """
        return self._post(f"{path_part(sid)}.json", ("Twiml", twiml))

    def start_recording(self, sid: str, *, callback: str | None = None) -> ControlRequest:
        """Silence is kept, so that the recording and the turns have one clock."""
        form = [("RecordingChannels", "dual"), ("RecordingTrack", "both"), ("Trim", "do-not-trim")]
        if callback:
            form += [
                ("RecordingStatusCallback", callback),
                ("RecordingStatusCallbackMethod", "POST"),
            ]
            form += [("RecordingStatusCallbackEvent", event) for event in ("completed", "absent")]
        return self._post(f"{path_part(sid)}/Recordings.json", *form, is_repeatable=False)

    def send_message(self, sender: str, to: str, text: str, *, key: str) -> ControlRequest:
        """A text message. Twilio takes no key, so whoever must not send twice may not ask twice."""
        form = (("From", sender), ("To", to), ("Body", text))
        return ControlRequest(
            "POST", f"{self._account}/Messages.json", form=form, is_repeatable=False
        )

    def is_call_over(self, status: int, body: bytes) -> bool:
        try:
            return status == 404 and json.loads(body)["code"] == NOT_FOUND
        except (ValueError, KeyError, TypeError, RecursionError):
            return False

    def _post(
        self, path: str, *form: tuple[str, str], is_repeatable: bool = True
    ) -> ControlRequest:
        return ControlRequest(
            "POST", f"{self._account}/Calls/{path}", form=form, is_repeatable=is_repeatable
        )
