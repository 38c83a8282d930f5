"""The tester's own error by phone: a carrier in a thread of its own, with a known agent on it.

It signs and speaks as Twilio does, 50 frames a second each way, and holds its frames back for a
while in every call, as a stalled network does.
"""

import asyncio
import hmac
import json
import random
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha1
from typing import cast

import uvicorn
from pydantic import SecretStr
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from aftercall.clock import SystemClock
from aftercall.phone.carrier_frames import TwilioFrames
from aftercall.phone.signature import TwilioSignature
from aftercall.speech.sound import FRAME_BYTES, FRAME_S, SILENCE, LoudnessMeter
from aftercall.tester.call import ScriptedCall
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.dialer import TwilioDialer
from aftercall.tester.drivers.phone import DialerWebhooks, Receive, Scope, Send
from aftercall.tester.drivers.remote import open_socket_thread
from aftercall.tester.drivers.twilio_media import MediaCalls, MediaConnection
from aftercall.tester.finding import CallView
from aftercall.tester.findings.timing import latencies
from aftercall.tester.line import TickPace
from aftercall.tester.scenario_file import parse_scenarios
from aftercall.tester.target import CallSetup
from aftercall.tester.voice import ToneVoice

PUBLIC = "https://tester.example.org"
TOKEN = "12345"
STALL_FRAMES = range(250, 290)  # 0.8 s in the second turn
PAUSE_FRAMES = 15
CALL = """
name: phone
turns:
  - {say: Go on please.}
  - {say: Go on please.}
  - {say: Go on please.}
  - {say: Go on please.}
  - {hang_up: true}
"""


class KnownLine:
    """Plays the caller's frames and answers so many frames after the last loud one."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._meter = LoudnessMeter()
        self._quiet = 0
        self._wait: int | None = None
        self._speech: deque[bytes] = deque(_cut("Hello there."))
        self.truths_s: list[float] = []
        self.played: deque[bytes] = deque()

    def next_frame(self) -> bytes:
        frame = self.played.popleft() if self.played else SILENCE
        if self._meter.is_loud(frame):
            self._quiet, self._wait = 0, self._draw.randrange(PAUSE_FRAMES, 40)
        else:
            self._quiet += 1
        if self._wait is not None and self._quiet > self._wait:
            self._speech.extend(_cut("Certainly."))
            self.truths_s.append((self._quiet - 1) * FRAME_S)
            self._wait = None
        return self._speech.popleft() if self._speech else SILENCE


def _cut(text: str) -> Iterator[bytes]:
    sound = ToneVoice(350).speak(text).sound
    return (sound[at : at + FRAME_BYTES] for at in range(0, len(sound), FRAME_BYTES))


class KnownCarrier:
    """Stands for the dialer: each call it is asked for is a stream to the tester's socket."""

    def __init__(self, port: int, loop: asyncio.AbstractEventLoop) -> None:
        self._port = port
        self._loop = loop
        self.lines: dict[str, KnownLine] = {}

    async def dial(
        self, to: str, address: str, call_id: str, *, ring_s: float, limit_s: float
    ) -> str:
        self.lines[call_id] = KnownLine(len(self.lines))
        asyncio.run_coroutine_threadsafe(self._talk(call_id), self._loop)
        return "CA1"

    async def _talk(self, call_id: str) -> None:
        side, line = TwilioFrames("CA1"), self.lines[call_id]
        text = PUBLIC.replace("https", "wss") + "/tester/media"
        signed = b64encode(hmac.digest(TOKEN.encode(), text.encode(), sha1)).decode()
        url = f"ws://127.0.0.1:{self._port}/tester/media"
        headers = {"X-Twilio-Signature": signed}
        async with connect(url, additional_headers=headers, proxy=None) as socket:
            await socket.send(side.connected())
            await socket.send(side.start({"call": call_id}))
            reader = asyncio.create_task(_read(socket, side, line))
            with suppress(ConnectionClosed):
                await self._beat(socket, side, line)
            reader.cancel()

    async def _beat(
        self, socket: ClientConnection, side: TwilioFrames, line: KnownLine
    ) -> None:
        due_s, held = self._loop.time(), list[str]()
        for number in range(10_000):
            held.append(side.media(line.next_frame()))
            if number not in STALL_FRAMES:
                for frame in held:
                    await socket.send(frame)
                held.clear()
            due_s += FRAME_S
            await asyncio.sleep(max(0.0, due_s - self._loop.time()))


async def _read(socket: ClientConnection, side: TwilioFrames, line: KnownLine) -> None:
    with suppress(ConnectionClosed):
        async for raw in socket:
            message = json.loads(raw)
            if message["event"] == "media":
                line.played.append(b64decode(message["media"]["payload"]))
            elif message["event"] == "mark":
                await socket.send(side.mark(message["mark"]["name"]))


async def measure_phone(clock: SystemClock, parallel: int) -> list[float]:
    """Errors in milliseconds of all answers; every call has a stall of 0.8 s."""
    (scenario,) = parse_scenarios(CALL)
    async with open_socket_thread() as loop:
        config = uvicorn.Config(
            _late_bound, port=0, log_level="warning", lifespan="off"
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        carrier = KnownCarrier(server.servers[0].sockets[0].getsockname()[1], loop)
        dialer = cast(TwilioDialer, carrier)  # the one request that a call makes
        calls = MediaCalls(dialer, PUBLIC, "+15550101", clock)
        _bound.append(DialerWebhooks(calls, TwilioSignature(SecretStr(TOKEN), PUBLIC)))
        setup = CallSetup(clock, is_live=True)

        async def hold() -> list[float]:
            made: list[MediaConnection] = []

            def connect_phone(pace: TickPace) -> MediaConnection:
                made.append(MediaConnection(calls, pace, limit_s=120))
                return made[0]

            caller = Caller(scenario, scenario.calls[0], 1)
            call = ScriptedCall(caller, scenario)
            record = await setup.hold_call(connect_phone, call)
            truths = carrier.lines[made[0].call.id].truths_s
            found = latencies(CallView(record, scenario))
            return [
                1000 * abs(one - other)
                for one, other in zip(found, truths, strict=False)
            ]

        errors = await asyncio.gather(*(hold() for _ in range(parallel)))
        server.should_exit = True
        await serving
    return [error for call in errors for error in call]


_bound: list[DialerWebhooks] = []


async def _late_bound(scope: Scope, receive: Receive, send: Send) -> None:
    """The app needs the port, and the port is known once the app is served."""
    await _bound[-1](scope, receive, send)
