"""What the benchmarks share: repeating, percentiles and one form of table."""

import statistics
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(
            column, justify="left" if number == 0 else "right", no_wrap=True
        )
    for row in rows:
        table.add_row(*row)
    Console(width=130).print(table)


def met(is_met: bool) -> str:
    return "met" if is_met else "MISSED"
