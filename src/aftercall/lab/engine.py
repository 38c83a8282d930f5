"""The core of the emulated voice engines: checks the key, runs each connection by a script, and
records what happened for tests. The script says what the agent answers.

An engine serves a loopback port (`async with`) or a route of another server.
"""

import asyncio
import json
import secrets
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from types import TracebackType
from typing import Any, Protocol, Self

from starlette.responses import PlainTextResponse
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from aftercall.lab.speech import ToneBegan, ToneDetector
from aftercall.model.json_fields import Json

CHUNK_BYTES = 800  # of audio in one message: 100 ms
INTERNAL_ERROR = 1011
INVALID_CREDENTIALS = "invalid credentials\n"


class EngineBehaviour(StrEnum):
    """How an emulated engine treats one connection."""

    FINE = "as documented"
    MUTE = "accepts the socket and sends nothing"
    DEAF = "accepts the settings and sends nothing after that"
    STRICT = "refuses typed words in the caller's place"
    LATE = "transcribes the caller after the answer"


@dataclass(frozen=True)
class ScriptSay:
    text: str


@dataclass(frozen=True)
class ScriptToolCall:
    """Calls a tool and continues after its answer."""

    tool: str
    arguments: Json = field(default_factory=dict)


@dataclass(frozen=True)
class ScriptDrop:
    """Cuts the connection like a server that crashes."""


@dataclass(frozen=True)
class ScriptSilence:
    """Says nothing more."""


Act = ScriptSay | ScriptToolCall | ScriptDrop | ScriptSilence
Reply = str | Act | Sequence[Act]
Script = Callable[[str], Reply]


def reply_in_order(*replies: Reply, then: Reply = "Anything else?") -> Script:
    """Gives these replies one after the other, whatever is heard."""
    waiting = list(replies)
    return lambda heard: waiting.pop(0) if waiting else then


def to_acts(reply: Reply) -> Sequence[Act]:
    if isinstance(reply, str):
        return (ScriptSay(reply),)
    return (reply,) if isinstance(reply, Act) else reply


class PeerLeft(Exception):
    """The client is gone, and every message it sent has been read."""


class Peer(Protocol):
    """The client of an engine, on either kind of server. Methods raise PeerLeft."""

    async def receive(self) -> str | bytes: ...

    async def send(self, message: str | bytes) -> None: ...

    async def close(self, code: int) -> None: ...

    def abort(self) -> None:
        """Cuts the connection like a server that crashes."""
        ...


class SocketPeer:
    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    async def receive(self) -> str | bytes:
        try:
            return await self._connection.recv()
        except ConnectionClosed:
            raise PeerLeft from None

    async def send(self, message: str | bytes) -> None:
        try:
            await self._connection.send(message)
        except ConnectionClosed:
            raise PeerLeft from None

    async def close(self, code: int) -> None:
        await self._connection.close(code)

    def abort(self) -> None:
        self._connection.transport.abort()


class AsgiPeer:
    """ASGI gives no access to the transport: a crash is a close with its code."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._closing: asyncio.Task[None] | None = None

    async def receive(self) -> str | bytes:
        message = await self._socket.receive()
        if message["type"] != "websocket.receive":
            raise PeerLeft
        text: str | None = message.get("text")
        data: bytes | None = message.get("bytes")
        return text if text is not None else data or b""

    async def send(self, message: str | bytes) -> None:
        kind = "text" if isinstance(message, str) else "bytes"
        try:
            await self._socket.send({"type": "websocket.send", kind: message})
        except (OSError, RuntimeError, WebSocketDisconnect):
            raise PeerLeft from None

    async def close(self, code: int) -> None:
        with suppress(OSError, RuntimeError, WebSocketDisconnect):
            await self._socket.close(code)

    def abort(self) -> None:
        self._closing = asyncio.ensure_future(self.close(INTERNAL_ERROR))


@dataclass
class EngineCall:
    """One connection, for tests to look at."""

    settings: Json = field(default_factory=dict, repr=False)
    heard: list[str] = field(default_factory=list, repr=False)
    said: list[str] = field(default_factory=list, repr=False)
    tool_results: list[tuple[str, str]] = field(default_factory=list, repr=False)
    truncations: list[tuple[str, int]] = field(default_factory=list)
    error_codes: list[str] = field(default_factory=list)
    keep_alives: int = 0
    is_over: bool = False


class ReplyTask:
    """Runs one reply at a time; a new one cancels the last."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self, reply: Coroutine[Any, Any, None]) -> None:
        self.stop()
        self._task = asyncio.ensure_future(_until_peer_leaves(reply))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None


async def _until_peer_leaves(reply: Coroutine[Any, Any, None]) -> None:
    with suppress(PeerLeft):
        await reply


class EngineConnection(ABC):
    """Serves one client: what it hears, what it sends, and the reply under way."""

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
        """Ends with PeerLeft."""

    @abstractmethod
    async def on_speech_started(self) -> None: ...

    @abstractmethod
    async def on_words(self, text: str) -> None: ...

    @property
    def speaks(self) -> bool:
        return self._behaviour not in (EngineBehaviour.MUTE, EngineBehaviour.DEAF)

    async def receive_audio(self, audio: bytes) -> None:
        for sound in self._detector.detect(audio):
            if isinstance(sound, ToneBegan):
                await self.on_speech_started()
            else:
                await self.on_words(sound.text)

    async def send_json(self, **message: Any) -> None:
        await self._peer.send(json.dumps(message))

    def stop_reply(self) -> None:
        self._reply_task.stop()


class EmulatedEngine:
    """Serves the clients of one emulated voice engine, each by its script."""

    path: str
    scheme: str
    connection_type: type[EngineConnection]

    def __init__(
        self,
        key: str,
        script: Script,
        *,
        behaviours: tuple[EngineBehaviour, ...] = (),
        port: int = 0,
    ) -> None:
        """`behaviours` are those of the first connections, in order; later ones are fine.

        Change `key` to refuse the next client.
        """
        self.behaviours = deque(behaviours)
        self.calls: list[EngineCall] = []
        self.key = key
        self._script = script
        self._port = port
        self._server: Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await serve(
            lambda connection: self._run_connection(SocketPeer(connection)),
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

    def _is_authorized(self, authorization: str) -> bool:
        return secrets.compare_digest(
            authorization.encode(), f"{self.scheme} {self.key}".encode()
        )

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path.partition("?")[0] != self.path:
            return connection.respond(HTTPStatus.NOT_FOUND, "no such path\n")
        if not self._is_authorized(request.headers.get("Authorization", "")):
            return connection.respond(HTTPStatus.UNAUTHORIZED, INVALID_CREDENTIALS)
        return None

    async def _accept(self, socket: WebSocket) -> None:
        if not self._is_authorized(socket.headers.get("authorization", "")):
            refusal = PlainTextResponse(INVALID_CREDENTIALS, HTTPStatus.UNAUTHORIZED)
            await socket.send_denial_response(refusal)
            return
        await socket.accept()
        await self._run_connection(AsgiPeer(socket))

    async def _run_connection(self, peer: Peer) -> None:
        call = EngineCall()
        self.calls.append(call)
        behaviour = (
            self.behaviours.popleft() if self.behaviours else EngineBehaviour.FINE
        )
        connection = self.connection_type(peer, call, behaviour, self._script)
        try:
            with suppress(PeerLeft):
                while behaviour is EngineBehaviour.MUTE:
                    await peer.receive()
                await connection.run()
        finally:
            connection.stop_reply()
            call.is_over = True
