"""A `websockets` connection with a shorter way for audio: whole messages go straight to a mailbox, and are written without waiting.

Handshake, pings, messages in parts and the close are still the library's work.
"""

from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.frames import DATA_OPCODES, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import Event, State

from aftercall.sockets.frames import Foreign, FrameCutter, Masks, make_frame
from aftercall.sockets.mailbox import Gone, Mailbox

LARGEST_MESSAGE = 4 * 1024 * 1024
_END_OF_HEAD = b"\r\n\r\n"
_LONGEST_HEAD = 65_536
_masks = Masks()


class LeanConnection(ClientConnection):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._mail = Mailbox[str | bytes]()
        self._parts: list[Frame] = []
        self._head = b""
        self._is_refused = False
        self._cutter: FrameCutter | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._mail.hold_up(transport)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            super().data_received(data)
            return
        if self._cutter is None:
            data = self._shake_hands(data)
        for piece in self._cutter.take(data) if self._cutter and data else ():
            if isinstance(piece, Foreign):
                super().data_received(piece.raw)
            elif self.protocol.state is State.OPEN:  # else nobody waits for it any more
                self._mail.put(piece.payload.decode("utf-8", "replace") if piece.is_text else piece.payload)

    def eof_received(self) -> None:
        if self._head:
            super().data_received(self._head)
        super().eof_received()

    def process_event(self, event: Event) -> None:
        if isinstance(event, Response) or not isinstance(event, Frame) or event.opcode not in DATA_OPCODES:
            super().process_event(event)
            return
        self._parts.append(event)
        if event.fin:
            is_text = self._parts[0].opcode is Opcode.TEXT
            data = b"".join(bytes(part.data) for part in self._parts)
            self._parts.clear()
            self._mail.put(data.decode("utf-8", "replace") if is_text else data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._mail.close()

    async def take(self) -> str | bytes:
        """The next message; raises Gone after the last. Only one may wait for it."""
        return await self._mail.take()

    def divert(self, take: Callable[[str | bytes], bool]) -> None:
        self._mail.divert(take)

    def put(self, message: str | bytes) -> None:
        """Send without waiting; how much is unsent is for the sender to mind."""
        if self.protocol.state is not State.OPEN:
            raise Gone
        self.transport.write(make_frame(message, _masks.draw()))

    def _shake_hands(self, data: bytes) -> bytes:
        """The head of the answer is the library's, whole; what comes behind it in an open connection is returned."""
        self._head += data
        end = self._head.find(_END_OF_HEAD)
        if end < 0 and len(self._head) < _LONGEST_HEAD:
            return b""
        size = end + len(_END_OF_HEAD) if end >= 0 else len(self._head)
        head, rest, self._head = self._head[:size], self._head[size:], b""
        super().data_received(head)
        if self.protocol.state is State.OPEN:
            self._cutter = FrameCutter(is_masked=False, largest=LARGEST_MESSAGE)
            return rest
        self._is_refused = True  # what follows is the page that says so
        if rest:
            super().data_received(rest)
        return b""
