"""Recordings of emulated calls: short audio files that can be late, expired, or cut off in the middle of being fetched."""

import io
import math
import re
import struct
import wave
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from aftercall.clock import Clock

RATE_HZ = 8000
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass
class LabRecording:
    sid: str
    call: str
    audio: bytes
    made_s: float
    not_yet: int = 0
    """How often it is asked for in vain (404) before it is there."""
    life_s: float | None = None
    """How long its address is good; None for ever."""
    cuts: list[int] = field(default_factory=list)
    """After how many bytes each of the next answers breaks off."""
    asked: list[str] = field(default_factory=list)
    """The range that each request wanted; empty for all of it."""


class LabRecordings:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.kept: dict[str, LabRecording] = {}

    def keep(self, sid: str, call: str, seconds: float = 1.0, **fields: float | None) -> LabRecording:
        recording = LabRecording(sid, call, make_wav(seconds), self._clock.monotonic())
        recording.life_s = fields.get("life_s")
        self.kept[sid] = recording
        return recording

    def refresh(self, recording: LabRecording) -> None:
        recording.made_s = self._clock.monotonic()

    def serve(self, sid: str, request: Request) -> Response:
        """The audio or the part of it that is asked for; 404 while it is not there, 403 once its address has run out."""
        recording = self.kept.get(sid)
        if recording is None:
            return Response(status_code=404)
        wanted = request.headers.get("range", "")
        recording.asked.append(wanted)
        if recording.not_yet > 0:
            recording.not_yet -= 1
            return Response(status_code=404)
        if recording.life_s is not None and self._clock.monotonic() - recording.made_s > recording.life_s:
            return Response("<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>", 403)
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
    cut = recording.cuts.pop(0) if recording.cuts else None
    if cut is None:
        return Response(body, status, headers, media_type="audio/x-wav")
    return StreamingResponse(_break_off(body[:cut]), status, headers | {"Content-Length": str(len(body))}, media_type="audio/x-wav")


async def _break_off(body: bytes) -> AsyncIterator[bytes]:
    """Less than was promised; the server then closes the connection."""
    yield body


def make_wav(seconds: float) -> bytes:
    """Two channels of 16-bit sound: the caller hums at 220 Hz, the agent at 330."""
    frames = b"".join(
        struct.pack("<hh", *(int(6000 * math.sin(2 * math.pi * hertz * n / RATE_HZ)) for hertz in (220, 330)))
        for n in range(int(seconds * RATE_HZ))
    )
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(2)
        sound.setsampwidth(2)
        sound.setframerate(RATE_HZ)
        sound.writeframes(frames)
    return file.getvalue()
