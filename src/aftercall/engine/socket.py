"""The socket to an engine: how it is opened, what its end means, and that a slow engine costs no memory."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Self, cast
from urllib.parse import urlsplit

from websockets.asyncio.client import connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI

from aftercall.engine.connection import LARGEST_MESSAGE, LeanConnection
from aftercall.errors import EngineLost, EngineRefused, tell_network_trouble
from aftercall.sockets.mailbox import Gone

MOST_UNSENT = 32_768  # bytes on our side; the system's own buffers come on top
OPEN_WITHIN_S = 4.0
CLOSE_WITHIN_S = 1.0
_REFUSALS = frozenset({400, 401, 402, 403, 404})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class EngineSocket:
    def __init__(self, connection: LeanConnection, name: str) -> None:
        self._connection = connection
        self._name = name

    @classmethod
    async def open(cls, url: str, headers: Mapping[str, str], name: str) -> Self:
        try:
            connection = await connect(
                url,
                additional_headers=headers,
                compression=None,  # voice does not shrink, and each call would pay for trying
                max_size=LARGEST_MESSAGE,
                open_timeout=OPEN_WITHIN_S,
                close_timeout=CLOSE_WITHIN_S,
                create_connection=LeanConnection,
                proxy=None if urlsplit(url).hostname in _LOOPBACK else True,
            )
        except InvalidStatus as error:
            status = error.response.status_code
            kind = EngineRefused if status in _REFUSALS else EngineLost
            raise kind(f"{name} answered {status} at the door; check its key and address") from None
        except InvalidURI:
            raise EngineRefused(f"{name}: its address is not that of a websocket") from None
        except (OSError, TimeoutError, InvalidHandshake) as error:
            raise EngineLost(f"{name} cannot be reached ({tell_network_trouble(error)})") from None
        return cls(cast(LeanConnection, connection), name)

    @property
    def has_room(self) -> bool:
        return self.unsent < MOST_UNSENT

    @property
    def unsent(self) -> int:
        """Bytes that the engine has not taken yet."""
        return self._connection.transport.get_write_buffer_size()

    async def receive(self) -> str | bytes:
        try:
            return await self._connection.take()
        except Gone:
            raise EngineLost(f"{self._name} closed the socket") from None

    def divert(self, take: Callable[[str | bytes], bool]) -> None:
        self._connection.divert(take)

    def put(self, message: str | bytes) -> None:
        """Sent at once; a slow engine is for the sender to mind."""
        try:
            self._connection.put(message)
        except (Gone, OSError):
            raise EngineLost(f"{self._name} closed the socket") from None

    async def send(self, message: str | bytes) -> None:
        self.put(message)

    async def send_json(self, message: Mapping[str, Any]) -> None:
        await self.send(json.dumps(message))

    async def close(self) -> None:
        """Say goodbye; an engine that does not answer is left, not waited for."""
        try:
            async with asyncio.timeout(2 * CLOSE_WITHIN_S):
                await self._connection.close()
        except TimeoutError:
            self._connection.transport.abort()

    def abort(self) -> None:
        self._connection.transport.abort()


def parse_message(raw: str | bytes) -> dict[str, Any]:
    """A JSON object with a `type`; anything else is one without meaning, for engines learn new words."""
    try:
        message = json.loads(raw)
    except (ValueError, RecursionError):
        return {"type": ""}
    return message if isinstance(message, dict) and isinstance(message.get("type"), str) else {"type": ""}


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""
