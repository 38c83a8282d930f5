"""`aftercall retention`."""

import typer

from aftercall.cli.context import get_cli_context, print_json


def retention(
    context: typer.Context,
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would go."),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """Let go of what is past its time (`[retention]`); a running server does it every hour."""
    with get_cli_context(context).open_app() as app:
        expired = app.retention.find_expired() if dry_run else app.retention.apply()
        actions = {kind: app.retention.action(kind) for kind in expired}
    if json:
        print_json(
            {kind: [item.name for item in items] for kind, items in expired.items()}
            | {"actions": actions, "dry_run": dry_run}
        )
        return
    for kind, items in expired.items():
        is_archived = actions[kind] == "archive"
        done = (
            ("would be archived" if is_archived else "would go")
            if dry_run
            else ("are archived" if is_archived else "are gone")
        )
        typer.echo(f"{len(items)} {kind} {done}")
        for item in items:
            typer.echo(f"  {item.name}")
