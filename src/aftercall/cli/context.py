"""What every command needs: the settings, the app, the console, and the steps of a call."""

import gc
import getpass
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, tzinfo
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from aftercall.errors import RefusedInput, ScenarioRefused
from aftercall.log import configure_logs, get_logger

if TYPE_CHECKING:
    from rich.console import Console

    from aftercall.app import App
    from aftercall.config import LoadedConfig
    from aftercall.db.upgrade import Purpose
    from aftercall.model.facts import MemoryKey
    from aftercall.model.reading import Step
    from aftercall.stores import Stores

STEP_POLL_INTERVAL_S = 0.1
USUAL_GC_THRESHOLD = (700, 10, 10)
JSON_OPTION = typer.Option(False, "--json", help="Answer as JSON.")
ID_ARGUMENT = typer.Argument(
    metavar="ID", help="An id, the beginning of one, or `last`."
)
UNLIMITED_WIDTH = 10_000  # of a pipe or a file
# Speech and documents must not steer the terminal.
_CONTROLS = {
    code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"
}
MIN_TEXT_COLUMNS = 40  # with fewer beside an id, the text goes below it
_STEP_COLOURS = {
    "done": "green",
    "failed": "red",
    "skipped": "dim",
    "running": "yellow",
    "waiting": "yellow",
}


class CliContext:
    def __init__(self, config: str) -> None:
        self._file = Path(config) if config else None
        self._is_warned = False
        configure_logs(level="warning")

    @cached_property
    def console(self) -> "Console":
        from aftercall.cli.console import make_console

        return make_console()

    @cached_property
    def config(self) -> "LoadedConfig":
        from aftercall.config import load_config

        return load_config(self._file)

    def configure_service_logs(self, *, as_json: bool) -> None:
        """For commands that keep running: log at info level, and log the warnings about settings
        that other commands leave to `aftercall config`.
        """
        configure_logs(level="info", as_json=as_json)
        self._is_warned = True
        for warning in self.config.warnings:
            get_logger("config").warning(warning)

    def _warn_of_unknown_names(self) -> None:
        """On standard error: a misspelt setting has no effect, and nobody would notice."""
        if not self._is_warned:
            for warning in self.config.warnings:
                if warning.startswith("AFTERCALL_"):
                    typer.echo(f"aftercall: {warning}", err=True)
        self._is_warned = True

    @contextmanager
    def open_stores(
        self, *, reads_rows_only: bool = False, purpose: "Purpose" = "use"
    ) -> Iterator["Stores"]:
        """For commands that read, which start sooner so.

        One that only reads rows may open a database that belongs to another home.
        """
        from aftercall.stores import open_stores

        self._warn_of_unknown_names()
        with open_stores(
            self.config.settings, claims_home=not reads_rows_only, purpose=purpose
        ) as stores:
            yield stores

    @contextmanager
    def open_app(self, *, purpose: "Purpose" = "use") -> Iterator["App"]:
        from aftercall.app import build

        self._warn_of_unknown_names()
        app = build(self.config.settings, purpose=purpose)
        gc.set_threshold(*USUAL_GC_THRESHOLD)
        try:
            yield app
        finally:
            app.close()


def get_cli_context(context: typer.Context) -> CliContext:
    cli = context.find_object(CliContext)
    assert cli is not None  # noqa: S101 - set by the root command
    return cli


def hide_controls(text: str) -> str:
    return text.translate(_CONTROLS)


def count_nouns(**counts: int) -> str:
    """`sealed_call=1, file=2` as "1 sealed call, 2 files"; `follow_up` is "follow-up"."""
    from aftercall.english.words import count_noun

    names = {"follow_up": "follow-up"}
    return ", ".join(
        count_noun(count, names.get(name, name.replace("_", " ")))
        for name, count in counts.items()
    )


Styled = str | tuple[str, str]
"""Words to print; with a colour, `bold` or `dim` in a pair."""


def print_line(*parts: Styled) -> None:
    """A line with what people said as it is; styles are for terminals.

    For commands that read: they start sooner without the console of rich.
    """
    has_styles = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    line = ""
    for part in parts:
        text, style = (part, "") if isinstance(part, str) else part
        shown = hide_controls(text)
        line += _style(shown, style) if has_styles and style else shown
    typer.echo(line)


def _style(text: str, style: str) -> str:
    if style in ("bold", "dim"):
        return typer.style(text, **{style: True})
    return typer.style(text, fg=style)


def print_rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A list whose last column is text, wrapped beside the others or below them.

    Ids stay whole: users copy them into the next command.
    """
    *fixed, last = zip(heads, *rows, strict=True)
    widths = [max(map(len, column)) for column in fixed]
    indent = sum(widths) + 2 * len(widths)
    is_terminal = sys.stdout.isatty()
    columns = shutil.get_terminal_size().columns if is_terminal else UNLIMITED_WIDTH
    is_beside = columns - indent >= MIN_TEXT_COLUMNS
    margin = indent if is_beside else 4
    for number, cells in enumerate(zip(*fixed, strict=True)):
        line = "  ".join(map(str.ljust, cells, widths)) + "  "
        texts = textwrap.wrap(" ".join(last[number].split()), columns - margin)
        if is_beside and texts:
            line += texts.pop(0)
        below = [" " * margin + text for text in texts if number or is_beside]
        shown = "\n".join((line.rstrip(), *below))
        print_line((shown, "" if number else "bold"))


def format_time(instant: datetime, zone: tzinfo) -> str:
    return f"{instant.astimezone(zone):%Y-%m-%d %H:%M}"


def report_refused(refused: Sequence[ScenarioRefused]) -> None:
    """One line per file on standard error; the other scenarios go on."""
    for refusal in refused:
        typer.echo(f"aftercall: {refusal}", err=True)


def print_json(data: Any) -> None:
    typer.echo(json.dumps(data, ensure_ascii=False, indent=2, default=str))


def print_outcome(data: Any, text: str, json: bool) -> None:
    """What a command changed, as JSON or in a line."""
    if json:
        print_json(data)
    else:
        typer.echo(text)


def find_memory_key(cli: CliContext, caller: str, field: str) -> "MemoryKey":
    """The memory that belongs to a caller; `field` is where the number was given."""
    from aftercall.model.facts import memory_key
    from aftercall.model.people import read_party

    settings = cli.config.settings
    key = memory_key(settings, settings.agent_id, read_party(caller, field))
    if key is None:
        reason = (
            "no memory is kept for this number (memory.scope, or a withheld number)"
        )
        raise RefusedInput(field, reason)
    return key


def get_operator_name() -> str:
    """The user at this machine, for histories and the audit log."""
    try:
        return f"{getpass.getuser()} at the command line"
    except (KeyError, OSError):
        return "the command line"


async def wait_for_steps(app: "App", call_id: str) -> list["Step"]:
    """Waits until every step of a call has ended, in this process or in another one."""
    import asyncio

    from aftercall.postcall.store import are_finished

    while True:
        steps = await asyncio.to_thread(app.steps.of_call, call_id)
        if are_finished(steps):
            return steps
        await app.clock.sleep(STEP_POLL_INTERVAL_S)


def print_steps(steps: list["Step"]) -> None:
    for step in steps:
        detail = step.result if step.state == "done" else step.reason
        state = (f"{step.state:8}", _STEP_COLOURS[step.state])
        print_line(state, f"{step.name:9} {detail or ''}")
