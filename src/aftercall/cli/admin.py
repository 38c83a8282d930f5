"""`aftercall config`, `doctor`, `health`, `backup`, `restore`, `password` and `db`."""

import os
from dataclasses import asdict
from pathlib import Path

import typer
from argon2 import PasswordHasher
from rich.text import Text

from aftercall.cli.context import (
    JSON_OPTION,
    get_cli_context,
    get_operator_name,
    make_table,
    print_json,
)
from aftercall.clock import SystemClock
from aftercall.db.connect import Database
from aftercall.db.upgrade import upgrade
from aftercall.doctor import run_checks
from aftercall.errors import DatabaseError, RefusedInput, StorageFull
from aftercall.work.health import report_json

MIN_PASSWORD_CHARS = 10
BACKUP_NICENESS = 10  # the audio of live calls goes first
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "failing": "red"}
_HEALTHY_STATES = ("ok", "nothing_said", "superseded", "recovered")

group = typer.Typer(no_args_is_help=True)


@group.callback()
def database() -> None:
    """The database."""


@group.command("upgrade")
def upgrade_database(context: typer.Context) -> None:
    """Bring the database to the schema of this version. All or nothing; safe to run twice."""
    database = Database(get_cli_context(context).config.settings.database_url)
    try:
        typer.echo(f"The database is at revision {upgrade(database)}.")
    finally:
        database.close()


def config(context: typer.Context, json: bool = JSON_OPTION) -> None:
    """List every setting with its value, where it came from, and its environment variable.

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
    table = make_table("setting", "value", "from", "environment")
    for value in cli.config.values:
        origin = value.origin if value.origin != "default" else Text("default", "dim")
        table.add_row(value.key, value.shown, origin, Text(value.env, "dim"))
    cli.console.print(table)
    for warning in cli.config.warnings:
        cli.console.print(Text.assemble(("warning", "yellow"), f"  {warning}"))


def doctor(context: typer.Context, json: bool = JSON_OPTION) -> None:
    """Check this machine and the settings, and say how to fix each problem; exit 1 if a check
    fails.
    """
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
    cli = get_cli_context(context)
    try:
        with cli.open_app(reads_rows_only=True) as app:
            report = app.report_health()
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
        table = make_table("call", "state", "reason")
        for call in shown:
            table.add_row(call.id, call.state, call.reason)
        cli.console.print(table)
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


def backup(
    context: typer.Context,
    to: Path = typer.Argument(
        metavar="FOLDER", help="Where to; the file is named after the time."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Back up database, archive, recordings, pages and key into one file, and read it again.

    Servers and workers may run meanwhile. Exit 1 if files of the home were damaged before; the
    backup then holds everything else.
    """
    from aftercall.backup import make_backup

    os.nice(BACKUP_NICENESS)
    with get_cli_context(context).open_app() as app:
        report = make_backup(app.settings, app.database, to, app.clock.now())
        app.audit.record(get_operator_name(), "backed up", Path(report.path).name)
    if json:
        print_json(asdict(report))
    else:
        counts = f"{report.calls:,} sealed calls, {report.files:,} files"
        typer.echo(f"{report.path}: {counts}, {report.bytes:,} bytes, verified")
        typer.echo(
            "It holds the secret key: keep it as safe as the home."
            if report.has_key
            else "It does not hold the secret key, which the environment sets: keep that, too."
        )
        for fault in report.faults:
            typer.echo(f"  {fault}")
    if report.faults:
        raise typer.Exit(1)


def restore(
    context: typer.Context,
    file: Path = typer.Argument(metavar="FILE", help="A backup."),
    json: bool = JSON_OPTION,
) -> None:
    """Restore a backup into the home and the database of the settings; both must be empty.

    Every byte is checked first. A restore that was cut off can be started again.
    """
    from aftercall.backup import restore_backup

    settings = get_cli_context(context).config.settings
    header = restore_backup(settings, file, SystemClock().now())
    if json:
        print_json(asdict(header) | {"home": str(settings.home)})
        return
    typer.echo(f"{settings.home} is as it was on {header.made_at}.")
    typer.echo(
        "`aftercall verify` proves the archive; `aftercall serve` goes on from there."
    )
    typer.echo(
        "Stop the Aftercall that was backed up first: two would do its work twice."
    )


def password() -> None:
    """Hash a password for the pages; set the hash as AFTERCALL_PAGES_PASSWORD_HASH."""
    typed = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    if len(typed) < MIN_PASSWORD_CHARS:
        raise RefusedInput(
            "password", f"is shorter than {MIN_PASSWORD_CHARS} characters"
        )
    typer.echo(PasswordHasher().hash(typed))
