"""A phone on a media stream: connects to the agent's socket as a carrier does, talks and listens in frames of 20 ms.

Marks come back when what was sent before them has been played, a clear empties the buffer and brings all of them back at
once. What the caller heard is what was played, not what was sent.
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
from aftercall.lab.speech import FRAME, SILENCE, Ear, Ended, utter
from aftercall.speech.gauge import FLOOR
from aftercall.speech.sound import measure

FRAME_S = 0.02
PATIENCE_S = 20.0
HANG_OVER = 20 * SILENCE


class MediaPhone:
    def __init__(self, connection: ClientConnection, side: Side, *, speed: float = 1.0, clock: Clock | None = None) -> None:
        """`speed` 1 is real time; a higher one plays and talks that much faster than the clock."""
        self._connection = connection
        self._side = side
        self._frame_s = FRAME_S / speed
        self._clock = clock or SystemClock()
        self._ear = Ear()
        self._says: deque[bytes] = deque()
        self._buffer: deque[bytes | str] = deque()
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._other: MediaPhone | None = None
        self.heard: list[str] = []
        self.clears = 0
        self.played = 0
        """Bytes of sound, silence left out, that reached the caller's ear."""
        self.tape = bytearray()
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
        connection = await connect(url, additional_headers=headers, compression=None, proxy=None, ping_interval=None, close_timeout=1.0)
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
    def is_hearing(self) -> bool:
        """Whether the agent is in the middle of something; when it is over it is in `heard`."""
        return self._ear.is_hearing

    async def say(self, text: str) -> None:
        """Talk; returns when it has been said and a moment of silence after it."""
        self.begin_to_say(text)
        await self._until(lambda: not self._says)

    def begin_to_say(self, text: str) -> None:
        self.begin_to_sound(utter(text))

    async def sound(self, audio: bytes) -> None:
        """Any 8 kHz μ-law instead of the lab's own speech; returns when it is through."""
        self.begin_to_sound(audio)
        await self._until(lambda: not self._says)

    def begin_to_sound(self, audio: bytes, quiet_after: bytes = HANG_OVER) -> None:
        audio += quiet_after
        self._says.extend(audio[start : start + FRAME].ljust(FRAME, b"\xff") for start in range(0, len(audio), FRAME))

    def stop_saying(self) -> None:
        """Break off in the middle of the word."""
        self._says.clear()

    async def hear(self, words: str) -> str:
        """Wait for something that holds these words, and return it. Raises AssertionError when it never comes."""
        await self._until(lambda: any(words in text for text in self.heard))
        return next(text for text in self.heard if words in text)

    async def hear_audio(self, count: int) -> None:
        """Wait until so many bytes of sound, of any kind, have been played."""
        await self._until(lambda: self.played >= count)

    async def hear_out(self, since: int, quiet_s: float = 1.0) -> None:
        """Wait until something was heard after `since` bytes of the tape, and nothing more for so long since."""
        quiet = int(quiet_s / FRAME_S)
        await self._until(lambda: self._loud_at > since and self._quiet >= quiet)

    async def press(self, key: str) -> None:
        await self._connection.send(self._side.digit(key))

    async def send_raw(self, frame: str | bytes) -> None:
        await self._connection.send(frame)

    async def hang_up(self, *, says_stop: bool = True, closes: bool = True) -> None:
        """As carriers do: a stop frame, then the socket; or only one of the two."""
        if says_stop:
            with suppress(ConnectionClosed):
                await self._connection.send(self._side.stop())
        if closes:
            await self._connection.close()
        await self.wait_over()

    async def wait_over(self) -> None:
        """Until the agent's server has closed the stream."""
        async with asyncio.timeout(PATIENCE_S):
            await self._connection.wait_closed()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if rest := self._ear.finish():
            self.heard.append(rest)

    async def _receive(self) -> None:
        with suppress(ConnectionClosed):
            async for raw in self._connection:
                await self._obey(json.loads(raw))
        self.is_over = True
        self._changed.set()

    async def _obey(self, message: dict[str, Any]) -> None:
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
        self.clears += 1
        marks = [item for item in self._buffer if isinstance(item, str)]
        self._buffer.clear()
        for name in marks:
            await self._connection.send(self._side.mark(name))

    async def _run(self) -> None:
        """One frame each way, 50 times a second of this phone's time."""
        due_s = self._clock.monotonic()
        with suppress(ConnectionClosed):
            while True:
                await self._connection.send(self._side.media(self._says.popleft() if self._says else SILENCE))
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
                self.played += len(frame)
                self.tape += frame
                break
            await self._connection.send(self._side.mark(item))
        while self._buffer and isinstance(self._buffer[0], str):
            await self._connection.send(self._side.mark(str(self._buffer.popleft())))
        if self._other is not None and frame != SILENCE:
            self._other._says.append(frame.ljust(FRAME, b"\xff"))
        self._quiet += 1
        if frame is not SILENCE and measure(frame) > FLOOR:
            self._loud_at, self._quiet = len(self.tape), 0
        for sound in self._ear.hear(frame):
            if isinstance(sound, Ended):
                self.heard.append(sound.text)

    async def _until(self, happened: Any) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not happened():
                if self.is_over:
                    raise AssertionError("the line went dead before that happened")
                self._changed.clear()
                await self._changed.wait()
