"""`aftercall export`."""

from dataclasses import asdict
from pathlib import Path

import typer

from aftercall.cli.context import get_cli_context, print_json
from aftercall.errors import RefusedInput
from aftercall.who.caller import read_caller
from aftercall.workspace.paths import make_folder_name


def export(
    context: typer.Context,
    caller: str = typer.Argument(metavar="CALLER", help="The number, with its country code."),
    to: str = typer.Option(
        "", metavar="FOLDER", help="Where to; a new folder here, named after the caller, if unset."
    ),
    reveal: bool = typer.Option(
        False, "--reveal", help="Open secrets, too; that it was done is written down."
    ),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """Everything that is kept about a caller, as one folder of JSON and markdown."""
    number = read_caller(caller, "CALLER")
    if number is None:
        raise RefusedInput("CALLER", "is withheld; nothing is kept under it")
    with get_cli_context(context).open_app() as app:
        made = app.exporter.export(number, Path(to or make_folder_name(number)), reveal=reveal)
    if json:
        print_json(asdict(made) | {"folder": str(made.folder)})
    else:
        typer.echo(
            f"{made.folder}: {made.calls} calls, {made.facts} facts, {made.followups} "
            f"follow-ups, {made.documents} documents"
        )
