"""`aftercall verify`."""

from dataclasses import asdict

import typer
from rich.markup import escape

from aftercall.cli.stage import print_json, stage_of
from aftercall.journal.verify import verify as prove


def verify(context: typer.Context, json: bool = typer.Option(False, "--json", help="Answer as JSON.")) -> None:
    """Prove that every sealed file is there and unchanged; exit 1 and name each that is not."""
    stage = stage_of(context)
    with stage.app() as app:
        proof = prove(app.archive.place, app.store)
    if json:
        print_json(asdict(proof))
    else:
        for fault in proof.faults:
            stage.console.print(f"[red]{fault.kind}[/]  {escape(fault.name)}: {escape(fault.reason)}")
        verdict = f"[red]{len(proof.faults)} faults[/]" if proof.faults else "[green]all proven[/]"
        stage.console.print(f"{verdict}: {proof.calls} sealed calls, {proof.files} files, {proof.links} links of the chain")
    if proof.faults:
        raise typer.Exit(1)
