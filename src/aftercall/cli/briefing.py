"""`aftercall briefing`."""

import typer

from aftercall.briefing.render import briefing_json, render
from aftercall.cli.context import get_cli_context, print_json
from aftercall.who.caller import read_party


def briefing(
    context: typer.Context,
    caller: str = typer.Argument(
        metavar="CALLER", help="The number that would ring, or a person at it: +15550100#anna."
    ),
    verified: bool = typer.Option(
        False,
        "--verified",
        help="As to a caller whose number the carrier vouches for, or with the passcode.",
    ),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """What an agent would be told if this caller rang now. Nothing is used up."""
    stage = get_cli_context(context)
    party = read_party(caller, "CALLER")
    with stage.open_app() as app:
        told = app.composer.preview(party, is_verified=verified)
    if json:
        print_json(briefing_json(told, stage.config.settings.zone))
    else:
        typer.echo(render(told, stage.config.settings.zone))
