"""A `websockets` connection with a shorter way for audio: frames go straight to a mailbox, and are written without waiting.

The library's own `recv` and `send` cost a fifth of what a call costs; framing, handshake, pings and the close are still its work.
"""

import asyncio
from collections import deque
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.frames import DATA_OPCODES, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import Event, State

MOST_WAITING = 64  # messages; more are left in the system's buffers, and so with the engine
RESUME_AT = 16


class Gone(Exception):
    """The connection is closed and everything that came over it has been taken."""


class LeanConnection(ClientConnection):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._mail: deque[str | bytes] = deque()
        self._parts: list[Frame] = []
        self._waiter: asyncio.Future[None] | None = None
        self._is_held = False

    def process_event(self, event: Event) -> None:
        if isinstance(event, Response) or not isinstance(event, Frame) or event.opcode not in DATA_OPCODES:
            super().process_event(event)
            return
        self._parts.append(event)
        if event.fin:
            self._deliver()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._wake()

    async def take(self) -> str | bytes:
        """The next message. Only one may wait for it."""
        while not self._mail:
            if self.protocol.state is State.CLOSED:
                raise Gone
            self._waiter = self.loop.create_future()
            await self._waiter
        message = self._mail.popleft()
        if self._is_held and len(self._mail) <= RESUME_AT:
            self._is_held = False
            if not self.transport.is_closing():
                self.transport.resume_reading()
        return message

    def put(self, message: str | bytes) -> None:
        """Send without waiting; how much is unsent is for the sender to mind."""
        if self.protocol.state is not State.OPEN:
            raise Gone
        if isinstance(message, str):
            self.protocol.send_text(message.encode())
        else:
            self.protocol.send_binary(message)
        self.send_data()

    def _deliver(self) -> None:
        is_text = self._parts[0].opcode is Opcode.TEXT
        data = bytes(self._parts[0].data) if len(self._parts) == 1 else b"".join(bytes(part.data) for part in self._parts)
        self._parts.clear()
        self._mail.append(data.decode("utf-8", "replace") if is_text else data)
        if len(self._mail) > MOST_WAITING and not self._is_held:
            self._is_held = True
            self.transport.pause_reading()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
