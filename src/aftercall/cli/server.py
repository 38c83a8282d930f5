"""`aftercall serve` and `worker`."""

import asyncio
import gc
import ipaddress
import signal
import sys

import typer

from aftercall.cli.context import get_cli_context
from aftercall.errors import ConfigError
from aftercall.log import get_logger
from aftercall.running import running
from aftercall.speech.kit import find_missing

# A tenth of Python's default: worker threads yield to the audio sooner.
THREAD_SWITCH_INTERVAL_S = 0.0005
_LOG_JSON = typer.Option(False, "--log-json", help="Logs as JSON lines.")


def serve(
    context: typer.Context,
    host: str = typer.Option(
        "127.0.0.1",
        help="Address to listen on; other than loopback needs AFTERCALL_API_TOKEN.",
    ),
    port: int = typer.Option(
        8080, min=0, max=65535, help="Port to listen on; 0 takes a free one."
    ),
    log_json: bool = _LOG_JSON,
) -> None:
    """Answer calls, do the work after them, and serve API and pages."""
    # Only `serve` needs the web server: `worker` starts without it.
    from aftercall.web.server import make_server
    from aftercall.web.uvicorn_server import make_uvicorn_server, open_listening_socket

    cli = get_cli_context(context)
    cli.configure_service_logs(as_json=log_json)
    if cli.config.settings.api_token is None and not _is_loopback(host):
        raise ConfigError(
            f"serve: {host} is open to others; set AFTERCALL_API_TOKEN, or listen on 127.0.0.1"
        )
    sys.setswitchinterval(THREAD_SWITCH_INTERVAL_S)
    with open_listening_socket(host, port) as listening, cli.open_app() as app:
        if app.settings.receptionist.speech and (missing := find_missing()):
            get_logger("serve").warning(
                "receptionist.speech is set, but the receptionist speaks through the carrier",
                reason=missing,
            )
        address = f"http://{host}:{listening.getsockname()[1]}"
        cli.console.print(
            f"Aftercall listens on {address}  (home {app.settings.home}; stop with Ctrl-C)"
        )
        server = make_uvicorn_server(
            make_server(app, cli.config), freeze_loaded_objects
        )
        server.run(sockets=[listening])


def worker(context: typer.Context, log_json: bool = _LOG_JSON) -> None:
    """Do the work after calls without answering any: a second machine on the same Postgres and
    home folder shares the work.
    """
    cli = get_cli_context(context)
    cli.configure_service_logs(as_json=log_json)

    async def work() -> None:
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        with cli.open_app() as app:
            async with running(app):
                cli.console.print(
                    f"Aftercall works  (home {app.settings.home}; stop with Ctrl-C)"
                )
                await stopped.wait()

    asyncio.run(work())


def freeze_loaded_objects() -> None:
    """Exempts everything loaded so far from garbage collection: a full collection would stop
    the audio for a quarter of a second.
    """
    gc.collect()
    gc.freeze()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
