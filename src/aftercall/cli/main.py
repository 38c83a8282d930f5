"""The `aftercall` command: the table of commands, the global options, and errors as one line."""

import os
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from aftercall import __version__
from aftercall.cli.context import CliContext
from aftercall.errors import AftercallError

_HELP = """The call ends; the work doesn't.

Aftercall keeps every word of your voice agent's calls, seals each call, and does the work \
that follows it."""

# Name: (module and attribute under aftercall.cli, summary).
# `aftercall --help` prints this table and imports no command.
COMMANDS = {
    "serve": (
        "server:serve",
        "Answer calls, do the work after them, serve API and pages.",
    ),
    "worker": ("server:worker", "Do the work after calls without answering any."),
    "token": ("server:token", "Show the API token, or a link to log in with."),
    "demo": (
        "demo:demo",
        "See a call dropped, resumed and remembered, without an account.",
    ),
    "lab": ("lab:lab", "A phone network in a box, emulated on this machine."),
    "talk": ("calls:talk", "Call your agent from this terminal, in text."),
    "ingest": ("calls:ingest", "Seal a call that finished elsewhere."),
    "read": ("calls:read", "Show what the reader finds in a call; nothing is stored."),
    "search": ("search:search", "Search turns, summaries and facts."),
    "health": ("admin:health", "Check that every recent call was processed."),
    "briefing": ("memory:briefing", "Show the briefing for a caller's next call."),
    "export": ("privacy:export", "Export everything stored about a caller."),
    "erase": ("privacy:erase", "Erase everything about a caller and prove it."),
    "rebuild": ("privacy:rebuild", "Rebuild memory from the archive alone."),
    "retention": ("privacy:retention", "Remove what is past its retention time."),
    "archive": ("privacy:archive_group", "Print sealed calls, encrypted or not."),
    "verify": (
        "privacy:verify",
        "Check that every sealed file is present and unchanged.",
    ),
    "backup": ("admin:backup", "Back up everything into one file, while it runs."),
    "restore": ("admin:restore", "Restore a backup into an empty home."),
    "init": ("admin:init", "Write the settings file, and try the keys in it."),
    "config": ("admin:config", "List every setting and where its value came from."),
    "doctor": ("admin:doctor", "Check this machine, the settings and the services."),
    "password": ("admin:password", "Hash a password for the pages."),
    "calls": ("calls:group", "List, show and rerun calls."),
    "facts": ("facts:group", "Facts, with the words they rest on."),
    "memory": ("memory:group", "Imported notes and pinned topics."),
    "followups": ("followups:group", "What callers asked for and what became of it."),
    "corrections": ("corrections:group", "Put right what was read from calls."),
    "eval": ("corrections:eval_group", "Measure how well calls are read."),
    "test": (
        "test:group",
        "Call an agent with scripted callers, and see what goes wrong.",
    ),
    "db": ("admin:group", "The database."),
}


class LazyGroup(TyperGroup):
    """Lists commands from the table; imports a command's module when the command is called."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        for name, (_, summary) in COMMANDS.items():
            self.add_command(TyperCommand(name, help=summary))

    def resolve_command(
        self, ctx: Any, args: list[str]
    ) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name else command, rest


def load_command(name: str) -> Any:
    """The command itself, a single one or a group, with its options."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    target = getattr(import_module(f"aftercall.cli.{module}"), attribute)
    parent = typer.Typer(rich_markup_mode="markdown")
    if isinstance(target, typer.Typer):
        parent.add_typer(target, name=name)
    else:
        parent.command(name)(target)
    return get_group(parent).commands[name]


program = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help=_HELP,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aftercall {__version__}")
        raise typer.Exit


@program.callback()
def main(
    context: typer.Context,
    config: str = typer.Option(
        "",
        "--config",
        metavar="FILE",
        help="Settings file; `aftercall.toml` here if unset.",
    ),
    _version: bool = typer.Option(
        False,
        "--version",
        callback=_show_version,
        is_eager=True,
        help="Show the version and exit.",
    ),
) -> None:
    context.obj = CliContext(config)


def run() -> None:
    """Runs a command; an error is one line and an exit code.

    Files that a command makes are for this user alone, those of SQLite and of libraries too.
    """
    os.umask(0o077)
    try:
        program(standalone_mode=True)
    except AftercallError as error:
        typer.echo(f"aftercall: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(0)
