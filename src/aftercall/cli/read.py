"""`aftercall read`."""

import typer
from rich.text import Text

from aftercall.app import make_model_client
from aftercall.cli.context import get_cli_context, print_json
from aftercall.cli.ingest import read_file
from aftercall.llm.model.reader import ModelReader
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.calls import parse_call_json


def read(
    context: typer.Context,
    file: str = typer.Argument(
        metavar="FILE", help="A finished call as JSON; `-` reads standard input."
    ),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """What the reader (AFTERCALL_MODEL) finds in a call. Nothing is stored."""
    stage = get_cli_context(context)
    call = parse_call_json(read_file(file))
    line = make_model_client(stage.config.settings)
    try:
        reading = (ModelReader(line) if line else RulesReader()).read(call)
    finally:
        if line:
            line.close()
    if json:
        print_json(reading.model_dump(mode="json"))
        return
    console = stage.console
    console.print(reading.summary)
    for request in reading.requests:
        due = f" (due {request.due})" if request.due else ""
        console.print(
            Text.assemble(
                (f"{request.kind:9}", "bold"),
                f" {request.title}{due}  ",
                (f"turns {request.turns}", "dim"),
            )
        )
    for withdrawn in reading.withdrawn:
        console.print(
            Text.assemble(
                ("withdrawn", "bold"), f" {withdrawn.title}  ", (f"turns {withdrawn.turns}", "dim")
            )
        )
    for promise in reading.promises:
        console.print(
            Text.assemble(
                ("promise", "bold"), f"   {promise.title}  ", (f"turns {promise.turns}", "dim")
            )
        )
    for fact in reading.facts:
        shown = "(secret)" if fact.visibility == "secret" else fact.summary
        console.print(
            Text.assemble(
                ("fact", "bold"),
                f"      {shown}  ",
                (f"{fact.category}, {fact.visibility}, turns {fact.turns}", "dim"),
            )
        )
