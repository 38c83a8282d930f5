"""What the emulated engines have in common: a loopback server that checks the key, keeps its sessions, and follows a script."""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from aftercall.lab.script import Mood, Script

CHUNK = 800  # bytes of audio in one message: 100 ms


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


class EmulatedEngine(ABC):
    path: str

    def __init__(self, key: str, script: Script, *, moods: tuple[Mood, ...] = (), port: int = 0) -> None:
        """`moods` are those of the first connections, in order; later ones are fine."""
        self._key = key
        self._script = script
        self._moods = deque(moods)
        self._port = port
        self._server: Server | None = None
        self.calls: list[EngineCall] = []

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

    @abstractmethod
    def _knows(self, authorization: str) -> bool: ...

    @abstractmethod
    async def _hold(self, connection: ServerConnection, call: EngineCall, mood: Mood) -> None: ...

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path.partition("?")[0] != self.path:
            return connection.respond(HTTPStatus.NOT_FOUND, "no such path\n")
        if not self._knows(request.headers.get("Authorization", "")):
            return connection.respond(HTTPStatus.UNAUTHORIZED, "invalid credentials\n")
        return None

    async def _serve(self, connection: ServerConnection) -> None:
        call = EngineCall()
        self.calls.append(call)
        mood = self._moods.popleft() if self._moods else Mood.FINE
        try:
            if mood is Mood.MUTE:
                await connection.wait_closed()
            else:
                with suppress(ConnectionClosed):
                    await self._hold(connection, call, mood)
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
    with suppress(ConnectionClosed):
        await work
