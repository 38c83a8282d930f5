"""Messages that have come over a socket and have not been taken yet: so many are kept, more are left with the sender."""

import asyncio
from collections import deque

MOST_WAITING = 64  # messages; more are left in the system's buffers, and so with whoever sends them
RESUME_AT = 16


class Gone(Exception):
    """The socket is closed and everything that came over it has been taken."""


class Mailbox:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._mail: deque[str | bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._is_held = False
        self._is_closed = False

    def hold_up(self, transport: asyncio.Transport) -> None:
        """Whose reading stops while too much lies here."""
        self._transport = transport

    def put(self, message: str | bytes) -> None:
        self._mail.append(message)
        if len(self._mail) > MOST_WAITING and not self._is_held and self._transport is not None:
            self._is_held = True
            self._transport.pause_reading()
        self._wake()

    def close(self) -> None:
        self._is_closed = True
        self._wake()

    async def take(self) -> str | bytes:
        """The next message. Only one may wait for it."""
        while not self._mail:
            if self._is_closed:
                raise Gone
            self._waiter = self._loop.create_future()
            await self._waiter
        message = self._mail.popleft()
        if self._is_held and len(self._mail) <= RESUME_AT:
            self._is_held = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()
        return message

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
