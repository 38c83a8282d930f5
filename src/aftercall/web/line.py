"""A carrier's media socket as the bridge sees it: on the server's short way where it has one, else on its own messages."""

from collections.abc import Callable

from fastapi import WebSocket
from starlette.websockets import WebSocketDisconnect, WebSocketState

from aftercall.web.lean import LEAN, LeanSocket


class SocketLine:
    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def receive(self) -> str | bytes | None:
        message = await self._socket.receive()
        if message["type"] != "websocket.receive":
            return None
        text: str | None = message.get("text")
        data: bytes | None = message.get("bytes")
        return text if text is not None else data or b""

    def divert(self, take: Callable[[str | bytes], bool]) -> None:
        """Nothing comes here otherwise than by being received."""

    @property
    def is_free(self) -> bool:
        return False

    def offer(self, frame: str | bytes) -> bool:
        return False

    async def send(self, frame: str | bytes) -> None:
        kind = "text" if isinstance(frame, str) else "bytes"
        if self._is_connected:
            try:
                await self._socket.send({"type": "websocket.send", kind: frame})
            except (OSError, RuntimeError, WebSocketDisconnect):  # gone in this very moment: the reading side tells
                return

    async def close(self, code: int = 1000) -> None:
        if self._is_connected:
            try:
                await self._socket.close(code)
            except (OSError, RuntimeError, WebSocketDisconnect):
                return

    @property
    def _is_connected(self) -> bool:
        return self._socket.client_state is WebSocketState.CONNECTED and self._socket.application_state is WebSocketState.CONNECTED


class LeanLine(SocketLine):
    def __init__(self, socket: WebSocket, lean: LeanSocket) -> None:
        super().__init__(socket)
        self._lean = lean
        lean.begin()

    async def receive(self) -> str | bytes | None:
        return await self._lean.take()

    def divert(self, take: Callable[[str | bytes], bool]) -> None:
        self._lean.divert(take)

    @property
    def is_free(self) -> bool:
        return self._lean.writable.is_set()

    def offer(self, frame: str | bytes) -> bool:
        return self._lean.offer(frame)

    async def send(self, frame: str | bytes) -> None:
        await self._lean.put(frame)


def open_line(socket: WebSocket) -> SocketLine:
    """The line of a socket that has just been accepted."""
    lean = socket.scope.get("extensions", {}).get(LEAN)
    return LeanLine(socket, lean) if isinstance(lean, LeanSocket) else SocketLine(socket)
