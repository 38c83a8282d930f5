"""`aftercall config`."""

import typer
from rich.text import Text

from aftercall.cli.context import get_cli_context, make_table, print_json


def config(
    context: typer.Context, json: bool = typer.Option(False, "--json", help="Answer as JSON.")
) -> None:
    """Every setting: its value, where it came from, and its name in the environment.

    Secrets are hidden.
    """
    stage = get_cli_context(context)
    loaded = stage.config
    if json:
        fields = ("key", "env", "shown", "origin", "description")
        print_json(
            [
                {("value" if name == "shown" else name): getattr(value, name) for name in fields}
                for value in loaded.values
            ]
        )
        return
    table = make_table("setting", "value", "from", "environment")
    for value in loaded.values:
        origin = value.origin if value.origin != "default" else Text("default", "dim")
        table.add_row(value.key, value.shown, origin, Text(value.env, "dim"))
    stage.console.print(table)
    for warning in loaded.warnings:
        stage.console.print(Text.assemble(("warning", "yellow"), f"  {warning}"))
