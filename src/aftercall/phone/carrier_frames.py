"""What a carrier sends on a media stream, as it documents it: for the lab and for the tester.

The other direction, what we read of it, is `stream.py`.
"""

import json
import secrets
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


class CarrierFrames(ABC):
    """A carrier's side of one stream: makes its frames, as the carrier documents them."""

    sequence_field: str
    stream_field: str

    def __init__(self, call_sid: str, stream_sid: str) -> None:
        self.call_sid = call_sid
        self.stream_sid = stream_sid
        self._sequence = 0
        self._chunk = 0

    def media(self, payload: bytes) -> str:
        self._chunk += 1
        media = {
            "track": "inbound",
            "chunk": str(self._chunk),
            "timestamp": str(20 * self._chunk),
            "payload": b64encode(payload).decode("ascii"),
        }
        return self._frame("media", media=media)

    def mark(self, name: str) -> str:
        return self._frame("mark", mark={"name": name})

    @abstractmethod
    def connected(self) -> str: ...

    @abstractmethod
    def start(self, parameters: Mapping[str, str]) -> str: ...

    @abstractmethod
    def digit(self, key: str) -> str: ...

    @abstractmethod
    def stop(self) -> str: ...

    def _frame(self, event: str, **fields: Any) -> str:
        self._sequence += 1
        head = {"event": event, self.sequence_field: str(self._sequence)}
        return json.dumps(head | {self.stream_field: self.stream_sid} | fields)


class TwilioFrames(CarrierFrames):
    """Frames as Twilio documents them."""

    sequence_field = "sequenceNumber"
    stream_field = "streamSid"

    def __init__(self, call_sid: str, account_sid: str = "AC" + "0" * 32) -> None:
        super().__init__(call_sid, "MZ" + secrets.token_hex(16))
        self._account = account_sid

    def connected(self) -> str:
        return json.dumps(
            {"event": "connected", "protocol": "Call", "version": "1.0.0"}
        )

    def start(self, parameters: Mapping[str, str]) -> str:
        start = {
            "accountSid": self._account,
            "streamSid": self.stream_sid,
            "callSid": self.call_sid,
            "tracks": ["inbound"],
            "mediaFormat": {
                "encoding": "audio/x-mulaw",
                "sampleRate": 8000,
                "channels": 1,
            },
            "customParameters": dict(parameters),
        }
        return self._frame("start", start=start)

    def digit(self, key: str) -> str:
        return self._frame("dtmf", dtmf={"track": "inbound_track", "digit": key})

    def stop(self) -> str:
        return self._frame(
            "stop", stop={"accountSid": self._account, "callSid": self.call_sid}
        )


class TelnyxFrames(CarrierFrames):
    """Frames as Telnyx documents them."""

    sequence_field = "sequence_number"
    stream_field = "stream_id"

    def __init__(
        self,
        call_sid: str,
        *,
        caller: str = "+15550100",
        callee: str = "+15550101",
        client_state: str | None = None,
    ) -> None:
        """Without a `client_state` the stream's parameters take its place."""
        super().__init__(call_sid, secrets.token_hex(16))
        self._caller = caller
        self._callee = callee
        self._client_state = client_state

    def connected(self) -> str:
        return json.dumps({"event": "connected", "version": "1.0.0"})

    def start(self, parameters: Mapping[str, str]) -> str:
        encoded = b64encode(json.dumps(dict(parameters)).encode()).decode("ascii")
        start = {
            "user_id": "lab",
            "call_control_id": self.call_sid,
            "from": self._caller,
            "to": self._callee,
            "tags": [],
            "client_state": self._client_state or encoded,
            "media_format": {"encoding": "PCMU", "sample_rate": 8000, "channels": 1},
        }
        return self._frame("start", start=start)

    def digit(self, key: str) -> str:
        at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        return self._frame("dtmf", dtmf={"digit": key}, occurred_at=at)

    def stop(self) -> str:
        return self._frame(
            "stop", stop={"user_id": "lab", "call_control_id": self.call_sid}
        )
