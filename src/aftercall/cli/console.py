"""The console: prints what people said as it is, and tables whose ids stay whole.

It is loaded by commands that print more than a list: rich takes a tenth of a short command.
"""

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from aftercall.cli.context import UNLIMITED_WIDTH, hide_controls


class SpeechConsole(Console):
    """Shows control characters as replacement characters."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(hide_controls(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        if isinstance(renderable, Text):
            renderable = renderable.copy()
            renderable.plain = hide_controls(renderable.plain)
        yield from super().render(renderable, options)


def make_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Prints text verbatim, since speech may look like markup or `:emoji:`; styles are Text
    objects.
    """
    return SpeechConsole(
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=True,
        stderr=stderr,
        quiet=quiet,
        width=None if sys.stdout.isatty() else UNLIMITED_WIDTH,
    )


def make_table(*columns: str, texts: int = 1) -> Table:
    """Never cuts a column: users copy ids from a table into the next command.

    On a narrow terminal the last columns, which hold text, are wrapped.
    """
    table = Table(box=None, pad_edge=False)
    for column in columns[:-texts]:
        table.add_column(column, no_wrap=True, overflow="ignore")
    for column in columns[-texts:]:
        table.add_column(column, overflow="fold")
    return table
