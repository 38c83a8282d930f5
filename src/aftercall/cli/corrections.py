"""`aftercall corrections`, `eval` and `models`: what was read wrongly, and how much of it."""

import json as json_text
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from aftercall.cli.context import (
    ID_ARGUMENT,
    JSON_OPTION,
    CliContext,
    format_time,
    get_cli_context,
    get_operator_name,
    print_json,
    print_outcome,
    print_rows,
)
from aftercall.errors import NotFound, RefusedInput
from aftercall.model.people import read_caller, read_party
from aftercall.model.reading import CATEGORIES, REQUEST_KINDS

if TYPE_CHECKING:
    from aftercall.db.corrections import CorrectedThing, Correction
    from aftercall.evaluation import FigureDifference, ReaderResult, ReadingFigure
    from aftercall.labels import LabelledCall
    from aftercall.stores import Kind

    Wanted = dict[CorrectedThing, str | None]

NOTHING = "nothing"
NOTHING_COUNTED = "–"
GOOD_SHARE = 0.8  # of a sample call; below it a model should not read alone
_CALLER = typer.Option("", help="Only this caller's.")
_KIND = typer.Option("", help=f"One of {', '.join(REQUEST_KINDS)}.")

group = typer.Typer(no_args_is_help=True, help="Put right what was read from calls.")
eval_group = typer.Typer(no_args_is_help=True, help="Measure how well calls are read.")
models_group = typer.Typer(no_args_is_help=True, help="Models that read calls.")


@models_group.callback()
def models() -> None:
    """Models that read calls."""


@group.command("list")
def list_corrections(
    context: typer.Context,
    caller: str = _CALLER,
    limit: int = typer.Option(100, min=1, max=10_000, help="How many, newest first."),
    json: bool = JSON_OPTION,
) -> None:
    """What people put right, newest first."""
    from aftercall.memory.fact_store import correction_json

    cli = get_cli_context(context)
    number = read_caller(caller, "--caller") if caller else None
    with cli.open_stores() as stores:
        made = stores.corrections.page(limit=limit, caller=number)
    shown = [correction_json(one) for one in made]
    if json:
        print_json(shown)
        return
    if not shown:
        cli.console.print("Nothing was corrected.")
        return
    zone = cli.config.settings.zone
    lines = [
        (
            one["id"],
            format_time(correction.at, zone),
            one["caller"] or "withheld",
            f"{one['what']}: {one['old'] or NOTHING} → {one['new'] or NOTHING}, {one['who']}",
        )
        for one, correction in zip(shown, made, strict=True)
    ]
    print_rows(("id", "when", "caller", "what"), lines)


