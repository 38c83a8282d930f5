"""The core of the emulated carriers: webhooks that come late or twice, recordings, messages."""

import asyncio
import io
import math
import re
import wave
from array import array
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar, Self

import httpx2
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from aftercall.clock import Clock, SystemClock
from aftercall.lab.rest import Refusal
from aftercall.model.json_fields import Json

WEBHOOK_TIMEOUT_S = 15.0
RATE_HZ = 8000
WHOLE = ((0.0, math.inf),)
EXPIRED = (
    "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
)
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")

Spans = Sequence[tuple[float, float]]
"""When a side speaks: start and end in seconds."""

Send = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class DeliveryFaults:
    """Webhook kinds have the carrier's names (`completed`, `call.hangup`); `*` is every kind."""

    duplicated_kinds: frozenset[str] = frozenset()
    delay_s_by_kind: Mapping[str, float] = field(default_factory=dict)
    """How long a kind is held back. Other webhooks overtake it."""

    def delivery_count(self, kind: str) -> int:
        return 2 if {kind, "*"} & self.duplicated_kinds else 1

    def delay_s(self, kind: str) -> float:
        return self.delay_s_by_kind.get(kind, self.delay_s_by_kind.get("*", 0.0))


NO_DELIVERY_FAULTS = DeliveryFaults()


