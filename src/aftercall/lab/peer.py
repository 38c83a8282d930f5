"""Whoever has come to an emulated engine's socket: the same over `websockets`, in tests, and
inside the lab's one web server.
"""

import asyncio
from typing import Protocol

from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

INTERNAL_ERROR = 1011


class PeerLeft(Exception):
    """They are gone, and everything they sent has been taken."""


class Peer(Protocol):
    async def receive(self) -> str | bytes:
        """Raises Left."""
        ...

    async def send(self, message: str | bytes) -> None:
        """Raises Left."""
        ...

    async def close(self, code: int) -> None: ...

    def abort(self) -> None:
        """Cut the line, as a server that crashes would."""
        ...


class SocketPeer:
    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    async def receive(self) -> str | bytes:
        try:
            return await self._connection.recv()
        except ConnectionClosed:
            raise PeerLeft from None

    async def send(self, message: str | bytes) -> None:
        try:
            await self._connection.send(message)
        except ConnectionClosed:
            raise PeerLeft from None

    async def close(self, code: int) -> None:
        await self._connection.close(code)

    def abort(self) -> None:
        self._connection.transport.abort()


class AsgiPeer:
    """An ASGI server does not give its socket out of hand: a crash is told by its code."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._closing: asyncio.Task[None] | None = None

    async def receive(self) -> str | bytes:
        message = await self._socket.receive()
        if message["type"] != "websocket.receive":
            raise PeerLeft
        text: str | None = message.get("text")
        data: bytes | None = message.get("bytes")
        return text if text is not None else data or b""

    async def send(self, message: str | bytes) -> None:
        kind = "text" if isinstance(message, str) else "bytes"
        try:
            await self._socket.send({"type": "websocket.send", kind: message})
        except (OSError, RuntimeError, WebSocketDisconnect):
            raise PeerLeft from None

    async def close(self, code: int) -> None:
        try:
            await self._socket.close(code)
        except (OSError, RuntimeError, WebSocketDisconnect):
            return

    def abort(self) -> None:
        self._closing = asyncio.ensure_future(self.close(INTERNAL_ERROR))
