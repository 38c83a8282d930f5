"""The least websocket that will do: the load generator must cost less than what it measures."""

import asyncio
import os
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha1
from typing import cast
from urllib.parse import urlsplit

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10

Take = Callable[["RawSocket", int, bytes, bytes], None]
"""Socket, opcode, mask, payload as it came: who only needs eight bytes of it need not unmask
the rest.
"""


class RawSocket(asyncio.Protocol):
    def __init__(
        self, take: Take, request: bytes | None = None, greeting: bytes = b""
    ) -> None:
        """With a `request` it is a client, else a server that says `greeting` first."""
        self.take = take
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.state: object = None
        self._request = request
        self._greeting = greeting
        self._buffer = bytearray()
        self._is_open = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's is one without inheriting from it
        self._transport = cast(asyncio.Transport, transport)
        if self._request is not None:
            self._transport.write(self._request)

    def connection_lost(self, error: Exception | None) -> None:
        self._is_open = False
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("closed before it was open"))

    def send(self, opcode: int, payload: bytes) -> None:
        if not self._is_open or self._transport is None:
            return
        length = len(payload)
        head = (
            bytes((0x80 | opcode, length))
            if length < 126
            else bytes((0x80 | opcode, 126)) + length.to_bytes(2)
        )
        if self._request is not None:  # clients mask; a mask of noughts changes nothing
            head = bytes((head[0], head[1] | 0x80)) + head[2:] + b"\0\0\0\0"
        self._transport.write(head + payload)

    def close(self) -> None:
        self.send(CLOSE, b"\x03\xe8")
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._is_open and not self._shake_hands():
            return
        while self._take_frame():
            pass

    def _shake_hands(self) -> bool:
        head, found, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        if not found:
            return False
        self._buffer = bytearray(rest)
        if self._request is None and self._transport is not None:
            key = next(
                line.split(b":", 1)[1].strip()
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"sec-websocket-key")
            )
            accept = b64encode(sha1(key + _GUID, usedforsecurity=False).digest())
            self._transport.write(
                (
                    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "
                    b"Upgrade\r\nSec-WebSocket-Accept: "
                )
                + accept
                + b"\r\n\r\n"
            )
        elif b" 101 " not in head.split(b"\r\n")[0]:
            self.opened.set_exception(ConnectionError(head.split(b"\r\n")[0].decode()))
            return False
        self._is_open = True
        if self._greeting:
            self.send(TEXT, self._greeting)
        self.opened.set_result(None)
        return True

    def _take_frame(self) -> bool:
        buffer = self._buffer
        if len(buffer) < 2:
            return False
        length, start = buffer[1] & 0x7F, 2
        if length >= 126:
            size = 2 if length == 126 else 8
            length, start = int.from_bytes(buffer[2 : 2 + size]), 2 + size
        is_masked = buffer[1] & 0x80
        end = start + (4 if is_masked else 0) + length
        if len(buffer) < end:
            return False
        mask = bytes(buffer[start : start + 4]) if is_masked else b""
        opcode, payload = buffer[0] & 0x0F, bytes(buffer[end - length : end])
        del buffer[:end]
        if opcode == PING:
            self.send(PONG, unmask(mask, payload))
        elif opcode in (TEXT, BINARY):
            self.take(self, opcode, mask, payload)
        return True


def unmask(mask: bytes, payload: bytes) -> bytes:
    if not mask:
        return payload
    key = (mask * (len(payload) // 4 + 1))[: len(payload)]
    return (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(len(payload))


async def dial(
    url: str, take: Take, headers: dict[str, str] | None = None
) -> RawSocket:
    parts = urlsplit(url)
    lines = [
        f"GET {parts.path} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Version: 13",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    request = ("\r\n".join(lines) + "\r\n\r\n").encode()
    loop = asyncio.get_running_loop()
    _, socket = await loop.create_connection(
        lambda: RawSocket(take, request), parts.hostname or "", parts.port or 80
    )
    await socket.opened
    return socket
