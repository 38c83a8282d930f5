"""`aftercall serve`."""

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

from aftercall.cli.stage import stage_of
from aftercall.errors import ConfigError
from aftercall.log import configure_logs, get_logger
from aftercall.speech.organs import find_missing

LARGEST_FRAME = 1_048_576
SWITCH_S = 0.0005  # work in threads gives way to the audio ten times sooner than Python's own 5 ms


def serve(
    context: typer.Context,
    host: str = typer.Option("127.0.0.1", help="Address to listen on; other than loopback needs AFTERCALL_API_TOKEN."),
    port: int = typer.Option(8080, min=0, max=65535, help="Port to listen on; 0 takes a free one."),
    log_json: bool = typer.Option(False, "--log-json", help="Logs as JSON lines."),
) -> None:
    """Answer calls, take finished ones, do what comes after them, and serve the API."""
    from aftercall.web.server import make_server  # noqa: PLC0415 - other commands need no web server to load

    stage = stage_of(context)
    configure_logs(level="info", as_json=log_json)
    stage.log_warnings()
    if stage.loaded.settings.api_token is None and not _is_loopback(host):
        raise ConfigError(f"serve: {host} is open to others; set AFTERCALL_API_TOKEN, or listen on 127.0.0.1")
    sys.setswitchinterval(SWITCH_S)
    with listen(host, port) as listening, stage.app() as app:
        if app.settings.receptionist.speech and (missing := find_missing()):
            get_logger("serve").warning("receptionist.speech is set, but the receptionist speaks through the carrier", reason=missing)
        bound = listening.getsockname()[1]
        stage.console.print(f"Aftercall listens on http://{host}:{bound}  (home {app.settings.home}; stop with Ctrl-C)")
        stopping_server(make_server(app, stage.loaded), settle_memory).run(sockets=[listening])


def settle_memory() -> None:
    """What was loaded to stay is not looked through for garbage any more: a quarter of a second in which nobody would hear anything."""
    gc.collect()
    gc.freeze()


def stopping_server(app: Any, once_up: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """A server for an ASGI app, which stops when it is told to."""
    from aftercall.web.lean import LeanSocket  # noqa: PLC0415 - other commands need no web server to load

    config = uvicorn.Config(app, ws=LeanSocket, log_config=None, access_log=False)
    config.ws_per_message_deflate, config.ws_max_size = False, LARGEST_FRAME  # voice does not shrink, and its frames are small
    return _Server(config, once_up)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, once_up: Callable[[], None]) -> None:
        super().__init__(config)
        self._once_up = once_up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._once_up()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let go of the pages that look on first: they would keep the server from stopping."""
        if feed := getattr(getattr(self.config.app, "state", None), "feed", None):
            feed.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop when told to, and return: uvicorn's own way ends the process before we have tidied up."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
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


def listen(host: str, port: int) -> socket.socket:
    """Listening before anything else starts: a port in use is said at once, port 0 is known, and early callers wait."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError as error:
        raise ConfigError(f"serve: cannot listen on {host}:{port} ({error.strerror or error}); choose another --port") from None
    return listening
