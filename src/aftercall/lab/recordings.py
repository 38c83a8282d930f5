"""Recordings of emulated calls: short audio files that can be late, expired, or cut off in the
middle of being fetched.
"""

import io
import math
import re
import wave
from array import array
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from aftercall.clock import Clock

RATE_HZ = 8000
WHOLE = ((0.0, math.inf),)
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


Spans = Sequence[tuple[float, float]]
"""When somebody speaks, in seconds from the beginning."""


@dataclass
class LabRecording:
    sid: str
    call: str
    audio: bytes
    made_s: float
    not_found_count: int = 0
    """How often it is asked for in vain (404) before it is there."""
    life_s: float | None = None
    """How long its address is good; None for ever."""
    cut_after_bytes: list[int] = field(default_factory=list)
    """After how many bytes each of the next answers breaks off."""
    requested_ranges: list[str] = field(default_factory=list)
    """The range that each request wanted; empty for all of it."""


class LabRecordings:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.by_sid: dict[str, LabRecording] = {}

    def add(
        self, sid: str, call: str, seconds: float = 1.0, **fields: float | None
    ) -> LabRecording:
        recording = LabRecording(sid, call, make_wav(seconds), self._clock.monotonic())
        recording.life_s = fields.get("life_s")
        self.by_sid[sid] = recording
        return recording

    def refresh(self, recording: LabRecording) -> None:
        recording.made_s = self._clock.monotonic()

    def serve(self, sid: str, request: Request) -> Response:
        """The audio or the part of it that is asked for; 404 while it is not there, 403 once
        its address has run out.
        """
        recording = self.by_sid.get(sid)
        if recording is None:
            return Response(status_code=404)
        wanted = request.headers.get("range", "")
        recording.requested_ranges.append(wanted)
        if recording.not_found_count > 0:
            recording.not_found_count -= 1
            return Response(status_code=404)
        if (
            recording.life_s is not None
            and self._clock.monotonic() - recording.made_s > recording.life_s
        ):
            return Response(
                "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>",
                403,
            )
        return _answer(recording, wanted)


def _answer(recording: LabRecording, wanted: str) -> Response:
    total = len(recording.audio)
    headers = {"Accept-Ranges": "bytes"}
    status, start, end = 200, 0, total
    if found := _RANGE.fullmatch(wanted):
        start, end = int(found[1]), min(total, int(found[2] or total - 1) + 1)
        if start >= total:
            return Response(status_code=416, headers={"Content-Range": f"bytes */{total}"})
        status = 206
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{total}"
    body = recording.audio[start:end]
    cut = recording.cut_after_bytes.pop(0) if recording.cut_after_bytes else None
    if cut is None:
        return Response(body, status, headers, media_type="audio/x-wav")
    return StreamingResponse(
        _break_off(body[:cut]),
        status,
        headers | {"Content-Length": str(len(body))},
        media_type="audio/x-wav",
    )


async def _break_off(body: bytes) -> AsyncIterator[bytes]:
    """Less than was promised; the server then closes the connection."""
    yield body


def make_wav(seconds: float, near: Spans = WHOLE, far: Spans = WHOLE) -> bytes:
    """Two channels of 16-bit sound: while they speak, the near side hums at 220 Hz and the far
    side at 330.
    """
    length = max(1, round(seconds * RATE_HZ))
    both = array("h", bytes(4 * length))
    both[0::2], both[1::2] = _hum(220, near, length), _hum(330, far, length)
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(2)
        sound.setsampwidth(2)
        sound.setframerate(RATE_HZ)
        sound.writeframes(both.tobytes())
    return file.getvalue()


def _hum(hertz: int, spans: Spans, length: int) -> "array[int]":
    second = array(
        "h", (int(6000 * math.sin(2 * math.pi * hertz * n / RATE_HZ)) for n in range(RATE_HZ))
    )
    tone = second * (length // RATE_HZ + 1)
    channel = array("h", bytes(2 * length))
    for began_s, ended_s in spans:
        start, end = (
            max(0, round(began_s * RATE_HZ)),
            min(length, round(min(ended_s, length / RATE_HZ) * RATE_HZ)),
        )
        channel[start:end] = tone[start:end]
    return channel