class WebhookSender:
    """Posts webhooks; late or twice, as the faults say."""

    def __init__(self, clock: Clock, delivery_faults: DeliveryFaults) -> None:
        self.delivery_faults = delivery_faults
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    async def deliver(self, kind: str, send: Send) -> "asyncio.Task[None]":
        """Returns after the delivery, or at once if this kind is delayed."""
        delay_s = self.delivery_faults.delay_s(kind)
        delivery = self.spawn(self._deliver(kind, send, delay_s))
        if not delay_s:
            await delivery
        return delivery

    def spawn(self, job: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def drain(self) -> None:
        """Waits for every task, those that tasks start included."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _deliver(self, kind: str, send: Send, delay_s: float) -> None:
        if delay_s:
            await self._clock.sleep(delay_s)
        await asyncio.gather(
            *(send() for _ in range(self.delivery_faults.delivery_count(kind)))
        )


@dataclass
class LabRecording:
    """An audio file that a carrier offers for download."""

    sid: str
    call: str
    audio: bytes
    made_s: float
    not_found_count: int = 0
    """How many requests get a 404 before the recording is there."""
    life_s: float | None = None
    """How long its address is valid; None is for ever."""
    cut_after_bytes: list[int] = field(default_factory=list)
    """After how many bytes each of the next answers breaks off."""
    requested_ranges: list[str] = field(default_factory=list)
    """The range of each request; empty for the whole file."""


class LabRecordings:
    """Short audio files that can be late, expired, or cut off while they are fetched."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.by_sid: dict[str, LabRecording] = {}
        self.url = "http://lab.invalid/{sid}"

    def find_url(self, sid: str) -> str | None:
        return self.url.format(sid=sid) if sid in self.by_sid else None

    def add_route(self, router: APIRouter, path: str) -> None:
        @router.get(path)
        async def get_recording(sid: str, request: Request) -> Response:
            return self.serve(sid, request)

    def add(self, sid: str, call: str, life_s: float | None = None) -> LabRecording:
        recording = LabRecording(
            sid, call, make_wav(1.0), self._clock.monotonic(), life_s=life_s
        )
        self.by_sid[sid] = recording
        return recording

    def refresh(self, recording: LabRecording) -> None:
        """Starts the life of the address again."""
        recording.made_s = self._clock.monotonic()

    def serve(self, sid: str, request: Request) -> Response:
        """The audio, or the range asked for; 404 while it is missing, 403 once it has expired."""
        recording = self.by_sid.get(sid)
        if recording is None:
            return Response(status_code=404)
        wanted = request.headers.get("range", "")
        recording.requested_ranges.append(wanted)
        if recording.not_found_count > 0:
            recording.not_found_count -= 1
            return Response(status_code=404)
        age_s = self._clock.monotonic() - recording.made_s
        if recording.life_s is not None and age_s > recording.life_s:
            return Response(EXPIRED, 403)
        return _serve_range(recording, wanted)


def _serve_range(recording: LabRecording, wanted: str) -> Response:
    total = len(recording.audio)
    headers = {"Accept-Ranges": "bytes"}
    status = 200
    start = 0
    end = total
    if found := _RANGE.fullmatch(wanted):
        start = int(found[1])
        end = min(total, int(found[2] or total - 1) + 1)
        if start >= total:
            return Response(
                status_code=416, headers={"Content-Range": f"bytes */{total}"}
            )
        status = 206
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{total}"
    body = recording.audio[start:end]
    if not recording.cut_after_bytes:
        return Response(body, status, headers, media_type="audio/x-wav")
    cut = recording.cut_after_bytes.pop(0)
    # more than follows: the connection breaks off
    headers["Content-Length"] = str(len(body))
    return StreamingResponse(
        _stream(body[:cut]), status, headers, media_type="audio/x-wav"
    )


async def _stream(body: bytes) -> AsyncIterator[bytes]:
    yield body


def make_wav(seconds: float, near: Spans = WHOLE, far: Spans = WHOLE) -> bytes:
    """Two channels of 16-bit audio: the near side hums at 220 Hz while it speaks, the far side
    at 330.
    """
    length = max(1, round(seconds * RATE_HZ))
    both = array("h", bytes(4 * length))
    both[0::2] = _hum(220, near, length)
    both[1::2] = _hum(330, far, length)
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(2)
        sound.setsampwidth(2)
        sound.setframerate(RATE_HZ)
        sound.writeframes(both.tobytes())
    return file.getvalue()


def _hum(hertz: int, spans: Spans, length: int) -> "array[int]":
    """A channel of silence with a tone wherever somebody spoke."""
    radians = 2 * math.pi * hertz / RATE_HZ
    second = array("h", (int(6000 * math.sin(radians * n)) for n in range(RATE_HZ)))
    tone = second * (length // RATE_HZ + 1)
    channel = array("h", bytes(2 * length))
    for began_s, ended_s in spans:
        start = max(0, round(began_s * RATE_HZ))
        end = min(length, round(min(ended_s, length / RATE_HZ) * RATE_HZ))
        channel[start:end] = tone[start:end]
    return channel


class EmulatedCarrier:
    """What the emulated carriers share."""

    audio_path: ClassVar[str] = "/recordings/{sid}"
    """Where a platform serves the recording of a call."""

    def __init__(
        self,
        address: str,
        delivery_faults: DeliveryFaults,
        clock: Clock | None,
        transport: httpx2.AsyncBaseTransport | None,
    ) -> None:
        """`address` is the lab's, where recordings can be fetched. With a `transport` (of an
        ASGI app, for instance) webhooks open no socket.
        """
        self.address = address
        self.clock = clock or SystemClock()
        self.webhook_sender = WebhookSender(self.clock, delivery_faults)
        self.recordings = LabRecordings(self.clock)
        self.messages: list[Json] = []
        self.faults: deque[str] = deque()
        self.http = httpx2.AsyncClient(
            timeout=WEBHOOK_TIMEOUT_S, trust_env=False, transport=transport
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.webhook_sender.close()
        await self.http.aclose()


LISTING_FAULTS = {"rate_limit": 429, "server_error": 500}


def refuse_by_fault(carrier: EmulatedCarrier) -> None:
    """Called by routes that list calls: spoils this request if the next fault says so."""
    if carrier.faults and carrier.faults[0] in LISTING_FAULTS:
        status = LISTING_FAULTS[carrier.faults.popleft()]
        pause = {"retry-after": "1"} if status == 429 else None
        raise Refusal(JSONResponse({"message": "as ordered"}, status, pause))
