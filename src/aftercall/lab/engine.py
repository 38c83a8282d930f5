"""What the emulated engines have in common: a door that checks the key, visits that are kept
for tests to look at, a script.

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

from aftercall.lab.peer import AsgiPeer, Peer, PeerLeft, SocketPeer
from aftercall.lab.script import EngineBehaviour, Script
from aftercall.lab.speech import ToneDetector

CHUNK_BYTES = 800  # bytes of audio in one message: 100 ms
INVALID_CREDENTIALS = "invalid credentials\n"


@dataclass
class EngineCall:
    """One connection as the engine lived it: for tests to look at."""

    settings: dict[str, Any] = field(default_factory=dict, repr=False)
    heard: list[str] = field(default_factory=list, repr=False)
    said: list[str] = field(default_factory=list, repr=False)
    tool_results: list[tuple[str, str]] = field(default_factory=list, repr=False)
    truncations: list[tuple[str, int]] = field(default_factory=list)
    error_codes: list[str] = field(default_factory=list)
    keep_alives: int = 0
    is_over: bool = False


class EngineConnection(ABC):
    """One connection while it lasts: who has come, what they are told, and what is written down
    of it.
    """

    def __init__(
        self, peer: Peer, call: EngineCall, behaviour: EngineBehaviour, script: Script
    ) -> None:
        self._peer = peer
        self._call = call
        self._behaviour = behaviour
        self._reply_to = script
        self._detector = ToneDetector()
        self._reply_task = ReplyTask()

    @abstractmethod
    async def run(self) -> None:
        """From the first word to the last; ends with Left."""

    async def receive(self) -> str | bytes:
        return await self._peer.receive()

    async def send_json(self, **message: Any) -> None:
        await self._peer.send(json.dumps(message))

    def stop_reply(self) -> None:
        self._reply_task.stop()


class EmulatedEngine(ABC):
    path: str
    scheme: str

    def __init__(
        self,
        key: str,
        script: Script,
        *,
        behaviours: tuple[EngineBehaviour, ...] = (),
        port: int = 0,
    ) -> None:
        """`moods` are those of the first connections, in order; later ones are fine.

        A changed `key` refuses whoever comes next.
        """
        self.behaviours = deque(behaviours)
        self.calls: list[EngineCall] = []
        self.key = key
        self._script = script
        self._port = port
        self._server: Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            self._port,
            process_request=self._check,
            compression=None,
            ping_interval=None,
            close_timeout=0.5,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        return WebSocketRoute(self.path, self._accept)

    @abstractmethod
    def _make_connection(
        self, peer: Peer, call: EngineCall, behaviour: EngineBehaviour, script: Script
    ) -> EngineConnection: ...

    def _is_authorized(self, authorization: str) -> bool:
        return secrets.compare_digest(authorization.encode(), f"{self.scheme} {self.key}".encode())

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path.partition("?")[0] != self.path:
            return connection.respond(HTTPStatus.NOT_FOUND, "no such path\n")
        if not self._is_authorized(request.headers.get("Authorization", "")):
            return connection.respond(HTTPStatus.UNAUTHORIZED, INVALID_CREDENTIALS)
        return None

    async def _serve(self, connection: ServerConnection) -> None:
        await self._run_connection(SocketPeer(connection))

    async def _accept(self, socket: WebSocket) -> None:
        if not self._is_authorized(socket.headers.get("authorization", "")):
            await socket.send_denial_response(
                PlainTextResponse(INVALID_CREDENTIALS, HTTPStatus.UNAUTHORIZED)
            )
            return
        await socket.accept()
        await self._run_connection(AsgiPeer(socket))

    async def _run_connection(self, peer: Peer) -> None:
        call = EngineCall()
        self.calls.append(call)
        mood = self.behaviours.popleft() if self.behaviours else EngineBehaviour.FINE
        try:
            with suppress(PeerLeft):
                if mood is EngineBehaviour.MUTE:
                    while True:
                        await peer.receive()
                visit = self._make_connection(peer, call, mood, self._script)
                try:
                    await visit.run()
                finally:
                    visit.stop_reply()
        finally:
            call.is_over = True


class ReplyTask:
    """Does one thing at a time on a connection; beginning something else breaks off what went
    on.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self, work: Any) -> None:
        self.stop()
        self._task = asyncio.ensure_future(_quietly(work))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None


async def _quietly(work: Any) -> None:
    with suppress(PeerLeft):
        await work
