"""The uvicorn server that runs an ASGI app: its listening socket, its connections, its signals.

A connection that waits for its sender holds a file descriptor that a call may need. So heads have
a length, heads and bodies have a time, and when all places are taken, the connection that has
waited longest gives its place to the new one. Websockets are not counted: a call's audio is never
dropped here.
"""

import asyncio
import resource
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from aftercall.errors import ConfigError
from aftercall.log import get_logger
from aftercall.sockets.server import FastWebSocket

MAX_FRAME_BYTES = 1_048_576
LISTEN_BACKLOG = 2048
MAX_OPEN_FILES = 65_536
MAX_CONNECTIONS = 4_096
MAX_HEAD_BYTES = 32 * 1024
MAX_HEADERS = 200
MAX_PIPELINED_REQUESTS = 8
HEAD_TIMEOUT_S = 10.0
BODY_TIMEOUT_S = 20.0
MIN_BYTES_PER_S = 256 * 1024  # a long body gets the time it needs at this rate on top
UNREAD_ANSWER_TIMEOUT_S = 60.0

log = get_logger("web")


def make_uvicorn_server(
    app: Any,
    on_started: Callable[[], None] = lambda: None,
    trusted_proxies: Sequence[str] = (),
    on_stopping: Callable[[], None] = lambda: None,
) -> "AftercallUvicorn":
    connections = ConnectionLimit(count_places(raise_open_files_limit()))
    config = uvicorn.Config(
        app,
        http=cast(Any, partial(LimitedHttp, limit=connections)),
        ws=FastWebSocket,
        log_config=None,
        access_log=False,
        # uvicorn would believe everything on this machine
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
    )
    config.ws_per_message_deflate = False  # voice does not compress
    config.ws_max_size = MAX_FRAME_BYTES
    return AftercallUvicorn(config, connections, on_started, on_stopping)


def raise_open_files_limit() -> int:
    """Raises the limit of this process as far as the system allows. Returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = [
        limit for limit in (hard, MAX_OPEN_FILES) if limit != resource.RLIM_INFINITY
    ]
    wanted = max(min(limits), soft)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def count_places(max_open_files: int) -> int:
    """Half of the file descriptors at most: calls, the database and files need the others."""
    return min(MAX_CONNECTIONS, max_open_files // 2)


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Listens before anything else starts: a port in use fails at once, port 0 gets its number,
    and early callers wait in the backlog.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(LISTEN_BACKLOG)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(
            f"serve: cannot listen on {host}:{port} ({reason}); choose another --port"
        ) from None
    return listening


class ConnectionLimit:
    """The HTTP connections of a server, and which of them wait for their sender."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._open: set[LimitedHttp] = set()
        # oldest first, with the time at which the wait ends
        self._waiting: dict[LimitedHttp, float] = {}
        self._dropped = 0

    def add(self, connection: "LimitedHttp") -> bool:
        """False if all places are taken and nobody waits."""
        if len(self._open) >= self._places and not self._drop_oldest():
            self._dropped += 1
            return False
        self._open.add(connection)
        return True

    def remove(self, connection: "LimitedHttp") -> None:
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def start_wait(self, connection: "LimitedHttp", seconds: float) -> None:
        self._waiting[connection] = connection.loop.time() + seconds

    def extend_wait(self, connection: "LimitedHttp", seconds: float) -> None:
        if connection in self._waiting:
            self._waiting[connection] += seconds

    def end_wait(self, connection: "LimitedHttp") -> None:
        self._waiting.pop(connection, None)

    def drop_late(self) -> None:
        """Drops connections whose head or body did not come in time. Logs once for all."""
        now = asyncio.get_running_loop().time()
        late = [connection for connection, end in self._waiting.items() if end < now]
        for connection in late:
            self.remove(connection)
            connection.refuse(HTTPStatus.REQUEST_TIMEOUT)
        if late or self._dropped:
            log.warning("connections dropped", late=len(late), for_room=self._dropped)
        self._dropped = 0

    def drop_waiting(self) -> None:
        """For the end of the server, which waits for all other requests."""
        for connection in list(self._waiting):
            self._drop(connection)

    def _drop_oldest(self) -> bool:
        oldest = next(iter(self._waiting), None)
        if oldest is None:
            return False
        self._drop(oldest)
        self._dropped += 1
        return True

    def _drop(self, connection: "LimitedHttp") -> None:
        self.remove(connection)
        connection.transport.abort()


