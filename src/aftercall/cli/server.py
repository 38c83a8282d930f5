"""`aftercall serve`, `worker` and `token`."""

import asyncio
import ctypes
import gc
import os
import signal
import sys
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer
from rich.console import Console

from aftercall import telemetry
from aftercall.cli.context import JSON_OPTION, get_cli_context, print_outcome
from aftercall.log import get_logger
from aftercall.running import read_gauges

if TYPE_CHECKING:
    from aftercall.app import App

# A tenth of Python's default: worker threads yield to the audio sooner.
THREAD_SWITCH_INTERVAL_S = 0.0005
# Of glibc's malloc.h: M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, the last two as it begins.
MALLOC_OPTIONS = ((-8, 2), (-3, 128 * 1024), (-1, 128 * 1024))
STOP_TIMEOUT_S = 9.0  # after the calls have ended
EXIT_TIMEOUT_S = 1.0  # after all is closed
DEFAULT_ADDRESS = "http://127.0.0.1:8080"
ADDRESS_FILE = "run/address"  # of the server that was last started in this home
_LOG_JSON = typer.Option(False, "--log-json", help="Logs as JSON lines.")


def serve(
    context: typer.Context,
    host: str = typer.Option(
        "127.0.0.1",
        help="Address to listen on; 0.0.0.0 for all of this machine.",
    ),
    port: int = typer.Option(
        8080, min=0, max=65535, help="Port to listen on; 0 takes a free one."
    ),
    log_json: bool = _LOG_JSON,
) -> None:
    """Answer calls, do the work after them, and serve API and pages."""
    limit_malloc()  # before most is loaded: a large block stays where it was made
    from aftercall.encryption import find_api_token
    from aftercall.speech.kit import find_missing

    # Only `serve` needs the web server: `worker` starts without it.
    from aftercall.web.server import make_server
    from aftercall.web.uvicorn_server import make_uvicorn_server, open_listening_socket

    cli = get_cli_context(context)
    cli.configure_service_logs(as_json=log_json)
    sys.setswitchinterval(THREAD_SWITCH_INTERVAL_S)
    with open_listening_socket(host, port) as listening, cli.open_app() as app:
        if app.settings.receptionist.speech and (missing := find_missing()):
            get_logger("serve").warning(
                "receptionist.speech is set, but the receptionist speaks through the carrier",
                reason=missing,
            )
        address = f"http://{host}:{listening.getsockname()[1]}"
        is_token_new = find_api_token(app.settings) is None

        def announce() -> None:
            """Not before calls can be answered: a program that reads this line may ring."""
            freeze_loaded_objects()
            (app.settings.home / ADDRESS_FILE).write_text(address)
            cli.console.print(
                f"Aftercall listens on {address}  (home {app.settings.home}; stop with Ctrl-C)"
            )
            _print_access(cli.console, app, address, shows_token=is_token_new)

        server = make_uvicorn_server(
            make_server(app, cli.config),
            announce,
            app.settings.trusted_proxies,
            on_stopping=partial(limit_exit, STOP_TIMEOUT_S),
        )
        server.run(sockets=[listening])
    limit_exit()


def limit_exit(timeout_s: float = EXIT_TIMEOUT_S) -> None:
    """The process ends in this time, whatever happens: words are on disk since they were said.

    While the database is away, the durable engine repeats a query in a thread, without end; one
    that hangs answers nothing. Python waits for its threads.
    """
    alarm = threading.Timer(timeout_s, os._exit, [0])
    alarm.daemon = True
    alarm.start()


def limit_malloc() -> None:
    """glibc gives every thread a heap of its own, and each keeps what it once needed. After a
    large block it also raises its thresholds, and returns less and less to the system.
    """
    with suppress(OSError, AttributeError):  # another C library
        for option, value in MALLOC_OPTIONS:
            ctypes.CDLL(None).mallopt(option, value)


def _print_access(
    console: Console, app: "App", address: str, *, shows_token: bool
) -> None:
    """A link to log in with, and the token if it was made now.

    Where the operator sets the token, output goes into logs that others may read.
    """
    from aftercall.encryption import load_api_token

    if app.settings.api_token and not console.is_terminal:
        console.print("Log in: `aftercall token --link` prints a link")
        return
    token = load_api_token(app.settings)
    console.print(f"Log in, once: {make_login_link(app, address)}")
    if shows_token:
        console.print(
            f"API token, made now: {token.get_secret_value()}  (`aftercall token` shows it)"
        )


def token(
    context: typer.Context,
    link: bool = typer.Option(
        False, "--link", help="Print a link that logs a browser in, once."
    ),
    port: int = typer.Option(
        0, max=65535, help="Port for the link; else that of the last server here."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Show the API token; make one if there is none."""
    from aftercall.encryption import load_api_token

    cli = get_cli_context(context)
    if link:
        written = cli.config.settings.home / ADDRESS_FILE
        address = f"http://127.0.0.1:{port}" if port else DEFAULT_ADDRESS
        if not port and written.exists():
            address = written.read_text()
        with cli.open_app() as app:
            name = "link"
            shown = make_login_link(app, address)
    else:
        api_token = load_api_token(cli.config.settings)
        name = "token"
        shown = api_token.get_secret_value()
    print_outcome({name: shown}, shown, json)


def make_login_link(app: "App", address: str) -> str:
    """Over https if there is a public address: only there a browser keeps the cookie."""
    from aftercall.web.users import SessionStore

    public = app.settings.public_url or ""
    parts = urlsplit(public if public.startswith("https:") else address)
    host = parts.netloc.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - every address is no name
    code = SessionStore(app.database, app.settings, app.clock).make_link()
    return f"{parts.scheme}://{host}/login?code={code}"


def worker(
    context: typer.Context,
    metrics_host: str = typer.Option("127.0.0.1", help="Address for its metrics."),
    metrics_port: int = typer.Option(
        0, min=0, max=65535, help="Port to serve its metrics on; none if unset."
    ),
    log_json: bool = _LOG_JSON,
) -> None:
    """Do the work after calls without answering any: a second machine on the same Postgres
    shares the work.
    """
    limit_malloc()
    from aftercall.running import running

    cli = get_cli_context(context)
    cli.configure_service_logs(as_json=log_json)

    async def work() -> None:
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        with cli.open_app() as app:
            async with running(app):
                if metrics_port:
                    gauges = partial(read_gauges, app)
                    telemetry.start().listen(metrics_host, metrics_port, gauges)
                cli.console.print(
                    f"Aftercall works  (home {app.settings.home}; stop with Ctrl-C)"
                )
                await stopped.wait()
                limit_exit(STOP_TIMEOUT_S)

    asyncio.run(work())
    limit_exit()


def freeze_loaded_objects() -> None:
    """Exempts everything loaded so far from garbage collection: a full collection would stop
    the audio for a quarter of a second.
    """
    gc.collect()
    gc.freeze()
