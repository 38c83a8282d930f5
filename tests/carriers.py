"""The carriers' side of a media socket, for tests: the frames each would send, and a reader for
the ones it gets.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any, Protocol

from aftercall.phone.telnyx import TelnyxWire, pack_state
from aftercall.phone.twilio import TwilioWire
from aftercall.phone.wire import Wire

CALL = {"twilio": "CA" + "0" * 31 + "1", "telnyx": "v3:ZkP3-q_1"}
STREAM = {
    "twilio": "MZ" + "0" * 31 + "2",
    "telnyx": "32DE0DEA-53CB-4B21-89A4-9E1819C043BC",
}
AUDIO = bytes(range(160))


class Carrier(Protocol):
    name: str

    def wire(self) -> Wire: ...
    def connected(self) -> str: ...
    def start(
        self,
        *,
        encoding: str | None = ...,
        rate_hz: Any = ...,
        channels: Any = ...,
        parameters: Mapping[str, str] = ...,
    ) -> str: ...
    def media(
        self,
        chunk: int,
        payload: bytes = ...,
        *,
        track: str = ...,
        stream: str | None = ...,
    ) -> str: ...
    def digit(self, key: str, sequence: int, *, second: int | None = ...) -> str: ...
    def mark(self, name: str, sequence: int = ...) -> str: ...
    def stop(self, sequence: int = ...) -> str: ...


class TwilioFrames:
    name = "twilio"
    stream = STREAM["twilio"]

    def wire(self) -> TwilioWire:
        return TwilioWire()

    def connected(self) -> str:
        return json.dumps(
            {"event": "connected", "protocol": "Call", "version": "1.0.0"}
        )

    def start(
        self,
        *,
        encoding: str | None = None,
        rate_hz: Any = 8000,
        channels: Any = 1,
        parameters: Mapping[str, str] | None = None,
    ) -> str:
        start = {
            "accountSid": "AC" + "0" * 32,
            "streamSid": self.stream,
            "callSid": CALL["twilio"],
            "tracks": ["inbound"],
            "mediaFormat": {
                "encoding": encoding or "audio/x-mulaw",
                "sampleRate": rate_hz,
                "channels": channels,
            },
            "customParameters": dict(parameters or {}),
        }
        return self._frame("start", 1, start=start)

    def media(
        self,
        chunk: int,
        payload: bytes = AUDIO,
        *,
        track: str = "inbound",
        stream: str | None = None,
    ) -> str:
        media = {
            "track": track,
            "chunk": str(chunk),
            "timestamp": str(20 * chunk),
            "payload": base64.b64encode(payload).decode(),
        }
        return self._frame("media", chunk + 1, stream, media=media)

    def digit(self, key: str, sequence: int, *, second: int | None = None) -> str:
        return self._frame(
            "dtmf", sequence, dtmf={"track": "inbound_track", "digit": key}
        )

    def mark(self, name: str, sequence: int = 90) -> str:
        return self._frame("mark", sequence, mark={"name": name})

    def stop(self, sequence: int = 99) -> str:
        return self._frame(
            "stop",
            sequence,
            stop={"accountSid": "AC" + "0" * 32, "callSid": CALL["twilio"]},
        )

    def _frame(
        self, event: str, sequence: int, stream: str | None = None, **fields: Any
    ) -> str:
        return json.dumps(
            {
                "event": event,
                "sequenceNumber": str(sequence),
                "streamSid": stream or self.stream,
                **fields,
            }
        )


class TelnyxFrames:
    name = "telnyx"
    stream = STREAM["telnyx"]

    def wire(self) -> TelnyxWire:
        return TelnyxWire()

    def connected(self) -> str:
        return json.dumps({"event": "connected", "version": "1.0.0"})

    def start(
        self,
        *,
        encoding: str | None = None,
        rate_hz: Any = 8000,
        channels: Any = 1,
        parameters: Mapping[str, str] | None = None,
    ) -> str:
        start = {
            "user_id": "3E6F995F-85F7-4705-9741-53B116D28237",
            "call_control_id": CALL["telnyx"],
            "call_session_id": "ff55a038-6f5d-11ef-9692-02420aeffb1f",
            "from": "+15550100",
            "to": "+15550101",
            "tags": [],
            "client_state": pack_state(parameters or {}),
            "media_format": {
                "encoding": encoding or "PCMU",
                "sample_rate": rate_hz,
                "channels": channels,
            },
        }
        return self._frame("start", 1, start=start)

    def media(
        self,
        chunk: int,
        payload: bytes = AUDIO,
        *,
        track: str = "inbound",
        stream: str | None = None,
    ) -> str:
        media = {
            "track": track,
            "chunk": str(chunk),
            "timestamp": str(20 * chunk),
            "payload": base64.b64encode(payload).decode(),
        }
        return self._frame("media", chunk + 2, stream, media=media)

    def digit(self, key: str, sequence: int, *, second: int | None = None) -> str:
        at = f"2026-06-05T08:54:{sequence if second is None else second:02}.698408Z"
        return self._frame("dtmf", sequence, dtmf={"digit": key}, occurred_at=at)

    def mark(self, name: str, sequence: int = 90) -> str:
        return self._frame("mark", sequence, mark={"name": name})

    def stop(self, sequence: int = 99) -> str:
        return self._frame(
            "stop",
            sequence,
            stop={"user_id": "3E6F995F", "call_control_id": CALL["telnyx"]},
        )

    def _frame(
        self, event: str, sequence: int, stream: str | None = None, **fields: Any
    ) -> str:
        return json.dumps(
            {
                "event": event,
                "sequence_number": str(sequence),
                "stream_id": stream or self.stream,
                **fields,
            }
        )


CARRIERS: tuple[Carrier, ...] = (TwilioFrames(), TelnyxFrames())


def started(carrier: Carrier) -> Wire:
    """A wire on which the carrier has connected and started its stream."""
    wire = carrier.wire()
    wire.receive(carrier.connected())
    wire.receive(carrier.start())
    return wire


def sent(frame: str | bytes) -> Any:
    return json.loads(frame)
