"""`aftercall retention`."""

import typer

from aftercall.cli.stage import print_json, stage_of


def retention(
    context: typer.Context,
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would go."),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """Let go of what is past its time (`[retention]`); a running server does it every hour."""
    with stage_of(context).app() as app:
        expired = app.retention.find() if dry_run else app.retention.apply()
    paths = [path for _, path in expired.recordings]
    if json:
        print_json({"recordings": paths, "dry_run": dry_run})
        return
    typer.echo(f"{len(paths)} recordings {'would go' if dry_run else 'are gone'}")
    for path in paths:
        typer.echo(f"  {path}")
