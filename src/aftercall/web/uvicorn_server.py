"""The uvicorn server that runs an ASGI app: its listening socket, its signals, its sockets."""

import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn

from aftercall.errors import ConfigError
from aftercall.sockets.server import FastWebSocket

MAX_FRAME_BYTES = 1_048_576
LISTEN_BACKLOG = 2048


def make_uvicorn_server(
    app: Any,
    on_started: Callable[[], None] = lambda: None,
    trusted_proxies: Sequence[str] = (),
) -> "AftercallUvicorn":
    config = uvicorn.Config(
        app,
        ws=FastWebSocket,
        log_config=None,
        access_log=False,
        # uvicorn would believe everything on this machine
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
    )
    config.ws_per_message_deflate = False  # voice does not compress
    config.ws_max_size = MAX_FRAME_BYTES
    return AftercallUvicorn(config, on_started)


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


class AftercallUvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Closes the live feed first: pages that watch it would keep the server from stopping."""
        if feed := getattr(getattr(self.config.app, "state", None), "feed", None):
            feed.close()
        await super().shutdown(sockets)

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
