"""The `aftercall` command: the table of commands, the global options, and errors as one line."""

import gc
import os
import sys
from functools import partial
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from aftercall import __version__
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
    "reconcile": ("calls:reconcile", "Bring calls whose webhook never came."),
    "read": ("calls:read", "Show what the reader finds in a call; nothing is stored."),
    "search": ("search:search", "Search turns, summaries and facts."),
    "health": ("admin:health", "Check that every recent call was processed."),
    "briefing": ("memory:briefing", "Show the briefing for a caller's next call."),
    "export": ("privacy:export", "Export everything stored about a caller."),
    "erase": ("privacy:erase", "Erase everything about a caller and prove it."),
    "rebuild": ("privacy:rebuild", "Rebuild memory from the archive alone."),
    "retention": ("privacy:retention", "Remove what is past its retention time."),
    "archive": (
        "privacy:archive_group",
        "Print sealed calls, or move them to object storage.",
    ),
    "verify": (
        "privacy:verify",
        "Check that sealed calls and recordings are there, unchanged.",
    ),
    "backup": ("admin:backup", "Back up everything into one file, while it runs."),
    "restore": ("admin:restore", "Restore a backup into an empty home."),
    "init": ("admin:init", "Write the settings file, and try the keys in it."),
    "config": ("admin:config", "List the settings that are set; --all the rest."),
    "doctor": ("admin:doctor", "Check this machine, the settings and the services."),
    "password": ("admin:password", "Hash a password for the pages."),
    "calls": ("calls:group", "List, show and rerun calls."),
    "facts": ("facts:group", "Facts, with the words they rest on."),
    "memory": ("memory:group", "Imported notes and pinned topics."),
    "followups": (
        "work:followups_group",
        "What callers asked for and what became of it.",
    ),
    "events": ("work:events_group", "What other programs are told."),
    "mcp": ("work:mcp", "Serve memory and follow-ups to an MCP client."),
    "corrections": ("corrections:group", "Put right what was read from calls."),
    "eval": ("corrections:eval_group", "Measure how well calls are read."),
    "models": ("corrections:models_group", "Try a model on a sample call."),
    "test": (
        "test:group",
        "Call an agent with scripted callers, and see what goes wrong.",
    ),
    "db": ("admin:group", "The database."),
}

# The order of `aftercall --help`.
PANELS = {
    "Calls": ("calls", "talk", "ingest", "reconcile", "read", "search", "archive"),
    "Memory": ("briefing", "facts", "memory", "corrections", "eval", "rebuild"),
    "Work": ("followups", "health", "events", "mcp"),
    "Test": ("demo", "lab", "test"),
    "Run": (
        "serve",
        "worker",
        "verify",
        "backup",
        "restore",
        "export",
        "erase",
        "retention",
        "db",
    ),
    "Set up": ("init", "config", "doctor", "models", "token", "password"),
}
LOADING_GC_THRESHOLD = (
    1_000_000  # objects; `CliContext.open_app` puts the usual one back
)


class LeanGroup(TyperGroup):
    """Takes its options, flags and a file, as given: Typer would load pydantic to check them."""

    def get_params(self, ctx: Any) -> list[Any]:
        options: list[Any] = super().get_params(ctx)
        for option in options:
            option.process_value = partial(_take_as_given, option)
        return options


def _take_as_given(option: Any, context: Any, value: Any) -> Any:
    return option.callback(context, option, value) if option.callback else value


class LazyGroup(LeanGroup):
    """Lists commands from the table; imports a command's module when the command is called."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        for panel, names in PANELS.items():
            for name in names:
                summary = COMMANDS[name][1]
                self.add_command(
                    TyperCommand(name, help=summary, rich_help_panel=panel)
                )

    def resolve_command(
        self, ctx: Any, args: list[str]
    ) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name else command, rest


def load_command(name: str) -> Any:
    """The command itself, a single one or a group, with its options.

    Its module loads nothing heavy: each command imports what it uses when it runs.
    """
    module, _, attribute = COMMANDS[name][0].partition(":")
    target = getattr(import_module(f"aftercall.cli.{module}"), attribute)
    parent = typer.Typer(rich_markup_mode="markdown")
    if isinstance(target, typer.Typer):
        parent.add_typer(target, name=name, cls=LeanGroup)
    else:
        parent.command(name)(target)
    return get_group(parent).commands[name]


program = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
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
    from aftercall.cli.context import CliContext

    context.obj = CliContext(config)


def run() -> None:
    """Runs a command; an error is one line and an exit code.

    Files that a command makes are for this user alone, those of SQLite and of libraries too.
    Modules are no garbage: to collect while they load, and again at the end, takes a quarter of
    a short command's time.
    """
    os.umask(0o077)
    gc.set_threshold(LOADING_GC_THRESHOLD)
    try:
        program(standalone_mode=True)
    except AftercallError as error:
        typer.echo(f"aftercall: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(0)
    finally:
        gc.freeze()