@group.command("request")
def correct_request(
    context: typer.Context,
    followup_id: str = ID_ARGUMENT,
    title: str = typer.Option("", help="What it should say."),
    due: str = typer.Option(
        "", help="The right day, like 2026-02-17; `none` for none."
    ),
    kind: str = _KIND,
    person: str = typer.Option("", help="Whom it is for; `none` for nobody."),
    remove: bool = typer.Option(
        False, "--remove", help="It was not asked for, or not promised."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Put a request or a promise right, or remove it."""
    wanted = _read_wanted(
        {"request": title, "due": due, "kind": kind, "person": person}
    )
    if remove:
        wanted = {"request": None}
    options = "--title, --due or another option"
    _correct(context, "follow-up", followup_id, wanted, json, options)


@group.command("add")
def add_request(
    context: typer.Context,
    call_id: str = ID_ARGUMENT,
    title: str = typer.Option(help="What was asked for."),
    kind: str = _KIND,
    due: str = typer.Option("", help="The day, like 2026-02-17."),
    person: str = typer.Option("", help="Whom it is for."),
    turn: list[int] = typer.Option(
        [], min=1, help="A turn in which it was asked for; may be repeated."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Add a request of a call that the reader has missed; it is held until you approve it."""
    from aftercall.stores import find_id

    with get_cli_context(context).open_app() as app:
        made = app.corrections.add_request(
            find_id(app.database, "call", call_id),
            title,
            get_operator_name(),
            kind=kind or "task",
            due=due,
            person=person,
            turns=turn,
        )
        row = app.work.followups.find(made.key)
    _print(made, f"added as follow-up {row.id if row else ''}", json)


@group.command("add-fact")
def add_fact(
    context: typer.Context,
    call_id: str = ID_ARGUMENT,
    text: str = typer.Option(help="What was told."),
    turn: int = typer.Option(min=1, help="The turn in which it was told."),
    category: str = typer.Option("person", help=f"One of {', '.join(CATEGORIES)}."),
    json: bool = JSON_OPTION,
) -> None:
    """Add a fact of a call that the reader has missed."""
    from aftercall.stores import find_id

    with get_cli_context(context).open_app() as app:
        made = app.corrections.add_fact(
            find_id(app.database, "call", call_id),
            text,
            get_operator_name(),
            turn=turn,
            category=category,
        )
    _print(made, "fact added", json)


@group.command("fact")
def correct_fact(
    context: typer.Context,
    fact_id: str = ID_ARGUMENT,
    text: str = typer.Option("", help="What it should say."),
    remove: bool = typer.Option(False, "--remove", help="It was never true."),
    json: bool = JSON_OPTION,
) -> None:
    """Put the text of a fact right, or remove the fact."""
    wanted: Wanted = {"fact": None} if remove else _read_wanted({"fact": text})
    _correct(context, "fact", fact_id, wanted, json, "--text or --remove")


@group.command("name")
def correct_name(
    context: typer.Context,
    caller: str = typer.Argument(metavar="CALLER", help="A number, or a person at it."),
    name: str = typer.Option("", help="The right name; `none` if it is not known."),
    call_name: str = typer.Option(
        "", help="What to call them; `none` for no such name."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Put the name of a caller right."""
    party = read_party(caller, "CALLER")
    if party is None:
        raise RefusedInput("CALLER", "is withheld; no memory is kept for it")
    wanted = _read_wanted({"name": name, "call_name": call_name})
    _correct(context, None, party, wanted, json, "--name or --call-name")


@group.command("export")
def export_labels(
    context: typer.Context,
    caller: str = _CALLER,
    reveal: bool = typer.Option(
        False, "--reveal", help="Also secrets; this is logged."
    ),
) -> None:
    """Calls that people corrected, as labelled calls for `eval reading`: one JSON object per
    line.
    """
    from aftercall.labels import iter_corrected_calls

    number = read_caller(caller, "--caller") if caller else None
    with get_cli_context(context).open_app() as app:
        if reveal:
            app.audit.record(get_operator_name(), "revealed", "corrected calls")
        for labelled in iter_corrected_calls(app, number, reveal=reveal):
            typer.echo(json_text.dumps(labelled, ensure_ascii=False))


@group.command("undo")
def undo_correction(
    context: typer.Context, correction_id: str = ID_ARGUMENT, json: bool = JSON_OPTION
) -> None:
    """Make it as it was before."""
    from aftercall.stores import find_id

    with get_cli_context(context).open_app() as app:
        whole_id = find_id(app.database, "correction", correction_id)
        undone = app.corrections.undo(whole_id, get_operator_name())
    _print(undone, "undone", json)


def _print(made: "Correction", told: str, json: bool) -> None:
    from aftercall.memory.fact_store import correction_json

    print_outcome(correction_json(made), f"{made.id}  {told}", json)


def _read_wanted(given: "dict[CorrectedThing, str]") -> "Wanted":
    """The options that were given; `none` empties what may be empty."""
    wanted: Wanted = {}
    for what, new in given.items():
        if new:
            is_none = new == "none" and what not in ("request", "fact")
            wanted[what] = None if is_none else new
    return wanted


def _correct(
    context: typer.Context,
    kind: "Kind | None",
    of: str,
    wanted: "Wanted",
    json: bool,
    options: str,
) -> None:
    from aftercall.memory.fact_store import correction_json
    from aftercall.stores import find_id

    if not wanted:
        raise RefusedInput("options", f"nothing to correct; give {options}")
    who = get_operator_name()
    with get_cli_context(context).open_app() as app:
        whole_id = find_id(app.database, kind, of) if kind else of
        correct = app.corrections.correct
        made = [correct(what, whole_id, new, who) for what, new in wanted.items()]
    if json:
        print_json([correction_json(one) for one in made])
        return
    for one in made:
        typer.echo(f"{one.id}  {one.what} corrected")


@eval_group.command("reading")
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
    from aftercall.labels import read_labels

    cli = get_cli_context(context)
    labelled = list(read_labels(paths))
    results = [_evaluate(cli, name, labelled) for name in reader or [""]]
    if json:
        print_json({"readers": [result.to_json() for result in results]})
    else:
        _print_results(cli, results)
    if any(result.failed for result in results):
        raise typer.Exit(1)


@models_group.command("try")
def try_model(
    context: typer.Context,
    model: str = typer.Argument(
        "",
        metavar="[MODEL]",
        help="As in AFTERCALL_MODEL, which is tried if none is given.",
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Let a model read a sample call: how well it reads, and how fast.

    Exit 1 if it got less than half of the call right.
    """
    from aftercall.cli.console import make_table
    from aftercall.evaluation import FIGURES
    from aftercall.labels import load_sample

    cli = get_cli_context(context)
    sample = load_sample()
    result = _evaluate(cli, model, [sample], must_read=True)
    counted = [figure for figure in result.figures if figure.items]
    right = sum(figure.right for figure in counted)
    told = sum(len(figure.items) for figure in counted)
    if json:
        print_json(result.to_json() | {"right": right, "of": told})
    else:
        table = make_table("", "right", "")
        for figure in counted:
            share = f"{figure.right} of {len(figure.items)}"
            table.add_row(figure.name, share, FIGURES[figure.name])
        cli.console.print(table)
        turns = len(sample.call.turns)
        cli.console.print(
            f"{result.reader}: {right} of {told} right in a call of {turns} turns, "
            f"{_describe_speed(result)}."
        )
        if right < GOOD_SHARE * told and not result.reader.startswith("rules"):
            cli.console.print(
                f"Alone it reads poorly. Let it check the rules: rules+{result.reader}"
            )
    if right < told / 2:
        raise typer.Exit(1)


@eval_group.command("compare")
def compare(
    context: typer.Context,
    files: list[str] = typer.Argument(
        metavar="FILE…",
        help="Answers of `eval reading --json`, with two readers in all.",
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Compare two readers on the same calls, the first with the second."""
    from aftercall.cli.console import make_table
    from aftercall.evaluation import compare_readers

    cli = get_cli_context(context)
    results = [result for file in files for result in _read_results(file)]
    if len(results) != 2:
        raise RefusedInput("FILE", f"holds {len(results)} readers; two are compared")
    differences = compare_readers(*results)
    if json:
        shown = {one.name: one.to_json() for one in differences}
        print_json({"a": results[0].reader, "b": results[1].reader, "figures": shown})
        return
    table = make_table("", "A", "B", "B − A (95 %)", "")
    for one in differences:
        table.add_row(one.name, *_difference_cells(one))
    cli.console.print(f"A: {results[0].reader}\nB: {results[1].reader}")
    cli.console.print(table)


def _describe_speed(result: "ReaderResult") -> str:
    tokens = result.input_tokens + result.output_tokens
    if not tokens:
        return f"{result.seconds:.1f} s, no model asked"
    return (
        f"{result.seconds:.1f} s, {result.input_tokens:,} tokens in and "
        f"{result.output_tokens:,} out, {tokens / result.seconds:.0f} a second"
    )


def _evaluate(
    cli: CliContext,
    name: str,
    labelled: "list[LabelledCall]",
    *,
    must_read: bool = False,
) -> "ReaderResult":
    """With `must_read`, an error is raised, and so is a model's that only checks."""
    from aftercall.compose import choose_reader, make_model_client
    from aftercall.evaluation import evaluate_reader
    from aftercall.llm.model.client import Prompt
    from aftercall.llm.model.questions import SAID
    from aftercall.llm.rules.reader import RulesReader

    settings = cli.config.settings
    if name:
        settings = settings.model_copy(update={"model": name})
    client = make_model_client(settings)
    try:
        reader = choose_reader(client, RulesReader(), settings.zone)
        if client and must_read:
            client.ask(Prompt("Answer.", "Are you there?", SAID.schema, SAID.name))
        calls = _show_progress(labelled, reader.name)
        return evaluate_reader(reader, calls, must_read=must_read)
    finally:
        if client:
            client.close()


def _show_progress(
    labelled: "list[LabelledCall]", name: str
) -> "Iterable[LabelledCall]":
    """A bar on a terminal: a model takes seconds a call."""
    from rich.progress import track

    from aftercall.cli.console import make_console

    console = make_console(stderr=True)
    is_seen = sys.stderr.isatty()
    return track(labelled, name, console=console, transient=True, disable=not is_seen)


def _print_results(cli: CliContext, results: "list[ReaderResult]") -> None:
    from aftercall.cli.console import make_table
    from aftercall.evaluation import FIGURES

    table = make_table("", *(result.reader for result in results), "")
    unlabelled = []
    for figures in zip(*(result.figures for result in results), strict=True):
        name = figures[0].name
        if any(figure.items for figure in figures):
            table.add_row(name, *map(_figure_cell, figures), FIGURES[name])
        else:
            unlabelled.append(name)
    table.add_row("cost", *map(_cost_cell, results), "of all calls")
    table.add_row("time", *map(_time_cell, results), "a call")
    counted = " and ".join(dict.fromkeys(str(result.calls) for result in results))
    cli.console.print(f"Calls: {counted}. In brackets: the interval of 95 %.")
    cli.console.print(table)
    if unlabelled:
        cli.console.print(f"Not labelled in these calls: {'; '.join(unlabelled)}.")
    for result in results:
        for failure in result.failed:
            cli.console.print(f"{result.reader} could not read {failure}", style="red")


def _figure_cell(figure: "ReadingFigure") -> str:
    low, high = (f"{100 * bound:.0f}" for bound in figure.interval)
    share = f"{100 * figure.share:.0f} %" if figure.items else "?"
    return f"{share:>5} ({low}–{high})  {figure.right} of {len(figure.items)}"


def _cost_cell(result: "ReaderResult") -> str:
    if result.cost is None:
        return f"unknown, {result.input_tokens + result.output_tokens:,} tokens"
    return f"{result.cost:.4f} $" if result.cost else "nothing"


def _time_cell(result: "ReaderResult") -> str:
    count = result.calls + len(result.failed)
    return f"{1000 * result.seconds / count:.0f} ms" if count else NOTHING_COUNTED


def _difference_cells(one: "FigureDifference") -> list[str]:
    if not one.is_counted:
        return [NOTHING_COUNTED] * 4
    shares = [f"{100 * share:.0f} %" for share in (one.a, one.b)]
    verdict = ("B is better" if one.low > 0 else "B is worse") if one.is_sure else ""
    between = f"{100 * one.low:+.0f} to {100 * one.high:+.0f}"
    return [*shares, between, verdict or "may be chance"]


def _read_results(file: str) -> "list[ReaderResult]":
    from aftercall.evaluation import parse_results

    try:
        data = json_text.loads(Path(file).read_text("utf-8"))
    except OSError as error:
        raise NotFound(f"{file}: {error.strerror or error}") from None
    except ValueError:
        raise RefusedInput(file, "is not JSON") from None
    return parse_results(file, data)
