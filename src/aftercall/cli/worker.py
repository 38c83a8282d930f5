"""`aftercall worker`."""

import asyncio
import signal

import typer

from aftercall.cli.stage import stage_of
from aftercall.log import configure_logs


def worker(
    context: typer.Context,
    log_json: bool = typer.Option(False, "--log-json", help="Logs as JSON lines."),
) -> None:
    """Do what comes after calls, without answering any: a second machine on the same Postgres and home folder shares the work."""
    from aftercall.running import running  # noqa: PLC0415 - the durable engine takes its time to load

    stage = stage_of(context)
    configure_logs(level="info", as_json=log_json)
    stage.log_warnings()

    async def work() -> None:
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        with stage.app() as app:
            async with running(app):
                stage.console.print(f"Aftercall works  (home {app.settings.home}; stop with Ctrl-C)")
                await stopped.wait()

    asyncio.run(work())
