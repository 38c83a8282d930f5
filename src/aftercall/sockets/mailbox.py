"""Messages that arrived over a socket, in order, until they are handled.

A full mailbox stops the socket from reading, so the rest waits with the sender.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, Protocol, TypeVar

MAX_QUEUED_MESSAGES = 64
RESUME_AT_MESSAGES = 16

Item = TypeVar("Item")
Work = Coroutine[Any, Any, None]
Handler = Callable[[Item], Work | None]
"""Handles one message. A coroutine it returns is awaited before the next message."""


class MailboxClosed(Exception):
    """The socket is closed and its last message was received."""


class MediaSocket(Protocol):
    """A carrier's media socket."""

    async def receive(self) -> str | bytes | None:
        """The next message; None when the socket is closed. For the start of a stream."""
        ...

    async def deliver(self, handle: Handler[str | bytes]) -> None:
        """Pass each message to the handler, in order. Returns when the socket is closed."""
        ...

    def write(self, message: str | bytes) -> None:
        """Send without waiting. A closed socket drops the message."""
        ...

    @property
    def is_writable(self) -> bool:
        """False while the carrier is slow: await `drain` before more audio."""
        ...

    async def drain(self) -> None: ...

    async def close(self) -> None: ...


class Mailbox(Generic[Item]):
    """The messages of one socket; a full mailbox stops the socket from reading."""

    def __init__(self) -> None:
        self._messages: deque[Item] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._handle: Handler[Item] | None = None
        self._work: Work | None = None
        self._is_held = False
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether everything was handled and the next message is awaited."""
        return self._waiter is not None

    def set_transport(self, transport: asyncio.Transport) -> None:
        """The transport that stops reading while the mailbox is full."""
        self._transport = transport

    def add(self, message: Item) -> None:
        """The fast path: an idle handler gets the message here, and no task has to wake up."""
        if self._handle is not None and self._waiter is not None:
            try:
                self._work = self._handle(message)
            except Exception as error:  # noqa: BLE001 - raised by `deliver`
                self._work = _fail(error)
            if self._work is not None:
                self._wake()
            return
        self._messages.append(message)
        is_full = len(self._messages) > MAX_QUEUED_MESSAGES
        if is_full and not self._is_held and self._transport is not None:
            self._is_held = True
            self._transport.pause_reading()
        self._wake()

    def close(self) -> None:
        self._is_closed = True
        self._wake()

    async def receive(self) -> Item:
        """The next message. Only one task may wait for it. Raises MailboxClosed after the last."""
        await self._wait()
        if not self._messages:
            raise MailboxClosed
        return self._pop()

    async def deliver(self, handle: Handler[Item]) -> None:
        """Pass each message to the handler until the mailbox closes. Raises what it raises."""
        self._handle = handle
        try:
            while True:
                await self._wait()
                work, self._work = self._work, None
                if work is None:
                    if not self._messages:
                        return
                    work = handle(self._pop())
                if work is not None:
                    await work
        finally:
            self._handle = None
            if self._work is not None:
                self._work.close()

    async def _wait(self) -> None:
        while not self._messages and self._work is None and not self._is_closed:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def _pop(self) -> Item:
        message = self._messages.popleft()
        if self._is_held and len(self._messages) <= RESUME_AT_MESSAGES:
            self._is_held = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()
        return message

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


async def _fail(error: Exception) -> None:
    raise error


def handle_each(items: Sequence[Item], handle: Handler[Item]) -> Work | None:
    """Handle the items in order; a coroutine remains from the first one that has to wait."""
    if len(items) == 1:  # nearly always
        return handle(items[0])
    for number, item in enumerate(items, 1):
        work = handle(item)
        if work is not None:
            return _handle_rest(work, items[number:], handle)
    return None


async def _handle_rest(
    work: Work, items: Sequence[Item], handle: Handler[Item]
) -> None:
    await work
    rest = handle_each(items, handle)
    if rest is not None:
        await rest
