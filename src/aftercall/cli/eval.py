"""`aftercall eval`."""

import json as json_text
import math
from pathlib import Path

import typer

from aftercall.cli.context import (
    JSON_OPTION,
    CliContext,
    get_cli_context,
    make_table,
    print_json,
)
from aftercall.compose.reading import make_model_client
from aftercall.errors import NotFound, RefusedInput
from aftercall.evaluation.labels import LabelledCall, read_labels
from aftercall.evaluation.score import (
    FigureDifference,
    ReaderResult,
    ReadingFigure,
    compare_readers,
    evaluate_reader,
    parse_results,
)
from aftercall.llm.model.reader import ModelReader
from aftercall.llm.rules.reader import RulesReader

NOTHING_COUNTED = "–"

group = typer.Typer(no_args_is_help=True, help="How well calls are read.")


@group.command("reading")
def evaluate_reading(
    context: typer.Context,
    paths: list[str] = typer.Argument(
        metavar="PATH…",
        help="Labelled calls: `.json` and `.jsonl` files, folders of them, `-` for lines.",
    ),
    reader: list[str] = typer.Option(
        [],
        "--reader",
        help="`rules`, or a model as in AFTERCALL_MODEL; may be repeated.",
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Read labelled calls and count what was right; exit 1 if a call could not be read."""
    cli = get_cli_context(context)
    labelled = list(read_labels(paths))
    results = [_evaluate(cli, name, labelled) for name in reader or [""]]
    if json:
        print_json({"readers": [result.to_json() for result in results]})
    else:
        _print_results(cli, results)
    if any(result.failed for result in results):
        raise typer.Exit(1)


@group.command("compare")
def compare(
    context: typer.Context,
    files: list[str] = typer.Argument(
        metavar="FILE…",
        help="Answers of `eval reading --json`, with two readers in all.",
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Compare two readers on the same calls, the first with the second."""
    cli = get_cli_context(context)
    results = [result for file in files for result in _read_results(file)]
    if len(results) != 2:
        raise RefusedInput("FILE", f"holds {len(results)} readers; two are compared")
    differences = compare_readers(*results)
    if json:
        shown = {one.name: one.to_json() for one in differences}
        print_json({"a": results[0].reader, "b": results[1].reader, "figures": shown})
        return
    table = make_table("", "A", "B", "B − A, 95 % between", "")
    for one in differences:
        table.add_row(one.name, *_difference_cells(one))
    cli.console.print(f"A: {results[0].reader}\nB: {results[1].reader}")
    cli.console.print(table)


def _evaluate(cli: CliContext, name: str, labelled: list[LabelledCall]) -> ReaderResult:
    settings = cli.config.settings
    if name:
        settings = settings.model_copy(update={"model": name})
    client = make_model_client(settings)
    try:
        reader = ModelReader(client) if client else RulesReader()
        return evaluate_reader(reader, labelled)
    finally:
        if client:
            client.close()


def _print_results(cli: CliContext, results: list[ReaderResult]) -> None:
    table = make_table("", *(result.reader for result in results))
    table.add_row("calls", *(str(result.calls) for result in results))
    for figures in zip(*(result.figures for result in results), strict=True):
        table.add_row(figures[0].name, *map(_figure_cell, figures))
    table.add_row("cost", *map(_cost_cell, results))
    table.add_row("time per call", *map(_time_cell, results))
    cli.console.print(table)
    for result in results:
        for failure in result.failed:
            cli.console.print(f"{result.reader} could not read {failure}", style="red")


def _figure_cell(figure: ReadingFigure) -> str:
    if not figure.items:
        return NOTHING_COUNTED
    low, high = figure.interval
    counted = f"{figure.right} of {len(figure.items)}"
    return f"{figure.share:.2f}  ({low:.2f}–{high:.2f})  {counted}"


def _cost_cell(result: ReaderResult) -> str:
    if result.cost is None:
        return f"unknown, {result.input_tokens + result.output_tokens:,} tokens"
    return f"{result.cost:.4f} $"


def _time_cell(result: ReaderResult) -> str:
    count = result.calls + len(result.failed)
    return f"{1000 * result.seconds / count:.0f} ms" if count else NOTHING_COUNTED


def _difference_cells(one: FigureDifference) -> list[str]:
    if not (math.isfinite(one.a) and math.isfinite(one.b)):
        return [NOTHING_COUNTED, NOTHING_COUNTED, "", ""]
    verdict = ("better" if one.low > 0 else "worse") if one.is_sure else "not sure"
    between = f"{one.low:+.2f} to {one.high:+.2f}"
    return [f"{one.a:.2f}", f"{one.b:.2f}", between, verdict]


def _read_results(file: str) -> list[ReaderResult]:
    try:
        data = json_text.loads(Path(file).read_text("utf-8"))
    except OSError as error:
        raise NotFound(f"{file}: {error.strerror or error}") from None
    except ValueError:
        raise RefusedInput(file, "is not JSON") from None
    return parse_results(file, data)
