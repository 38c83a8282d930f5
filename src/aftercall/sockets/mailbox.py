"""Messages that have come over a socket and have not been taken yet: so many are kept, more are left with the sender."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

MOST_WAITING = 64  # messages; more are left in the system's buffers, and so with whoever sends them
RESUME_AT = 16


Item = TypeVar("Item")


class Gone(Exception):
    """The socket is closed and everything that came over it has been taken."""


class Mailbox(Generic[Item]):
    def __init__(self) -> None:
        self._mail: deque[Item] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._first: Callable[[Item], bool] | None = None
        self._fault: Exception | None = None
        self._is_held = False
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._mail)

    @property
    def is_awaited(self) -> bool:
        return self._waiter is not None

    def hold_up(self, transport: asyncio.Transport) -> None:
        """Whose reading stops while too much lies here."""
        self._transport = transport

    def divert(self, take: Callable[[Item], bool]) -> None:
        """Offer each message to `take` the moment it comes. What it returns True for is done with, the rest is left here.

        Only while nothing lies here and somebody waits for it, so that nothing overtakes what came before. What goes wrong in it is raised
        to who waits.
        """
        self._first = take

    def put(self, message: Item) -> None:
        if self._first is not None and self._waiter is not None and self._give(self._first, message):
            return
        self._mail.append(message)
        if len(self._mail) > MOST_WAITING and not self._is_held and self._transport is not None:
            self._is_held = True
            self._transport.pause_reading()
        self._wake()

    def close(self) -> None:
        self._is_closed = True
        self._wake()

    async def take(self) -> Item:
        """The next message. Only one may wait for it."""
        while not self._mail and self._fault is None:
            if self._is_closed:
                raise Gone
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._fault is not None:
            raise self._fault
        message = self._mail.popleft()
        if self._is_held and len(self._mail) <= RESUME_AT:
            self._is_held = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()
        return message

    def _give(self, take: Callable[[Item], bool], message: Item) -> bool:
        try:
            return take(message)
        except Exception as error:  # noqa: BLE001 - the edge of a socket: it goes on, and who waits is told
            self._fault = error
            return False

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
