"""A carrier's media socket as the bridge sees it: on the server's short way where it has one,
else on its own messages.
"""

from asyncio import Queue
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from fastapi import WebSocket
from starlette.websockets import WebSocketDisconnect, WebSocketState
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request
from websockets.protocol import State

from aftercall.sockets.frames import FrameParser, Message, UnhandledBytes, make_frame
from aftercall.sockets.mailbox import Mailbox, MailboxClosed

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveEvent


SCOPE_EXTENSION = "aftercall.lean"
"""The extension of a scope that holds the socket itself."""


class FastWebSocket(WebSocketsSansIOProtocol):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._mailbox = Mailbox[str | bytes]()
        self._cutter: FrameParser | None = None
        self._arrivals = 0

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            extensions = cast(dict[str, object], self.scope["extensions"])
            extensions[SCOPE_EXTENSION] = self

    def start_receiving(self) -> None:
        """From here on messages are taken here.

        What came before the app asked was read by the library, and then all of it is.
        """
        waiting, self.queue = self.queue, _ReceiveQueue(self._mailbox)
        while not waiting.empty():
            self.queue.put_nowait(waiting.get_nowait())
        if self.read_paused:
            self.transport.resume_reading()
        self.read_paused = True  # for the library; the mailbox has its own measure of enough
        self._mailbox.set_transport(self.transport)
        if self._arrivals == 1:  # only the request itself
            self._cutter = FrameParser(is_masked=True, max_bytes=self.config.ws_max_size)

    def data_received(self, data: bytes) -> None:
        self._arrivals += 1
        if self._cutter is None:
            super().data_received(data)
            return
        for piece in self._cutter.feed(data):
            if isinstance(piece, UnhandledBytes) or not self._deliver(piece):
                super().data_received(piece.raw)

    async def receive_message(self) -> str | bytes | None:
        """The next message; None when the socket is gone. Only one may wait for it."""
        try:
            return await self._mailbox.receive()
        except MailboxClosed:
            return None

    def set_fast_path(self, on_message: Callable[[str | bytes], bool]) -> None:
        self._mailbox.set_fast_path(on_message)

    def try_send(self, message: str | bytes) -> bool:
        """Send it unless the other side is slow.

        A socket that is gone takes everything and keeps nothing.
        """
        if not self.writable.is_set():
            return False
        if self.conn.state is State.OPEN and not self.transport.is_closing():
            self.transport.write(make_frame(message))
        return True

    async def send_message(self, message: str | bytes) -> None:
        while not self.try_send(message):
            await self.writable.wait()

    def _deliver(self, message: Message) -> bool:
        """False if the library has to say why it cannot be."""
        if self.conn.state is not State.OPEN:
            return True  # nobody waits for it any more
        try:
            self._mailbox.add(message.payload.decode() if message.is_text else message.payload)
        except UnicodeDecodeError:
            return False
        return True


class _ReceiveQueue(Queue["ASGIReceiveEvent"]):
    """Where uvicorn puts what it has for the app: messages in parts, and the end."""

    def __init__(self, mail: Mailbox[str | bytes]) -> None:
        super().__init__()
        self._mail = mail

    def put_nowait(self, item: "ASGIReceiveEvent") -> None:
        if item["type"] == "websocket.receive":
            text = item.get("text")
            self._mail.add(text if text is not None else item.get("bytes") or b"")
        elif item["type"] == "websocket.disconnect":
            self._mail.close()


class StarletteMediaSocket:
    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def receive(self) -> str | bytes | None:
        message = await self._socket.receive()
        if message["type"] != "websocket.receive":
            return None
        text: str | None = message.get("text")
        data: bytes | None = message.get("bytes")
        return text if text is not None else data or b""

    def set_fast_path(self, on_frame: Callable[[str | bytes], bool]) -> None:
        """Nothing comes here otherwise than by being received."""

    @property
    def can_send_now(self) -> bool:
        return False

    def try_send(self, frame: str | bytes) -> bool:
        return False

    async def send(self, frame: str | bytes) -> None:
        kind = "text" if isinstance(frame, str) else "bytes"
        if self._is_connected:
            try:
                await self._socket.send({"type": "websocket.send", kind: frame})
            except (
                OSError,
                RuntimeError,
                WebSocketDisconnect,
            ):  # gone in this very moment: the reading side tells
                return

    async def close(self, code: int = 1000) -> None:
        if self._is_connected:
            try:
                await self._socket.close(code)
            except (OSError, RuntimeError, WebSocketDisconnect):
                return

    @property
    def _is_connected(self) -> bool:
        return (
            self._socket.client_state is WebSocketState.CONNECTED
            and self._socket.application_state is WebSocketState.CONNECTED
        )


class FastMediaSocket(StarletteMediaSocket):
    def __init__(self, socket: WebSocket, fast_socket: FastWebSocket) -> None:
        super().__init__(socket)
        self._fast_socket = fast_socket
        fast_socket.start_receiving()

    async def receive(self) -> str | bytes | None:
        return await self._fast_socket.receive_message()

    def set_fast_path(self, on_frame: Callable[[str | bytes], bool]) -> None:
        self._fast_socket.set_fast_path(on_frame)

    @property
    def can_send_now(self) -> bool:
        return self._fast_socket.writable.is_set()

    def try_send(self, frame: str | bytes) -> bool:
        return self._fast_socket.try_send(frame)

    async def send(self, frame: str | bytes) -> None:
        await self._fast_socket.send_message(frame)


def open_media_socket(socket: WebSocket) -> StarletteMediaSocket:
    """The line of a socket that has just been accepted."""
    lean = socket.scope.get("extensions", {}).get(SCOPE_EXTENSION)
    return (
        FastMediaSocket(socket, lean)
        if isinstance(lean, FastWebSocket)
        else StarletteMediaSocket(socket)
    )
