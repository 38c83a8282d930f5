"""What the emulated engines have in common: a door that checks the key, visits that are kept for tests to look at, a script.

An engine stands on a loopback port of its own (`async with`), or as a route of another server.
"""

import asyncio
import json
import secrets
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from starlette.responses import PlainTextResponse
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from aftercall.lab.peer import AsgiPeer, Left, Peer, SocketPeer
from aftercall.lab.script import Mood, Script
from aftercall.lab.speech import Ear

CHUNK = 800  # bytes of audio in one message: 100 ms
TURNED_AWAY = "invalid credentials\n"


@dataclass
class EngineCall:
    """One connection as the engine lived it: for tests to look at."""

    opening: dict[str, Any] = field(default_factory=dict, repr=False)
    heard: list[str] = field(default_factory=list, repr=False)
    said: list[str] = field(default_factory=list, repr=False)
    answers: list[tuple[str, str]] = field(default_factory=list, repr=False)
    cuts: list[tuple[str, int]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    keep_alives: int = 0
    is_over: bool = False


class Visit(ABC):
    """One connection while it lasts: who has come, what they are told, and what is written down of it."""

    def __init__(self, peer: Peer, call: EngineCall, mood: Mood, script: Script) -> None:
        self._peer = peer
        self._call = call
        self._mood = mood
        self._reply_to = script
        self._ear = Ear()
        self._tongue = Tongue()

    @abstractmethod
    async def hold(self) -> None:
        """From the first word to the last; ends with Left."""

    async def receive(self) -> str | bytes:
        return await self._peer.receive()

    async def tell(self, **message: Any) -> None:
        await self._peer.send(json.dumps(message))

    def fall_silent(self) -> None:
        self._tongue.stop()


class EmulatedEngine(ABC):
    path: str
    scheme: str

    def __init__(self, key: str, script: Script, *, moods: tuple[Mood, ...] = (), port: int = 0) -> None:
        """`moods` are those of the first connections, in order; later ones are fine. A changed `key` refuses whoever comes next."""
        self.moods = deque(moods)
        self.calls: list[EngineCall] = []
        self.key = key
        self._script = script
        self._port = port
        self._server: Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await serve(
            self._serve, "127.0.0.1", self._port, process_request=self._check, compression=None, ping_interval=None, close_timeout=0.5
        )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @property
    def address(self) -> str:
        """Host and port."""
        if self._server is None:
            raise RuntimeError("the engine is not running")
        host, port = next(iter(self._server.sockets)).getsockname()[:2]
        return f"{host}:{port}"

    def make_route(self) -> WebSocketRoute:
        return WebSocketRoute(self.path, self._take)

    @abstractmethod
    def _begin(self, peer: Peer, call: EngineCall, mood: Mood, script: Script) -> Visit: ...

    def _knows(self, authorization: str) -> bool:
        return secrets.compare_digest(authorization.encode(), f"{self.scheme} {self.key}".encode())

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path.partition("?")[0] != self.path:
            return connection.respond(HTTPStatus.NOT_FOUND, "no such path\n")
        if not self._knows(request.headers.get("Authorization", "")):
            return connection.respond(HTTPStatus.UNAUTHORIZED, TURNED_AWAY)
        return None

    async def _serve(self, connection: ServerConnection) -> None:
        await self._receive(SocketPeer(connection))

    async def _take(self, socket: WebSocket) -> None:
        if not self._knows(socket.headers.get("authorization", "")):
            await socket.send_denial_response(PlainTextResponse(TURNED_AWAY, HTTPStatus.UNAUTHORIZED))
            return
        await socket.accept()
        await self._receive(AsgiPeer(socket))

    async def _receive(self, peer: Peer) -> None:
        call = EngineCall()
        self.calls.append(call)
        mood = self.moods.popleft() if self.moods else Mood.FINE
        try:
            with suppress(Left):
                if mood is Mood.MUTE:
                    while True:
                        await peer.receive()
                visit = self._begin(peer, call, mood, self._script)
                try:
                    await visit.hold()
                finally:
                    visit.fall_silent()
        finally:
            call.is_over = True


class Tongue:
    """Does one thing at a time on a connection; beginning something else breaks off what went on."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def begin(self, work: Any) -> None:
        self.stop()
        self._task = asyncio.ensure_future(_quietly(work))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None


async def _quietly(work: Any) -> None:
    with suppress(Left):
        await work
