"""`aftercall verify`."""

from dataclasses import asdict

import typer
from rich.text import Text

from aftercall.cli.context import get_cli_context, print_json
from aftercall.journal.verify import verify_archive as prove


def verify(
    context: typer.Context, json: bool = typer.Option(False, "--json", help="Answer as JSON.")
) -> None:
    """Prove that every sealed file is there and unchanged; exit 1 and name each that is not."""
    stage = get_cli_context(context)
    with stage.open_app() as app:
        proof = prove(app.archive.place, app.store)
    if json:
        print_json(asdict(proof))
    else:
        for fault in proof.faults:
            stage.console.print(
                Text.assemble((fault.kind, "red"), f"  {fault.name}: {fault.reason}")
            )
        verdict = (
            (f"{len(proof.faults)} faults", "red") if proof.faults else ("all proven", "green")
        )
        stage.console.print(
            Text.assemble(
                verdict,
                f": {proof.calls} sealed calls, {proof.files} files, {proof.links} links of "
                "the chain",
            )
        )
    if proof.faults:
        raise typer.Exit(1)
