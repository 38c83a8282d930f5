"""`aftercall ingest`."""

import sys
from pathlib import Path

import typer

from aftercall.cli.stage import print_json, stage_of
from aftercall.errors import NotFound, RefusedInput
from aftercall.journal.intake import take_in_json


def ingest(
    context: typer.Context,
    file: str = typer.Argument(metavar="FILE", help="A finished call as JSON; `-` reads standard input."),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """Seal a call that finished elsewhere. The same source and sid twice is the same call."""
    raw = read_file(file)
    with stage_of(context).app() as app:
        try:
            row, is_new = take_in_json(app.journal, raw)
        except RefusedInput as error:
            raise RefusedInput(f"{file}: {error.field}", error.reason) from None
    if json:
        print_json({"id": row.live.id, "new": is_new, "archive": row.archive_name})
    else:
        typer.echo(f"{row.live.id}  " + (f"sealed as {row.archive_name}" if is_new else "known already; nothing changed"))


def read_file(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise NotFound(f"{file}: {error.strerror or error}") from None
