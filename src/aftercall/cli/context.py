"""What every command stands on: the settings, the app, and where output goes."""

import getpass
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from aftercall.app import App, build
from aftercall.config import LoadedConfig, load_config
from aftercall.errors import ScenarioRefused
from aftercall.log import configure_logs, get_logger


class CliContext:
    def __init__(self, config: str) -> None:
        self._file = Path(config) if config else None
        self.console = make_console()
        configure_logs(level="warning")

    @cached_property
    def config(self) -> LoadedConfig:
        return load_config(self._file)

    def log_warnings(self) -> None:
        """For commands that stay: a setting that is not what it seems is said where the logs go."""
        for warning in self.config.warnings:
            get_logger("config").warning(warning)

    @contextmanager
    def open_app(self, *, reads_rows_only: bool = False) -> Iterator[App]:
        """A command that only reads rows may look at a database that belongs to another home."""
        app = build(self.config.settings, claims_home=not reads_rows_only)
        try:
            yield app
        finally:
            app.close()


def get_cli_context(context: typer.Context) -> CliContext:
    stage = context.find_object(CliContext)
    assert stage is not None  # noqa: S101 - set by the root command
    return stage


def make_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Prints text as it is: what callers said may look like markup or `:emoji:`.

    Styles are Text objects.
    """
    width = None if sys.stdout.isatty() else 200
    return Console(
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=True,
        stderr=stderr,
        quiet=quiet,
        width=width,
    )


def make_table(*columns: str) -> Table:
    """Columns that are never cut: what stands in a table is copied into the next command."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True, overflow="ignore")
    return table


def report_refused(refused: Sequence[ScenarioRefused]) -> None:
    """One line a file on standard error; the other scenarios go on."""
    for refusal in refused:
        typer.echo(f"aftercall: {refusal}", err=True)


def print_json(data: Any) -> None:
    typer.echo(json.dumps(data, ensure_ascii=False, indent=2, default=str))


def get_operator_name() -> str:
    """Who sits at this machine, for histories and the audit log."""
    try:
        return f"{getpass.getuser()} at the command line"
    except (KeyError, OSError):
        return "the command line"
