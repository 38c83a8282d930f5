"""The server's side of a websocket, with a shorter way for audio.

To an app it is uvicorn's own socket in every respect. One that asks for it is given whole messages straight from the connection:
uvicorn's way costs each of them a queue, a change of state, and a stop of the reading.
"""

from asyncio import Queue
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request
from websockets.protocol import State

from aftercall.sockets.frames import Foreign, FrameCutter, Message, make_frame
from aftercall.sockets.mailbox import Gone, Mailbox

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveEvent

LEAN = "aftercall.lean"
"""The extension of a scope that holds the socket itself."""


class LeanSocket(WebSocketsSansIOProtocol):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._mail = Mailbox[str | bytes]()
        self._cutter: FrameCutter | None = None
        self._arrivals = 0

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            extensions = cast(dict[str, object], self.scope["extensions"])
            extensions[LEAN] = self

    def begin(self) -> None:
        """From here on messages are taken here. What came before the app asked was read by the library, and then all of it is."""
        waiting, self.queue = self.queue, _Letterbox(self._mail)
        while not waiting.empty():
            self.queue.put_nowait(waiting.get_nowait())
        if self.read_paused:
            self.transport.resume_reading()
        self.read_paused = True  # for the library; the mailbox has its own measure of enough
        self._mail.hold_up(self.transport)
        if self._arrivals == 1:  # only the request itself
            self._cutter = FrameCutter(is_masked=True, largest=self.config.ws_max_size)

    def data_received(self, data: bytes) -> None:
        self._arrivals += 1
        if self._cutter is None:
            super().data_received(data)
            return
        for piece in self._cutter.take(data):
            if isinstance(piece, Foreign) or not self._deliver(piece):
                super().data_received(piece.raw)

    async def take(self) -> str | bytes | None:
        """The next message; None when the socket is gone. Only one may wait for it."""
        try:
            return await self._mail.take()
        except Gone:
            return None

    def divert(self, take: Callable[[str | bytes], bool]) -> None:
        self._mail.divert(take)

    def offer(self, message: str | bytes) -> bool:
        """Send it unless the other side is slow. A socket that is gone takes everything and keeps nothing."""
        if not self.writable.is_set():
            return False
        if self.conn.state is State.OPEN and not self.transport.is_closing():
            self.transport.write(make_frame(message))
        return True

    async def put(self, message: str | bytes) -> None:
        while not self.offer(message):
            await self.writable.wait()

    def _deliver(self, message: Message) -> bool:
        """False if the library has to say why it cannot be."""
        if self.conn.state is not State.OPEN:
            return True  # nobody waits for it any more
        try:
            self._mail.put(message.payload.decode() if message.is_text else message.payload)
        except UnicodeDecodeError:
            return False
        return True


class _Letterbox(Queue["ASGIReceiveEvent"]):
    """Where uvicorn puts what it has for the app: messages in parts, and the end."""

    def __init__(self, mail: Mailbox[str | bytes]) -> None:
        super().__init__()
        self._mail = mail

    def put_nowait(self, item: "ASGIReceiveEvent") -> None:
        if item["type"] == "websocket.receive":
            text = item.get("text")
            self._mail.put(text if text is not None else item.get("bytes") or b"")
        elif item["type"] == "websocket.disconnect":
            self._mail.close()
