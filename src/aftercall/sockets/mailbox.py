"""Messages that have come over a socket and have not been taken yet: so many are kept, more are
left with the sender.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

MAX_QUEUED_MESSAGES = (
    64  # messages; more are left in the system's buffers, and so with whoever sends them
)
RESUME_AT_MESSAGES = 16


Item = TypeVar("Item")


class MailboxClosed(Exception):
    """The socket is closed and everything that came over it has been taken."""


class Mailbox(Generic[Item]):
    def __init__(self) -> None:
        self._messages: deque[Item] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._fast_path: Callable[[Item], bool] | None = None
        self._fault: Exception | None = None
        self._is_held = False
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def has_waiter(self) -> bool:
        return self._waiter is not None

    def set_transport(self, transport: asyncio.Transport) -> None:
        """Whose reading stops while too much lies here."""
        self._transport = transport

    def set_fast_path(self, on_message: Callable[[Item], bool]) -> None:
        """Offer each message to `take` the moment it comes.

        What it returns True for is done with, the rest is left here.

        Only while nothing lies here and somebody waits for it, so that nothing overtakes what
        came before. What goes wrong in it is raised to who waits.
        """
        self._fast_path = on_message

    def add(self, message: Item) -> None:
        if (
            self._fast_path is not None
            and self._waiter is not None
            and self._try_fast_path(self._fast_path, message)
        ):
            return
        self._messages.append(message)
        if (
            len(self._messages) > MAX_QUEUED_MESSAGES
            and not self._is_held
            and self._transport is not None
        ):
            self._is_held = True
            self._transport.pause_reading()
        self._wake()

    def close(self) -> None:
        self._is_closed = True
        self._wake()

    async def receive(self) -> Item:
        """The next message. Only one may wait for it."""
        while not self._messages and self._fault is None:
            if self._is_closed:
                raise MailboxClosed
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._fault is not None:
            raise self._fault
        message = self._messages.popleft()
        if self._is_held and len(self._messages) <= RESUME_AT_MESSAGES:
            self._is_held = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()
        return message

    def _try_fast_path(self, take: Callable[[Item], bool], message: Item) -> bool:
        try:
            return take(message)
        except Exception as error:  # noqa: BLE001 - the edge of a socket: it goes on, and who waits is told
            self._fault = error
            return False

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
