"""A carrier's media socket: on the fast path where the server has it, else on ASGI messages."""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from fastapi import WebSocket
from starlette.websockets import WebSocketDisconnect, WebSocketState
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode
from websockets.http11 import Request
from websockets.protocol import State

from aftercall.sockets.frames import FrameParser, UnhandledBytes, make_frame
from aftercall.sockets.mailbox import Handler, Mailbox, MailboxClosed

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveEvent


MAX_FRAMES_A_SECOND = 4_000  # a call has 50, and some hundreds after a stall
SCOPE_EXTENSION = "aftercall.fast_socket"
"""The key of the ASGI scope under which the app finds the protocol object."""


class FastWebSocket(WebSocketsSansIOProtocol):
    """uvicorn's websocket protocol. Whole messages skip it once the app asks for them."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.mailbox = Mailbox[str | bytes]()
        self._parser: FrameParser | None = None
        self._arrivals = 0
        self._second = 0.0
        self._frames = 0

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            extensions = cast(dict[str, object], self.scope["extensions"])
            extensions[SCOPE_EXTENSION] = self

    def start_receiving(self) -> None:
        """Put messages into the mailbox from here on.

        If frames arrived before, the library has begun to parse them and parses them all.
        """
        waiting, self.queue = self.queue, _ReceiveQueue(self.mailbox)
        while not waiting.empty():
            self.queue.put_nowait(waiting.get_nowait())
        if self.read_paused:
            self.transport.resume_reading()
        self.read_paused = (
            True  # the mailbox pauses reading from here on, not the library
        )
        self.mailbox.set_transport(self.transport)
        if self._arrivals == 1:  # only the request itself
            self._parser = FrameParser(
                is_masked=True, max_bytes=self.config.ws_max_size
            )

    def data_received(self, data: bytes) -> None:
        self._arrivals += 1
        if self._parser is None:
            super().data_received(data)
            return
        for piece in self._parser.feed(data):
            if self._is_flooded():
                self._refuse_flood()
                return
            if isinstance(piece, UnhandledBytes):
                super().data_received(piece.raw)
            elif self.conn.state is State.OPEN:  # else the socket is closing
                try:
                    message = piece.payload.decode() if piece.is_text else piece.payload
                except UnicodeDecodeError:
                    # the library closes with the right code
                    super().data_received(piece.raw)
                else:
                    self.mailbox.add(message)

    def _is_flooded(self) -> bool:
        """Whether more frames came within a second than any call has."""
        now = self.loop.time()
        if now - self._second >= 1:
            self._second, self._frames = now, 0
        self._frames += 1
        return self._frames > MAX_FRAMES_A_SECOND

    def _refuse_flood(self) -> None:
        if self.conn.state is State.OPEN:
            self.conn.fail(CloseCode.POLICY_VIOLATION, "too many frames")
            self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.close()

    def write_message(self, message: str | bytes) -> None:
        if self.conn.state is State.OPEN and not self.transport.is_closing():
            self.transport.write(make_frame(message))


class _ReceiveQueue(asyncio.Queue["ASGIReceiveEvent"]):
    """Where uvicorn puts its events for the app: messages in parts, and the end."""

    def __init__(self, mailbox: Mailbox[str | bytes]) -> None:
        super().__init__()
        self._mailbox = mailbox

    def put_nowait(self, item: "ASGIReceiveEvent") -> None:
        if item["type"] == "websocket.receive":
            text = item.get("text")
            self._mailbox.add(text if text is not None else item.get("bytes") or b"")
        elif item["type"] == "websocket.disconnect":
            self._mailbox.close()


class AsgiMediaSocket:
    """A MediaSocket on any ASGI server."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._unsent: deque[str | bytes] = deque()
        self._sending: asyncio.Task[None] | None = None

    async def receive(self) -> str | bytes | None:
        message = await self._socket.receive()
        if message["type"] != "websocket.receive":
            return None
        text: str | None = message.get("text")
        data: bytes | None = message.get("bytes")
        return text if text is not None else data or b""

    async def deliver(self, handle: Handler[str | bytes]) -> None:
        while (message := await self.receive()) is not None:
            work = handle(message)
            if work is not None:
                await work

    def write(self, message: str | bytes) -> None:
        self._unsent.append(message)
        if self.is_writable:
            self._sending = asyncio.create_task(self._send_all())

    @property
    def is_writable(self) -> bool:
        return self._sending is None or self._sending.done()

    async def drain(self) -> None:
        if self._sending is not None:
            await asyncio.wait({self._sending})

    async def close(self, code: int = 1000) -> None:
        if self._is_connected:
            try:
                await self._socket.close(code)
            except (OSError, RuntimeError, WebSocketDisconnect):
                return

    async def _send_all(self) -> None:
        while self._unsent and self._is_connected:
            message = self._unsent.popleft()
            kind = "text" if isinstance(message, str) else "bytes"
            try:
                await self._socket.send({"type": "websocket.send", kind: message})
            except (
                OSError,
                RuntimeError,
                WebSocketDisconnect,
            ):
                # `receive` reports the end
                break
        self._unsent.clear()

    @property
    def _is_connected(self) -> bool:
        return (
            self._socket.client_state is WebSocketState.CONNECTED
            and self._socket.application_state is WebSocketState.CONNECTED
        )


class FastMediaSocket(AsgiMediaSocket):
    """A MediaSocket on our own server."""

    def __init__(self, socket: WebSocket, protocol: FastWebSocket) -> None:
        super().__init__(socket)
        self._protocol = protocol
        protocol.start_receiving()

    async def receive(self) -> str | bytes | None:
        try:
            return await self._protocol.mailbox.receive()
        except MailboxClosed:
            return None

    async def deliver(self, handle: Handler[str | bytes]) -> None:
        await self._protocol.mailbox.deliver(handle)

    def write(self, message: str | bytes) -> None:
        self._protocol.write_message(message)

    @property
    def is_writable(self) -> bool:
        return self._protocol.writable.is_set()

    async def drain(self) -> None:
        await self._protocol.writable.wait()


def open_media_socket(socket: WebSocket) -> AsgiMediaSocket:
    """The media socket of a websocket that was just accepted."""
    protocol = socket.scope.get("extensions", {}).get(SCOPE_EXTENSION)
    if isinstance(protocol, FastWebSocket):
        return FastMediaSocket(socket, protocol)
    return AsgiMediaSocket(socket)
