"""The websocket to an engine: how it opens, how it ends, and what it drops for a slow engine."""

import asyncio
import json
from typing import Any, Self, cast
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI
from websockets.frames import DATA_OPCODES, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import Event, State

from aftercall.errors import EngineLost, EngineRefused
from aftercall.model.json_fields import Json
from aftercall.rest import Headers, describe_network_error
from aftercall.sockets.frames import FrameParser, Masks, UnhandledBytes, make_frame
from aftercall.sockets.mailbox import Handler, Mailbox, MailboxClosed

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
MAX_UNSENT_BYTES = 32_768  # in this process; the system's buffers come on top
OPEN_TIMEOUT_S = 4.0
CLOSE_TIMEOUT_S = 1.0
_REFUSALS = frozenset({400, 401, 402, 403, 404})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_END_OF_HEAD = b"\r\n\r\n"
_MAX_HEAD_BYTES = 65_536
_masks = Masks()


class EngineWebSocket(ClientConnection):
    """A `websockets` connection. Whole messages skip the library and go to the mailbox."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.mailbox = Mailbox[str | bytes]()
        self._parts: list[Frame] = []
        self._head = b""
        self._is_refused = False
        self._parser: FrameParser | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.mailbox.set_transport(transport)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            super().data_received(data)
            return
        if self._parser is None:
            data = self._read_handshake(data)
        for piece in self._parser.feed(data) if self._parser and data else ():
            if isinstance(piece, UnhandledBytes):
                super().data_received(piece.raw)
            elif self.protocol.state is State.OPEN:  # else the socket is closing
                payload = piece.payload
                self.mailbox.add(
                    payload.decode("utf-8", "replace") if piece.is_text else payload
                )

    def eof_received(self) -> None:
        if self._head:
            super().data_received(self._head)
        super().eof_received()

    def process_event(self, event: Event) -> None:
        """A message in parts comes from the library, frame by frame."""
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
            self.mailbox.add(data.decode("utf-8", "replace") if is_text else data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.mailbox.close()

    def _read_handshake(self, data: bytes) -> bytes:
        """Give the head of the answer to the library, whole. Returns the frames behind it."""
        self._head += data
        end = self._head.find(_END_OF_HEAD)
        if end < 0 and len(self._head) < _MAX_HEAD_BYTES:
            return b""
        size = end + len(_END_OF_HEAD) if end >= 0 else len(self._head)
        head, rest, self._head = self._head[:size], self._head[size:], b""
        super().data_received(head)
        if self.protocol.state is State.OPEN:
            self._parser = FrameParser(is_masked=False, max_bytes=MAX_MESSAGE_BYTES)
            return rest
        self._is_refused = True  # the body of the refusal follows
        if rest:
            super().data_received(rest)
        return b""


class EngineSocket:
    """A websocket to an engine."""

    def __init__(self, connection: EngineWebSocket, name: str) -> None:
        self._connection = connection
        self._name = name

    @classmethod
    async def open(cls, url: str, headers: Headers, name: str) -> Self:
        try:
            connection = await connect(
                url,
                additional_headers=headers,
                compression=None,  # voice does not compress
                max_size=MAX_MESSAGE_BYTES,
                open_timeout=OPEN_TIMEOUT_S,
                close_timeout=CLOSE_TIMEOUT_S,
                create_connection=EngineWebSocket,
                proxy=None if urlsplit(url).hostname in _LOOPBACK else True,
            )
        except InvalidStatus as error:
            status = error.response.status_code
            kind = EngineRefused if status in _REFUSALS else EngineLost
            raise kind(
                f"{name} refused the connection with {status}; check its key and address"
            ) from None
        except InvalidURI:
            raise EngineRefused(
                f"{name}: its address is not that of a websocket"
            ) from None
        except (OSError, TimeoutError, InvalidHandshake) as error:
            reason = describe_network_error(error)
            raise EngineLost(f"{name} cannot be reached ({reason})") from None
        return cls(cast(EngineWebSocket, connection), name)

    @property
    def has_room(self) -> bool:
        return self.unsent_bytes < MAX_UNSENT_BYTES

    @property
    def unsent_bytes(self) -> int:
        return self._connection.transport.get_write_buffer_size()

    async def receive(self) -> str | bytes:
        """The next message. For the handshake of an engine's protocol."""
        try:
            return await self._connection.mailbox.receive()
        except MailboxClosed:
            raise self._closed() from None

    async def receive_json(self, *types: str) -> Json:
        """The next message of one of these types. Others are dropped."""
        while True:
            message = parse_message(await self.receive())
            if message["type"] in types:
                return message

    async def deliver(self, handle: Handler[str | bytes]) -> None:
        """Pass each message to the handler, in order. Raises EngineLost when the socket closes."""
        await self._connection.mailbox.deliver(handle)
        raise self._closed()

    def send(self, message: str | bytes) -> None:
        """Sends without waiting. Audio checks `has_room` first."""
        connection = self._connection
        if connection.protocol.state is not State.OPEN:
            raise self._closed()
        try:
            connection.transport.write(make_frame(message, _masks.next_mask()))
        except OSError:
            raise self._closed() from None

    def send_json(self, message: Json) -> None:
        self.send(json.dumps(message))

    async def close(self) -> None:
        """Close the websocket; abort it if the engine does not answer."""
        try:
            async with asyncio.timeout(2 * CLOSE_TIMEOUT_S):
                await self._connection.close()
        except TimeoutError:
            self.abort()

    def abort(self) -> None:
        self._connection.transport.abort()

    def _closed(self) -> EngineLost:
        return EngineLost(f"{self._name} closed the socket")


def parse_message(raw: str | bytes) -> Json:
    """A JSON object with a `type`. Anything else gets an empty type and is ignored."""
    try:
        message = json.loads(raw)
    except (ValueError, RecursionError):
        return {"type": ""}
    is_typed = isinstance(message, dict) and isinstance(message.get("type"), str)
    return message if is_typed else {"type": ""}


def clean_code(code: object, fallback: str) -> str:
    """A code of the protocol, safe for a log: free text could hold what was spoken."""
    text = text_of(code)
    return text if text.replace("_", "").isalnum() and len(text) < 64 else fallback


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""
