"""The `aftercall` command: settings and the app for every group, and errors as one line."""

import sys

import typer

from aftercall import __version__
from aftercall.cli import (
    briefing,
    calls,
    config,
    database,
    demo,
    doctor,
    erase,
    export,
    facts,
    followups,
    health,
    ingest,
    lab,
    memory,
    password,
    read,
    rebuild,
    retention,
    search,
    serve,
    talk,
    test,
    verify,
)
from aftercall.cli.context import CliContext
from aftercall.errors import AftercallError

_HELP = """The call ends; the work doesn't.

Aftercall keeps every word of your voice agent's calls, seals each call, and does what \
comes after it."""

program = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help=_HELP,
)
program.command("serve")(serve.serve)
program.command("worker")(serve.worker)
program.command("demo")(demo.demo)
program.command("lab")(lab.lab)
program.command("talk")(talk.talk)
program.command("ingest")(ingest.ingest)
program.command("read")(read.read)
program.add_typer(calls.group, name="calls")
program.command("search")(search.search)
program.add_typer(facts.group, name="facts")
program.add_typer(memory.group, name="memory")
program.add_typer(followups.group, name="followups")
program.command("health")(health.health)
program.command("briefing")(briefing.briefing)
program.command("export")(export.export)
program.command("erase")(erase.erase)
program.command("rebuild")(rebuild.rebuild)
program.command("retention")(retention.retention)
program.add_typer(test.group, name="test")
program.command("verify")(verify.verify)
program.command("config")(config.config)
program.command("doctor")(doctor.doctor)
program.command("password")(password.password)
program.add_typer(database.group, name="db")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aftercall {__version__}")
        raise typer.Exit


@program.callback()
def main(
    context: typer.Context,
    config: str = typer.Option(
        "", "--config", metavar="FILE", help="Settings file; `aftercall.toml` here if unset."
    ),
    _version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    context.obj = CliContext(config)


def run() -> None:
    """The edge of a command: what went wrong as one line, and an exit code."""
    try:
        program(standalone_mode=True)
    except AftercallError as error:
        typer.echo(f"aftercall: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(0)
