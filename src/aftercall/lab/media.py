"""A phone on a media stream: connects to the agent's socket as a carrier does, talks and
listens in frames of 20 ms.

Marks come back when what was sent before them has been played, a clear empties the buffer and
brings all of them back at once. What the caller heard is what was played, not what was sent.
"""

import asyncio
import json
from base64 import b64decode
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from aftercall.clock import Clock, SystemClock
from aftercall.lab.carriers import Side
from aftercall.lab.speech import FRAME, SILENCE, ToneDetector, ToneEnded, utter
from aftercall.speech.sound import SILENCE_LEVEL, measure_loudness

FRAME_S = 0.02
WAIT_TIMEOUT_S = 20.0
TRAILING_SILENCE = 20 * SILENCE


class MediaPhone:
    def __init__(
        self,
        connection: ClientConnection,
        side: Side,
        *,
        speed: float = 1.0,
        clock: Clock | None = None,
    ) -> None:
        """`speed` 1 is real time; a higher one plays and talks that much faster than the clock."""
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
        self.heard: list[str] = []
        self.clear_count = 0
        self.played_bytes = 0
        """Bytes of sound, silence left out, that reached the caller's ear."""
        self.played_audio = bytearray()
        """That sound."""
        self._loud_at = 0
        self._quiet = 0
        self.is_over = False

    @classmethod
    async def dial(
        cls,
        url: str,
        side: Side,
        *,
        parameters: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        speed: float = 1.0,
        clock: Clock | None = None,
    ) -> "MediaPhone":
        """Open the stream; raises what `websockets` raises when the agent's server refuses it."""
        connection = await connect(
            url,
            additional_headers=headers,
            compression=None,
            proxy=None,
            ping_interval=None,
            close_timeout=1.0,
        )
        phone = cls(connection, side, speed=speed, clock=clock)
        with suppress(ConnectionClosed):
            await connection.send(side.connected())
            await connection.send(side.start(parameters))
        phone._tasks = [asyncio.create_task(phone._receive()), asyncio.create_task(phone._run())]
        return phone

    def connect_to(self, other: "MediaPhone | None") -> None:
        """What is played here is said there; both sides have to be connected."""
        self._other = other

    @property
    def is_agent_speaking(self) -> bool:
        """Whether the agent is in the middle of something; when it is over it is in `heard`."""
        return self._detector.is_speech_active

    async def say(self, text: str) -> None:
        """Talk; returns when it has been said and a moment of silence after it."""
        self.queue_text(text)
        await self._wait_until(lambda: not self._outgoing_frames)

    def queue_text(self, text: str) -> None:
        self.queue_audio(utter(text))

    async def send_audio(self, audio: bytes) -> None:
        """Any 8 kHz μ-law instead of the lab's own speech; returns when it is through."""
        self.queue_audio(audio)
        await self._wait_until(lambda: not self._outgoing_frames)

    def queue_audio(self, audio: bytes, quiet_after: bytes = TRAILING_SILENCE) -> None:
        audio += quiet_after
        self._outgoing_frames.extend(
            audio[start : start + FRAME].ljust(FRAME, b"\xff")
            for start in range(0, len(audio), FRAME)
        )

    def clear_outgoing(self) -> None:
        """Break off in the middle of the word."""
        self._outgoing_frames.clear()

    async def wait_for_words(self, words: str) -> str:
        """Wait for something that holds these words, and return it.

        Raises AssertionError when it never comes.
        """
        await self._wait_until(lambda: any(words in text for text in self.heard))
        return next(text for text in self.heard if words in text)

    async def wait_for_audio(self, count: int) -> None:
        """Wait until so many bytes of sound, of any kind, have been played."""
        await self._wait_until(lambda: self.played_bytes >= count)

    async def wait_for_silence(self, since: int, quiet_s: float = 1.0) -> None:
        """Wait until something was heard after `since` bytes of the tape, and nothing more for
        so long since.
        """
        quiet = int(quiet_s / FRAME_S)
        await self._wait_until(lambda: self._loud_at > since and self._quiet >= quiet)

    async def press(self, key: str) -> None:
        await self._connection.send(self._side.digit(key))

    async def send_raw(self, frame: str | bytes) -> None:
        await self._connection.send(frame)

    async def hang_up(self, *, sends_stop: bool = True, closes_socket: bool = True) -> None:
        """As carriers do: a stop frame, then the socket; or only one of the two."""
        if sends_stop:
            with suppress(ConnectionClosed):
                await self._connection.send(self._side.stop())
        if closes_socket:
            await self._connection.close()
        await self.wait_closed()

    async def wait_closed(self) -> None:
        """Until the agent's server has closed the stream."""
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

    async def _apply_message(self, message: dict[str, Any]) -> None:
        match message["event"]:
            case "media":
                self._queue(b64decode(message["media"]["payload"], validate=True))
            case "mark":
                self._buffer.append(str(message["mark"]["name"]))
            case "clear":
                await self._clear()

    def _queue(self, audio: bytes) -> None:
        self._buffer.extend(audio[start : start + FRAME] for start in range(0, len(audio), FRAME))

    async def _clear(self) -> None:
        self.clear_count += 1
        marks = [item for item in self._buffer if isinstance(item, str)]
        self._buffer.clear()
        for name in marks:
            await self._connection.send(self._side.mark(name))

    async def _run(self) -> None:
        """One frame each way, 50 times a second of this phone's time."""
        due_s = self._clock.monotonic()
        with suppress(ConnectionClosed):
            while True:
                await self._connection.send(
                    self._side.media(
                        self._outgoing_frames.popleft() if self._outgoing_frames else SILENCE
                    )
                )
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
                self.played_bytes += len(frame)
                self.played_audio += frame
                break
            await self._connection.send(self._side.mark(item))
        while self._buffer and isinstance(self._buffer[0], str):
            await self._connection.send(self._side.mark(str(self._buffer.popleft())))
        if self._other is not None and frame != SILENCE:
            self._other._outgoing_frames.append(frame.ljust(FRAME, b"\xff"))
        self._quiet += 1
        if frame is not SILENCE and measure_loudness(frame) > SILENCE_LEVEL:
            self._loud_at, self._quiet = len(self.played_audio), 0
        for sound in self._detector.detect(frame):
            if isinstance(sound, ToneEnded):
                self.heard.append(sound.text)

    async def _wait_until(self, happened: Any) -> None:
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while not happened():
                if self.is_over:
                    raise AssertionError("the line went dead before that happened")
                self._changed.clear()
                await self._changed.wait()
