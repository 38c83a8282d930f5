"""`aftercall briefing`."""

import typer

from aftercall.briefing.render import render
from aftercall.briefing.view import briefing_json
from aftercall.cli.stage import parse_number, print_json, stage_of


def briefing(
    context: typer.Context,
    caller: str = typer.Argument(metavar="CALLER", help="The number that would ring."),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """What an agent would be told if this caller rang now. Nothing is used up."""
    stage = stage_of(context)
    number = parse_number("CALLER", caller)
    with stage.app() as app:
        told = app.composer.preview(number)
    if json:
        print_json(briefing_json(told, stage.loaded.settings.zone))
    else:
        typer.echo(render(told, stage.loaded.settings.zone))
