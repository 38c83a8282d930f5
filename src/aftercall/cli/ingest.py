"""`aftercall ingest`."""

import asyncio
import sys
from pathlib import Path

import typer

from aftercall.app import App
from aftercall.cli.calls import print_steps, wait_for_steps
from aftercall.cli.context import get_cli_context, print_json
from aftercall.errors import NotFound, RefusedInput
from aftercall.journal.record import ingest_json
from aftercall.model.steps import Step
from aftercall.postcall.view import steps_json


def ingest(
    context: typer.Context,
    file: str = typer.Argument(
        metavar="FILE", help="A finished call as JSON; `-` reads standard input."
    ),
    wait: bool = typer.Option(
        False,
        "--wait",
        help="Also wait for the steps after the call; they run here if nobody else runs them.",
    ),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """Seal a call that finished elsewhere. The same source and sid twice is the same call."""
    stage = get_cli_context(context)
    raw = read_file(file)
    steps: list[Step] = []
    with stage.open_app() as app:
        try:
            row, is_new = ingest_json(app.journal, raw)
        except RefusedInput as error:
            raise RefusedInput(f"{file}: {error.field}", error.reason) from None
        if wait:
            steps = _wait_for_call_steps(app, row.live.id)
    if json:
        print_json(
            {"id": row.live.id, "new": is_new, "archive": row.archive_name}
            | ({"steps": steps_json(steps)} if wait else {})
        )
    else:
        typer.echo(
            f"{row.live.id}  "
            + (f"sealed as {row.archive_name}" if is_new else "known already; nothing changed")
        )
        print_steps(stage.console, steps)
    if any(step.state == "failed" for step in steps):
        raise typer.Exit(1)


def _wait_for_call_steps(app: App, call_id: str) -> list[Step]:
    from aftercall.running import running

    async def work() -> list[Step]:
        async with running(app):
            return await wait_for_steps(app, call_id)

    return asyncio.run(work())


def read_file(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise NotFound(f"{file}: {error.strerror or error}") from None
