"""`aftercall health`."""

import typer
from rich.text import Text

from aftercall.cli.context import get_cli_context, make_table, print_json
from aftercall.errors import DatabaseError, StorageFull
from aftercall.work.health import report_json

_COLOURS = {"ok": "green", "warn": "yellow", "failing": "red"}


def health(
    context: typer.Context,
    every: bool = typer.Option(False, "--all", help="Also the calls with which all is well."),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """Whether every call of the last three days came to its end.

    Exit 0 all is well, 1 worth a look, 2 failing.
    """
    stage = get_cli_context(context)
    try:
        with stage.open_app(reads_rows_only=True) as app:
            made = app.report_health()
    except (
        DatabaseError,
        StorageFull,
    ) as error:  # nobody can tell how the calls are: failing, not merely worth a look
        stage.console.print(Text.assemble(("failing", _COLOURS["failing"]), f"  {error}"))
        raise typer.Exit(2) from None
    if json:
        print_json(report_json(made))
        raise typer.Exit(made.exit_code)
    counted = ", ".join(
        f"{count} {state.replace('_', ' ')}" for state, count in made.by_state.items() if count
    )
    stage.console.print(
        Text.assemble((made.status, _COLOURS[made.status]), f"  calls: {counted or 'none'}")
    )
    for reason in made.reasons:
        stage.console.print(f"- {reason}")
    shown = [
        call
        for call in made.calls
        if every or call.state not in ("ok", "nothing_said", "superseded", "recovered")
    ]
    if shown:
        table = make_table("call", "state", "reason")
        for call in shown:
            table.add_row(call.id, call.state, call.reason)
        stage.console.print(table)
    sweep = f"{made.counts.swept_at:%Y-%m-%d %H:%M}" if made.counts.swept_at else "never"
    stage.console.print(
        f"waiting in queues: {made.counts.queued}; held: {made.counts.held}; last sweep: {sweep}",
        style="dim",
    )
    raise typer.Exit(made.exit_code)
