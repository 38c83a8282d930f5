"""`aftercall serve`."""

import asyncio
import gc
import ipaddress
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
import uvicorn

from aftercall.cli.context import get_cli_context
from aftercall.errors import ConfigError
from aftercall.log import configure_logs, get_logger
from aftercall.speech.kit import find_missing

MAX_FRAME_BYTES = 1_048_576
THREAD_SWITCH_INTERVAL_S = (
    0.0005  # work in threads gives way to the audio ten times sooner than Python's own 5 ms
)


def serve(
    context: typer.Context,
    host: str = typer.Option(
        "127.0.0.1", help="Address to listen on; other than loopback needs AFTERCALL_API_TOKEN."
    ),
    port: int = typer.Option(8080, min=0, max=65535, help="Port to listen on; 0 takes a free one."),
    log_json: bool = typer.Option(False, "--log-json", help="Logs as JSON lines."),
) -> None:
    """Answer calls, take finished ones, do what comes after them, and serve the API."""
    from aftercall.web.server import make_server

    stage = get_cli_context(context)
    configure_logs(level="info", as_json=log_json)
    stage.log_warnings()
    if stage.config.settings.api_token is None and not _is_loopback(host):
        raise ConfigError(
            f"serve: {host} is open to others; set AFTERCALL_API_TOKEN, or listen on 127.0.0.1"
        )
    sys.setswitchinterval(THREAD_SWITCH_INTERVAL_S)
    with open_listening_socket(host, port) as listening, stage.open_app() as app:
        if app.settings.receptionist.speech and (missing := find_missing()):
            get_logger("serve").warning(
                "receptionist.speech is set, but the receptionist speaks through the carrier",
                reason=missing,
            )
        bound = listening.getsockname()[1]
        stage.console.print(
            f"Aftercall listens on http://{host}:{bound}  (home {app.settings.home}; stop "
            "with Ctrl-C)"
        )
        make_uvicorn_server(make_server(app, stage.config), freeze_loaded_objects).run(
            sockets=[listening]
        )


def freeze_loaded_objects() -> None:
    """What was loaded to stay is not looked through for garbage any more: a quarter of a second
    in which nobody would hear anything.
    """
    gc.collect()
    gc.freeze()


def make_uvicorn_server(app: Any, once_up: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """A server for an ASGI app, which stops when it is told to."""
    from aftercall.sockets.server import FastWebSocket

    config = uvicorn.Config(app, ws=FastWebSocket, log_config=None, access_log=False)
    config.ws_per_message_deflate, config.ws_max_size = (
        False,
        MAX_FRAME_BYTES,
    )  # voice does not shrink, and its frames are small
    return _UvicornServer(config, once_up)


class _UvicornServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let go of the pages that look on first: they would keep the server from stopping."""
        if feed := getattr(getattr(self.config.app, "state", None), "feed", None):
            feed.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop when told to, and return: uvicorn's own way ends the process before we have
        tidied up.
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


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Listening before anything else starts: a port in use is said at once, port 0 is known,
    and early callers wait.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError as error:
        raise ConfigError(
            f"serve: cannot listen on {host}:{port} ({error.strerror or error}); choose "
            "another --port"
        ) from None
    return listening


def worker(
    context: typer.Context,
    log_json: bool = typer.Option(False, "--log-json", help="Logs as JSON lines."),
) -> None:
    """Do what comes after calls, without answering any: a second machine on the same Postgres
    and home folder shares the work.
    """
    from aftercall.running import running

    stage = get_cli_context(context)
    configure_logs(level="info", as_json=log_json)
    stage.log_warnings()

    async def work() -> None:
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        with stage.open_app() as app:
            async with running(app):
                stage.console.print(
                    f"Aftercall works  (home {app.settings.home}; stop with Ctrl-C)"
                )
                await stopped.wait()

    asyncio.run(work())
