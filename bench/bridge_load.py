"""The load for the bridge: callers on one side, an engine on the other, both of them talking
all the time.
"""

import asyncio
import json
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Coroutine

from aftercall.phone.carrier_frames import TwilioFrames
from raw_socket import BINARY, TEXT, RawSocket, dial, unmask

FRAME_S = 0.02
RATE = 8_000
SPEECH_S = 5.0
PAD = b"\x42" * 150
STAMP = 10


def stamp() -> bytes:
    """The time of sending, six bits a byte: bytes that stay what they are however often μ-law
    becomes linear and back.
    """
    now = time.monotonic_ns()
    return bytes((now >> shift) & 0x3F for shift in range(54, -1, -6))


def read_stamp(data: bytes) -> int:
    value = 0
    for byte in data[:STAMP]:
        value = value << 6 | byte
    return value


class Load:
    """Callers on one side, an engine on the other; each frame carries the time it was sent."""

    def __init__(self) -> None:
        self.to_engine: list[int] = []
        self.to_caller: list[int] = []
        self.audio_s = 0.0
        self.is_measuring = False
        self.lateness: list[float] = []
        self._callers: list[RawSocket] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve_engine(self) -> str:
        loop = asyncio.get_running_loop()
        welcome = b'{"type":"Welcome","request_id":"bench"}'
        self._server = await loop.create_server(
            lambda: RawSocket(self._engine_takes, greeting=welcome), "127.0.0.1", 0
        )
        port = self._server.sockets[0].getsockname()[1]
        return f"ws://127.0.0.1:{port}/v1/agent/converse"

    def _engine_takes(
        self, engine: RawSocket, opcode: int, mask: bytes, payload: bytes
    ) -> None:
        if opcode == BINARY:
            if self.is_measuring:
                self.audio_s += len(payload) / RATE
                self.to_engine.append(
                    time.monotonic_ns() - read_stamp(unmask(mask, payload[:STAMP]))
                )
            return
        if b'"Settings"' in unmask(mask, payload) and engine.state is None:
            engine.state = True
            engine.send(TEXT, b'{"type":"SettingsApplied"}')
            self._keep(self._speak(engine))

    async def _speak(self, engine: RawSocket) -> None:
        """Speeches of five seconds, one after the other."""
        frames = 0
        async for _ in self._every_frame():
            if frames % int(SPEECH_S / FRAME_S) == 0:
                engine.send(
                    TEXT,
                    b'{"type":"ConversationText","role":"assistant","content":"'
                    + b"so it goes on " * 5
                    + b'"}',
                )
            engine.send(BINARY, stamp() + PAD)
            frames += 1
            if frames % int(SPEECH_S / FRAME_S) == 0:
                engine.send(TEXT, b'{"type":"AgentAudioDone"}')

    async def call(
        self, url: str, sid: str, parameters: dict[str, str], headers: dict[str, str]
    ) -> asyncio.Future[None]:
        """A caller on the line; the future is done when they hear the first audio."""
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        side = TwilioFrames(sid)
        offset = len(
            f'{{"event":"media","streamSid":"{side.stream_sid}","media":{{"payload":"'
        )

        def take(caller: RawSocket, opcode: int, mask: bytes, payload: bytes) -> None:
            if payload.startswith((b'{"event":"mark"', b'{"event": "mark"')):
                caller.send(
                    TEXT, side.mark(json.loads(payload)["mark"]["name"]).encode()
                )
            elif not heard.done():
                heard.set_result(None)
            elif self.is_measuring:
                start = (
                    payload.index(b"payload") + 11 if payload[9:10] == b" " else offset
                )
                self.audio_s += (payload.rindex(b'"') - start) * 0.75 / RATE
                self.to_caller.append(
                    time.monotonic_ns()
                    - read_stamp(b64decode(payload[start : start + 16]))
                )

        caller = await dial(url, take, headers)
        caller.send(TEXT, side.connected().encode())
        caller.send(TEXT, side.start(parameters).encode())
        self._callers.append(caller)
        self._keep(self._talk(caller, side))
        return heard

    async def _talk(self, caller: RawSocket, side: TwilioFrames) -> None:
        head = f'{{"event":"media","streamSid":"{side.stream_sid}","sequenceNumber":"'
        number = 0
        async for _ in self._every_frame():
            number += 1
            encoded = b64encode(stamp() + PAD).decode()
            media = (
                f'{{"track":"inbound","chunk":"{number}","timestamp":"{20 * number}",'
                f'"payload":"{encoded}"}}'
            )
            caller.send(TEXT, f'{head}{number + 1}","media":{media}}}'.encode())

    async def _every_frame(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            yield
            due += FRAME_S
            await asyncio.sleep(max(0.0, due - loop.time()))
            if self.is_measuring:
                self.lateness.append(loop.time() - due)

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)

    def hang_up(self) -> None:
        """Everybody who is on the line."""
        for caller in self._callers:
            caller.close()
        self._callers.clear()

    async def stop(self) -> None:
        self.hang_up()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._server.close()
