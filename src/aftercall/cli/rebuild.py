"""`aftercall rebuild`."""

from dataclasses import asdict

import typer
from rich.progress import Progress

from aftercall.cli.context import get_cli_context, print_json


def rebuild(
    context: typer.Context, json: bool = typer.Option(False, "--json", help="Answer as JSON.")
) -> None:
    """Make memory anew from the archive alone: facts, what can be searched, documents and
    summaries.

    Models are not asked again what they answered before, and follow-up work is not done again.
    Best while no server runs.
    """
    stage = get_cli_context(context)
    with (
        stage.open_app() as app,
        Progress(console=stage.console, disable=json, transient=True) as progress,
    ):
        bar = progress.add_task("Rebuilding", total=None)
        made = app.rebuilder.rebuild(
            lambda done, of: progress.update(bar, completed=done, total=of)
        )
    if json:
        print_json(asdict(made))
    else:
        typer.echo(
            f"{made.calls} calls rebuilt"
            + (f", {made.adopted} of them unknown to the database before" if made.adopted else "")
        )
        for name in made.failed:
            typer.echo(f"  {name}: could not be rebuilt; run `aftercall verify`")
        for left in made.undone:
            typer.echo(
                f"  {left.call_id}: {left.step} failed ({left.reason}); run `aftercall calls "
                f"rerun {left.call_id}`"
            )
    if made.failed or made.undone:
        raise typer.Exit(1)
