"""An agent that is a Twilio Media Streams socket, called directly: the tester is the carrier.

In real time and without a carrier's bill. What the agent sends is played from the moment it
arrived, or after what it sent before; `clear` drops what was not played yet.
"""

import asyncio
import hmac
import json
import secrets
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections import deque
from contextlib import suppress
from hashlib import sha1

from pydantic import SecretStr
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from aftercall.errors import AgentBroke, LineFailed
from aftercall.phone.carrier_frames import TwilioFrames
from aftercall.speech.sound import FRAME_S
from aftercall.tester.drivers.remote import (
    OPEN_TIMEOUT_S,
    blame_close,
    is_orderly,
    run_in_loop,
)
from aftercall.tester.drivers.twilio_media import SoundTimeline
from aftercall.tester.line import (
    AgentTick,
    CallerTick,
    DialedCall,
    Kind,
    Outcome,
    TickPace,
)

MAX_MESSAGE_BYTES = 1_000_000
SCHEME = "twilio"


class StreamConnection:
    """One call; the socket is used in a thread of its own, so that arrivals have their time."""

    def __init__(
        self,
        url: str,
        pace: TickPace,
        loop: asyncio.AbstractEventLoop,
        auth_token: SecretStr | None = None,
    ) -> None:
        self._url = url
        self._pace = pace
        self._loop = loop
        self._auth_token = auth_token
        self._frames = TwilioFrames("CA" + secrets.token_hex(16))
        self._timeline = SoundTimeline()
        self._marks: deque[tuple[float, str]] = deque()
        self._arrived: deque[tuple[float, str | bytes]] = deque()
        self._outgoing: asyncio.Queue[str] = asyncio.Queue()
        self._socket: ClientConnection | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._closed: ConnectionClosed | None = None

    @property
    def kind(self) -> Kind:
        return "audio"

    async def connect(self, dial: DialedCall) -> Outcome:
        await run_in_loop(self._loop, self._open(dial.caller))
        return "answered"

    async def tick(self, at_s: float, near: CallerTick) -> AgentTick:
        self._send(self._frames.media(near.frame))
        for key in near.digits or "":
            self._send(self._frames.digit(key))
        while self._arrived:
            arrived_s, raw = self._arrived.popleft()
            self._apply(self._pace.time_since_start(arrived_s), raw)
        while self._marks and self._marks[0][0] <= at_s:
            self._send(self._frames.mark(self._marks.popleft()[1]))
        late_at_s, late = self._timeline.take(at_s + FRAME_S)
        if self._closed is not None and not late:
            if is_orderly(self._closed):
                return AgentTick(ended="agent")
            raise blame_close(self._url, self._closed)
        return AgentTick(b"", late=late, late_at_s=late_at_s)

    async def hang_up(self) -> None:
        self._send(self._frames.stop())
        await run_in_loop(self._loop, self._close())

    def _apply(self, at_s: float, raw: str | bytes) -> None:
        try:
            message = json.loads(raw)
            match message["event"]:
                case "media":
                    sound = b64decode(message["media"]["payload"], validate=True)
                    self._timeline.add(max(at_s, self._timeline.end_s), sound)
                case "mark":
                    due_s = max(at_s, self._timeline.end_s)
                    self._marks.append((due_s, str(message["mark"]["name"])))
                case "clear":
                    self._timeline.cut(min(at_s, self._timeline.end_s))
                    self._marks = deque((at_s, name) for _, name in self._marks)
        except (ValueError, KeyError, TypeError, NotBase64):
            reason = "sent a message that is not Twilio's form"
            raise AgentBroke(f"{self._url}: {reason}") from None

    def _send(self, frame: str) -> None:
        self._loop.call_soon_threadsafe(self._outgoing.put_nowait, frame)

    async def _open(self, caller: str | None) -> None:
        headers = {}
        if self._auth_token is not None:
            key = self._auth_token.get_secret_value().encode()
            signed = hmac.digest(key, self._url.encode(), sha1)
            headers["X-Twilio-Signature"] = b64encode(signed).decode("ascii")
        try:
            self._socket = await connect(
                self._url,
                additional_headers=headers,
                open_timeout=OPEN_TIMEOUT_S,
                compression=None,
                max_size=MAX_MESSAGE_BYTES,
                proxy=None,
            )
        except (OSError, WebSocketException, TimeoutError) as error:
            reason = f"no connection ({type(error).__name__})"
            raise LineFailed(f"{self._url}: {reason}") from None
        parameters = {"from": caller} if caller else {}
        self._outgoing.put_nowait(self._frames.connected())
        self._outgoing.put_nowait(self._frames.start(parameters))
        self._tasks = [
            asyncio.create_task(self._read(self._socket)),
            asyncio.create_task(self._write(self._socket)),
        ]

    async def _read(self, socket: ClientConnection) -> None:
        try:
            while True:
                raw = await socket.recv()
                self._arrived.append((self._pace.clock.monotonic(), raw))
        except ConnectionClosed as closed:
            self._closed = closed

    async def _write(self, socket: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            while frame := await self._outgoing.get():
                await socket.send(frame)

    async def _close(self) -> None:
        """What is queued is sent first: the agent learns why the stream ends."""
        self._outgoing.put_nowait("")
        if self._socket is not None:
            await asyncio.wait(self._tasks[1:], timeout=1.0)
            await self._socket.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
