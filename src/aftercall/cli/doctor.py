"""`aftercall doctor`."""

from dataclasses import asdict

import typer
from rich.text import Text

from aftercall.cli.context import get_cli_context, print_json
from aftercall.doctor import run_checks

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(
    context: typer.Context, json: bool = typer.Option(False, "--json", help="Answer as JSON.")
) -> None:
    """Check this machine and the settings, and say what to do about each trouble; exit 1 if
    something fails.
    """
    stage = get_cli_context(context)
    checks = list(run_checks(stage.config))
    if json:
        print_json([asdict(check) for check in checks])
    else:
        for check in checks:
            stage.console.print(
                Text.assemble(
                    (f"{check.state:4}", _COLOURS[check.state]), f"  {check.name:15} {check.detail}"
                )
            )
    if any(check.state == "fail" for check in checks):
        raise typer.Exit(1)
