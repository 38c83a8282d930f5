"""A phone on a media stream: connects to the agent's socket as a carrier does, and sends and
receives frames of 20 ms.

A mark comes back when the audio before it has been played. A clear empties the buffer and
returns all marks at once. The caller hears what was played, not what was sent.
"""

import asyncio
import json
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from aftercall.clock import Clock, SystemClock
from aftercall.lab.speech import ToneDetector, ToneEnded, utter
from aftercall.model.json_fields import Json
from aftercall.phone.carrier_frames import CarrierFrames
from aftercall.speech.sound import (
    FRAME_BYTES,
    FRAME_S,
    SILENCE,
    SILENCE_LEVEL,
    measure_loudness,
)

WAIT_TIMEOUT_S = 20.0
TRAILING_SILENCE = 20 * SILENCE


class MediaPhone:
    """The carrier's end of a media stream: sends a caller's sound, plays what comes back."""

    def __init__(
        self,
        connection: ClientConnection,
        side: CarrierFrames,
        speed: float,
        clock: Clock | None,
    ) -> None:
        self._connection = connection
        self._side = side
        self._frame_s = FRAME_S / speed
        self._clock = clock or SystemClock()
        self._detector = ToneDetector()
        self._outgoing_frames: deque[bytes] = deque()
        self._buffer: deque[bytes | str] = deque()
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._other: MediaPhone | None = None
        self._loud_at = 0
        self._quiet_frames = 0
        self.heard: list[str] = []
        self.clear_count = 0
        self.played_audio = bytearray()
        """The agent's audio that the caller heard."""
        self.is_over = False

    @classmethod
    async def dial(
        cls,
        url: str,
        side: CarrierFrames,
        *,
        parameters: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        speed: float = 1.0,
        clock: Clock | None = None,
    ) -> "MediaPhone":
        """Opens the stream; raises what `websockets` raises when the agent's server refuses it.

        `speed` 1 is real time; a higher speed plays and talks that much faster than the clock.
        """
        connection = await connect(
            url,
            additional_headers=headers,
            compression=None,
            proxy=None,
            ping_interval=None,
            close_timeout=1.0,
        )
        phone = cls(connection, side, speed, clock)
        with suppress(ConnectionClosed):
            await connection.send(side.connected())
            await connection.send(side.start(parameters))
        phone._tasks = [
            asyncio.create_task(phone._receive()),
            asyncio.create_task(phone._run()),
        ]
        return phone

    def connect_to(self, other: "MediaPhone | None") -> None:
        """Sends what is played here into the other stream. Connect both sides."""
        self._other = other

    @property
    def is_agent_speaking(self) -> bool:
        """True in the middle of an utterance; when it ends it is in `heard`."""
        return self._detector.is_speech_active

    @property
    def played_bytes(self) -> int:
        return len(self.played_audio)

    async def say(self, text: str) -> None:
        """Returns after the words and a short silence."""
        await self.send_audio(utter(text))

    async def send_audio(self, audio: bytes) -> None:
        """Sends any 8 kHz μ-law audio; returns when all of it is sent."""
        self.queue_audio(audio)
        await self._wait_until(lambda: not self._outgoing_frames)

    def queue_text(self, text: str) -> None:
        self.queue_audio(utter(text))

    def queue_audio(self, audio: bytes, quiet_after: bytes = TRAILING_SILENCE) -> None:
        frames = _cut_frames(audio + quiet_after)
        self._outgoing_frames.extend(
            frame.ljust(FRAME_BYTES, b"\xff") for frame in frames
        )

    def clear_outgoing(self) -> None:
        """Breaks off in the middle of a word."""
        self._outgoing_frames.clear()

    async def wait_for_words(self, words: str) -> str:
        """Waits for an utterance with these words and returns it.

        Raises AssertionError when the call ends before it comes.
        """
        await self._wait_until(lambda: any(words in text for text in self.heard))
        return next(text for text in self.heard if words in text)

    async def wait_for_audio(self, count: int) -> None:
        """Waits until this many bytes of audio have been played."""
        await self._wait_until(lambda: self.played_bytes >= count)

    async def wait_for_silence(self, since: int, quiet_s: float = 1.0) -> None:
        """Waits for audio past the first `since` bytes, and then for this much silence."""
        quiet_frames = int(quiet_s / FRAME_S)
        await self._wait_until(
            lambda: self._loud_at > since and self._quiet_frames >= quiet_frames
        )

    async def press(self, key: str) -> None:
        await self._connection.send(self._side.digit(key))

    async def send_raw(self, frame: str | bytes) -> None:
        await self._connection.send(frame)

    async def hang_up(
        self, *, sends_stop: bool = True, closes_socket: bool = True
    ) -> None:
        """Carriers send a stop frame and close the socket; tests may leave out either."""
        if sends_stop:
            with suppress(ConnectionClosed):
                await self._connection.send(self._side.stop())
        if closes_socket:
            await self._connection.close()
        await self.wait_closed()

    async def wait_closed(self) -> None:
        """Waits until the agent's server has closed the stream."""
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            await self._connection.wait_closed()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if rest := self._detector.finish():
            self.heard.append(rest)

    async def _receive(self) -> None:
        with suppress(ConnectionClosed):
            async for raw in self._connection:
                await self._apply_message(json.loads(raw))
        self.is_over = True
        self._changed.set()

    async def _apply_message(self, message: Json) -> None:
        match message["event"]:
            case "media":
                audio = b64decode(message["media"]["payload"], validate=True)
                self._buffer.extend(_cut_frames(audio))
            case "mark":
                self._buffer.append(str(message["mark"]["name"]))
            case "clear":
                await self._clear()

    async def _clear(self) -> None:
        self.clear_count += 1
        marks = [item for item in self._buffer if isinstance(item, str)]
        self._buffer.clear()
        for name in marks:
            await self._connection.send(self._side.mark(name))

    async def _run(self) -> None:
        """Sends and plays one frame, 50 times a second of this phone's time."""
        due_s = self._clock.monotonic()
        with suppress(ConnectionClosed):
            while True:
                frame = (
                    self._outgoing_frames.popleft()
                    if self._outgoing_frames
                    else SILENCE
                )
                await self._connection.send(self._side.media(frame))
                await self._play()
                self._changed.set()
                due_s += self._frame_s
                await self._clock.sleep(max(0.0, due_s - self._clock.monotonic()))

    async def _play(self) -> None:
        frame = SILENCE
        while self._buffer:
            item = self._buffer.popleft()
            if isinstance(item, bytes):
                frame = item
                self.played_audio += frame
                break
            await self._connection.send(self._side.mark(item))
        while self._buffer and isinstance(self._buffer[0], str):
            await self._connection.send(self._side.mark(str(self._buffer.popleft())))
        if self._other is not None and frame != SILENCE:
            self._other._outgoing_frames.append(frame.ljust(FRAME_BYTES, b"\xff"))
        self._quiet_frames += 1
        if frame is not SILENCE and measure_loudness(frame) > SILENCE_LEVEL:
            self._loud_at = len(self.played_audio)
            self._quiet_frames = 0
        for sound in self._detector.detect(frame):
            if isinstance(sound, ToneEnded):
                self.heard.append(sound.text)

    async def _wait_until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while not happened():
                if self.is_over:
                    raise AssertionError("the line went dead before that happened")
                self._changed.clear()
                await self._changed.wait()


def _cut_frames(audio: bytes) -> list[bytes]:
    return [
        audio[start : start + FRAME_BYTES]
        for start in range(0, len(audio), FRAME_BYTES)
    ]
