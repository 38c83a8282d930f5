"""The socket to an engine: how it is opened, what its end means, and that a slow engine costs
no memory.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Self, cast
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI
from websockets.frames import DATA_OPCODES, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import Event, State

from aftercall.errors import EngineLost, EngineRefused, describe_network_error
from aftercall.sockets.frames import FrameParser, Masks, UnhandledBytes, make_frame
from aftercall.sockets.mailbox import Mailbox, MailboxClosed

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_END_OF_HEAD = b"\r\n\r\n"
_MAX_HEAD_BYTES = 65_536
_masks = Masks()


class FastConnection(ClientConnection):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._mailbox = Mailbox[str | bytes]()
        self._parts: list[Frame] = []
        self._head = b""
        self._is_refused = False
        self._cutter: FrameParser | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._mailbox.set_transport(transport)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            super().data_received(data)
            return
        if self._cutter is None:
            data = self._read_handshake(data)
        for piece in self._cutter.feed(data) if self._cutter and data else ():
            if isinstance(piece, UnhandledBytes):
                super().data_received(piece.raw)
            elif self.protocol.state is State.OPEN:  # else nobody waits for it any more
                self._mailbox.add(
                    piece.payload.decode("utf-8", "replace") if piece.is_text else piece.payload
                )

    def eof_received(self) -> None:
        if self._head:
            super().data_received(self._head)
        super().eof_received()

    def process_event(self, event: Event) -> None:
        if (
            isinstance(event, Response)
            or not isinstance(event, Frame)
            or event.opcode not in DATA_OPCODES
        ):
            super().process_event(event)
            return
        self._parts.append(event)
        if event.fin:
            is_text = self._parts[0].opcode is Opcode.TEXT
            data = b"".join(bytes(part.data) for part in self._parts)
            self._parts.clear()
            self._mailbox.add(data.decode("utf-8", "replace") if is_text else data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._mailbox.close()

    async def receive_message(self) -> str | bytes:
        """The next message; raises Gone after the last. Only one may wait for it."""
        return await self._mailbox.receive()

    def set_fast_path(self, on_message: Callable[[str | bytes], bool]) -> None:
        self._mailbox.set_fast_path(on_message)

    def send_now(self, message: str | bytes) -> None:
        """Send without waiting; how much is unsent is for the sender to mind."""
        if self.protocol.state is not State.OPEN:
            raise MailboxClosed
        self.transport.write(make_frame(message, _masks.next_mask()))

    def _read_handshake(self, data: bytes) -> bytes:
        """The head of the answer is the library's, whole; what comes behind it in an open
        connection is returned.
        """
        self._head += data
        end = self._head.find(_END_OF_HEAD)
        if end < 0 and len(self._head) < _MAX_HEAD_BYTES:
            return b""
        size = end + len(_END_OF_HEAD) if end >= 0 else len(self._head)
        head, rest, self._head = self._head[:size], self._head[size:], b""
        super().data_received(head)
        if self.protocol.state is State.OPEN:
            self._cutter = FrameParser(is_masked=False, max_bytes=MAX_MESSAGE_BYTES)
            return rest
        self._is_refused = True  # what follows is the page that says so
        if rest:
            super().data_received(rest)
        return b""


MAX_UNSENT_BYTES = 32_768  # bytes on our side; the system's own buffers come on top
OPEN_TIMEOUT_S = 4.0
CLOSE_TIMEOUT_S = 1.0
_REFUSALS = frozenset({400, 401, 402, 403, 404})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class EngineSocket:
    def __init__(self, connection: FastConnection, name: str) -> None:
        self._connection = connection
        self._name = name

    @classmethod
    async def open(cls, url: str, headers: Mapping[str, str], name: str) -> Self:
        try:
            connection = await connect(
                url,
                additional_headers=headers,
                compression=None,  # voice does not shrink, and each call would pay for trying
                max_size=MAX_MESSAGE_BYTES,
                open_timeout=OPEN_TIMEOUT_S,
                close_timeout=CLOSE_TIMEOUT_S,
                create_connection=FastConnection,
                proxy=None if urlsplit(url).hostname in _LOOPBACK else True,
            )
        except InvalidStatus as error:
            status = error.response.status_code
            kind = EngineRefused if status in _REFUSALS else EngineLost
            raise kind(f"{name} answered {status} at the door; check its key and address") from None
        except InvalidURI:
            raise EngineRefused(f"{name}: its address is not that of a websocket") from None
        except (OSError, TimeoutError, InvalidHandshake) as error:
            raise EngineLost(
                f"{name} cannot be reached ({describe_network_error(error)})"
            ) from None
        return cls(cast(FastConnection, connection), name)

    @property
    def has_room(self) -> bool:
        return self.unsent_bytes < MAX_UNSENT_BYTES

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the engine has not taken yet."""
        return self._connection.transport.get_write_buffer_size()

    async def receive(self) -> str | bytes:
        try:
            return await self._connection.receive_message()
        except MailboxClosed:
            raise EngineLost(f"{self._name} closed the socket") from None

    def set_fast_path(self, on_message: Callable[[str | bytes], bool]) -> None:
        self._connection.set_fast_path(on_message)

    def send_now(self, message: str | bytes) -> None:
        """Sent at once; a slow engine is for the sender to mind."""
        try:
            self._connection.send_now(message)
        except (MailboxClosed, OSError):
            raise EngineLost(f"{self._name} closed the socket") from None

    async def send(self, message: str | bytes) -> None:
        self.send_now(message)

    async def send_json(self, message: Mapping[str, Any]) -> None:
        await self.send(json.dumps(message))

    async def close(self) -> None:
        """Say goodbye; an engine that does not answer is left, not waited for."""
        try:
            async with asyncio.timeout(2 * CLOSE_TIMEOUT_S):
                await self._connection.close()
        except TimeoutError:
            self._connection.transport.abort()

    def abort(self) -> None:
        self._connection.transport.abort()


def parse_message(raw: str | bytes) -> dict[str, Any]:
    """A JSON object with a `type`; anything else is one without meaning, for engines learn new
    words.
    """
    try:
        message = json.loads(raw)
    except (ValueError, RecursionError):
        return {"type": ""}
    return (
        message
        if isinstance(message, dict) and isinstance(message.get("type"), str)
        else {"type": ""}
    )


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""