class LimitedHttp(HttpToolsProtocol):
    """uvicorn's HTTP protocol, with limits on the head and on waiting."""

    def __init__(self, *arguments: Any, limit: ConnectionLimit, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limit = limit
        self._raw_bytes = self._body_bytes = 0  # of this request
        self._first_bytes = 0  # of a request that this piece of data begins with
        self._is_idle = True
        self._is_too_long = False
        self._unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._limit.add(self):
            self._limit.start_wait(self, HEAD_TIMEOUT_S)
        else:
            self.refuse(HTTPStatus.SERVICE_UNAVAILABLE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limit.remove(self)
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._is_idle:
            self._first_bytes = len(data)
        else:
            self._raw_bytes += len(data)
        super().data_received(data)
        # Whatever is not body: the head, what follows the body, and the marks between its pieces.
        if self._raw_bytes > MAX_HEAD_BYTES + 2 * self._body_bytes:
            self._is_too_long = True
            self.send_400_response("")

    def handle_websocket_upgrade(self) -> None:
        self._limit.remove(self)
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """What uvicorn calls for a request that it cannot parse."""
        too_long = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        self.refuse(too_long if self._is_too_long else HTTPStatus.BAD_REQUEST)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._raw_bytes, self._body_bytes, self._first_bytes = self._first_bytes, 0, 0
        self._is_idle = False

    def on_headers_complete(self) -> None:
        """An error here makes the parser give up; uvicorn then answers with 400."""
        self._is_too_long = len(self.headers) > MAX_HEADERS
        if self._raw_bytes > MAX_HEAD_BYTES:  # most of it may be body
            size = sum(len(name) + len(value) for name, value in self.headers)
            self._is_too_long = len(self.url) + size > MAX_HEAD_BYTES
        if self._is_too_long or len(self.pipeline) >= MAX_PIPELINED_REQUESTS:
            raise ValueError("a head is too long, or there are too many")
        self._limit.start_wait(self, BODY_TIMEOUT_S)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        self._limit.extend_wait(self, len(body) / MIN_BYTES_PER_S)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_idle = True
        self._first_bytes = 0
        if self.cycle is not None and self.cycle.response_complete:
            self._limit.start_wait(self, HEAD_TIMEOUT_S)  # refused before it was read
        else:
            self._limit.end_wait(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.timeout_keep_alive_task is not None:  # no request is queued
            self._limit.start_wait(self, HEAD_TIMEOUT_S)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_timer = self.loop.call_later(
            UNREAD_ANSWER_TIMEOUT_S, self.transport.abort
        )

    def resume_writing(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        super().resume_writing()

    def refuse(self, status: HTTPStatus) -> None:
        """Answers, unless an answer was begun, and closes the connection."""
        if self.transport.is_closing():
            return
        is_answered = self.cycle is not None and self.cycle.response_started
        if not is_answered or self.cycle.response_complete:
            self.transport.write(
                f"HTTP/1.1 {status.value} {status.phrase}\r\n"
                "content-type: text/plain; charset=utf-8\r\n"
                f"content-length: {len(status.phrase)}\r\nconnection: close\r\n\r\n"
                f"{status.phrase}".encode()
            )
        self.transport.close()


class AftercallUvicorn(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        connections: ConnectionLimit,
        on_started: Callable[[], None],
        on_stopping: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._connections = connections
        self._on_started = on_started
        self._on_stopping = on_stopping
        self._is_stopping = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:  # as after a start that failed
            self._on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM lets live calls finish first. A second one stops at once, and so does Ctrl-C.

        Only a note is made here: a handler runs between any two instructions, and what it
        interrupted may hold the lock that it would wait for.
        """
        if sig == signal.SIGTERM and not self._is_stopping and self._find("intake"):
            self._is_stopping = True
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if self._is_stopping and (intake := self._find("intake")):
            if intake.is_open:
                intake.close()
            self.should_exit = self.should_exit or intake.is_finished()
        if counter % 10 == 0:  # every second
            self._connections.drop_late()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Closes the live feed first: pages that watch it would keep the server from stopping."""
        self._on_stopping()
        if feed := self._find("feed"):
            feed.close()
        self._connections.drop_waiting()
        await super().shutdown(sockets)

    def _find(self, name: str) -> Any:
        """A part of the app that runs here; None for another app."""
        return getattr(getattr(self.config.app, "state", None), name, None)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stops on a signal and returns; uvicorn raises the signal again, which would end the
        process before the app is closed.
        """
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
