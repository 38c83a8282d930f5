"""`aftercall config`, `doctor`, `health`, `password` and `db`."""

from dataclasses import asdict

import typer
from rich.text import Text

from aftercall.cli.context import JSON_OPTION, get_cli_context, print_json, print_rows
from aftercall.errors import DatabaseError, RefusedInput, StorageFull

MIN_PASSWORD_CHARS = 10
DEFAULT = "default"
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "failing": "red"}
_HEALTHY_STATES = ("ok", "nothing_said", "superseded", "recovered")

group = typer.Typer(no_args_is_help=True)


@group.callback()
def database() -> None:
    """The database."""


@group.command("upgrade")
def upgrade_database(context: typer.Context) -> None:
    """Bring the database to the schema of this version. All or nothing; safe to run twice."""
    from aftercall.db.connect import Database
    from aftercall.db.upgrade import upgrade

    database = Database(get_cli_context(context).config.settings.database_url)
    try:
        typer.echo(f"The database is at revision {upgrade(database)}.")
    finally:
        database.close()


def config(
    context: typer.Context,
    every: bool = typer.Option(False, "--all", help="Also what is not set."),
    json: bool = JSON_OPTION,
) -> None:
    """List the settings that are set, with their values and where they came from.

    Secrets are hidden.
    """
    cli = get_cli_context(context)
    if json:
        print_json(
            [
                {
                    "key": value.key,
                    "env": value.env,
                    "value": value.shown,
                    "origin": value.origin,
                    "description": value.description,
                }
                for value in cli.config.values
            ]
        )
        return
    lines = [
        (value.key, value.origin, value.shown)
        if value.origin != DEFAULT
        else (value.key, DEFAULT, f"{value.shown}  {value.env}")
        for value in cli.config.values
        if every or value.origin != DEFAULT
    ]
    if lines:
        print_rows(cli.console, ("setting", "from", "value"), lines)
    else:
        cli.console.print("Nothing is set: every setting has its default.")
    if not every:
        cli.console.print(
            "`aftercall config --all` lists the others, with their environment variables.",
            style="dim",
        )
    for warning in cli.config.warnings:
        cli.console.print(Text.assemble(("warning", "yellow"), f"  {warning}"))


def doctor(context: typer.Context, json: bool = JSON_OPTION) -> None:
    """Check this machine and the settings, and say how to fix each problem; exit 1 if a check
    fails.
    """
    from aftercall.doctor import run_checks

    cli = get_cli_context(context)
    checks = list(run_checks(cli.config))
    if json:
        print_json([asdict(check) for check in checks])
    else:
        for check in checks:
            state = (f"{check.state:4}", _COLOURS[check.state])
            cli.console.print(Text.assemble(state, f"  {check.name:15} {check.detail}"))
    if any(check.state == "fail" for check in checks):
        raise typer.Exit(1)


def health(
    context: typer.Context,
    every: bool = typer.Option(
        False, "--all", help="Also list calls without problems."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Check that every call of the last three days was processed.

    Exit 0 all is well, 1 worth a look, 2 failing.
    """
    from aftercall.upkeep import list_reported_failures
    from aftercall.work.health import report as make_report
    from aftercall.work.health import report_json

    cli = get_cli_context(context)
    try:
        with cli.open_stores(reads_rows_only=True) as stores:
            now = stores.clock.now()
            failures = list_reported_failures(stores.presence, now)
            window_s = stores.settings.reconnect_window_s
            report = make_report(stores.health, now, window_s, failures)
    except (DatabaseError, StorageFull) as error:
        # Without the database the state of the calls is unknown: failing, not worth a look.
        cli.console.print(Text.assemble(("failing", _COLOURS["failing"]), f"  {error}"))
        raise typer.Exit(2) from None
    if json:
        print_json(report_json(report))
        raise typer.Exit(report.exit_code)
    counts = [
        f"{count} {state.replace('_', ' ')}"
        for state, count in report.by_state.items()
        if count
    ]
    status = (report.status, _COLOURS[report.status])
    cli.console.print(Text.assemble(status, f"  calls: {', '.join(counts) or 'none'}"))
    for reason in report.reasons:
        cli.console.print(f"- {reason}")
    shown = [
        call for call in report.calls if every or call.state not in _HEALTHY_STATES
    ]
    if shown:
        lines = [(call.id, call.state, call.reason) for call in shown]
        print_rows(cli.console, ("call", "state", "reason"), lines)
    queued, held, swept_at = (
        report.counts.queued,
        report.counts.held,
        report.counts.swept_at,
    )
    sweep = f"{swept_at:%Y-%m-%d %H:%M}" if swept_at else "never"
    cli.console.print(
        f"waiting in queues: {queued}; held: {held}; last sweep: {sweep}", style="dim"
    )
    raise typer.Exit(report.exit_code)


def password() -> None:
    """Hash a password for the pages; set the hash as AFTERCALL_PAGES_PASSWORD_HASH."""
    from argon2 import PasswordHasher

    typed = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    if len(typed) < MIN_PASSWORD_CHARS:
        raise RefusedInput(
            "password", f"is shorter than {MIN_PASSWORD_CHARS} characters"
        )
    typer.echo(PasswordHasher().hash(typed))
