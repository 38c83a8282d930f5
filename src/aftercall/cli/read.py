"""`aftercall read`."""

import typer
from rich.markup import escape

from aftercall.app import connect
from aftercall.cli.ingest import read_file
from aftercall.cli.stage import print_json, stage_of
from aftercall.llm.model.reader import ModelReader
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.calls import parse_call_json


def read(
    context: typer.Context,
    file: str = typer.Argument(metavar="FILE", help="A finished call as JSON; `-` reads standard input."),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """What the reader (AFTERCALL_MODEL) finds in a call. Nothing is stored."""
    stage = stage_of(context)
    call = parse_call_json(read_file(file))
    line = connect(stage.loaded.settings)
    try:
        reading = (ModelReader(line) if line else RulesReader()).read(call)
    finally:
        if line:
            line.close()
    if json:
        print_json(reading.model_dump(mode="json"))
        return
    console = stage.console
    console.print(escape(reading.summary))
    for request in reading.requests:
        due = f" (due {request.due})" if request.due else ""
        console.print(f"[bold]{request.kind:9}[/] {escape(request.title)}{due}  [dim]turns {request.turns}[/]")
    for withdrawn in reading.withdrawn:
        console.print(f"[bold]withdrawn[/] {escape(withdrawn.title)}  [dim]turns {withdrawn.turns}[/]")
    for promise in reading.promises:
        console.print(f"[bold]promise[/]   {escape(promise.title)}  [dim]turns {promise.turns}[/]")
    for fact in reading.facts:
        shown = "(secret)" if fact.visibility == "secret" else escape(fact.summary)
        console.print(f"[bold]fact[/]      {shown}  [dim]{fact.category}, {fact.visibility}, turns {fact.turns}[/]")
