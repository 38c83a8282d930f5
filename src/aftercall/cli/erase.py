"""`aftercall erase`."""

import typer

from aftercall.cli.context import get_cli_context, print_json
from aftercall.errors import RefusedInput
from aftercall.privacy.erase import ErasureReceipt
from aftercall.who.caller import read_caller


def erase(
    context: typer.Context,
    caller: str = typer.Argument(metavar="CALLER", help="The number, with its country code."),
    yes: bool = typer.Option(False, "--yes", help="Do not ask."),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """Erase everything about a caller, everywhere we can reach, and prove it.

    It cannot be undone.
    """
    number = read_caller(caller, "CALLER")
    if number is None:
        raise RefusedInput("CALLER", "is withheld; nothing is kept under it")
    if not yes:
        typer.confirm("Everything about this caller goes, for good. Go on?", abort=True)
    with get_cli_context(context).open_app() as app:
        receipt = app.eraser.erase(number)
    if json:
        print_json(receipt.to_json())
    else:
        _print_receipt(receipt)
    if receipt.scan.traces:
        raise typer.Exit(1)


def _print_receipt(receipt: ErasureReceipt) -> None:
    counted = [
        f"{receipt.calls} calls",
        f"{receipt.archive_files} archive files",
        f"{receipt.pages} pages",
        f"{receipt.recordings} recordings",
    ]
    typer.echo(f"Receipt {receipt.id}")
    typer.echo(
        f"Removed: {', '.join(counted)}, {sum(receipt.rows.values())} rows, "
        f"{receipt.workflows} workflows"
    )
    typer.echo(
        f"Searched {receipt.scan.files} files ({receipt.scan.bytes:,} bytes) for what would "
        "give the caller away"
    )
    for name in receipt.scan.others:
        typer.echo(f"  {name}: another caller says the same; it is theirs and stays")
    if receipt.scan.traces:
        typer.echo(f"Still there: {', '.join(receipt.scan.traces)}")
    else:
        typer.echo("Nothing is left.")
    typer.echo("Out of our reach:")
    for place in receipt.out_of_reach:
        typer.echo(f"  {place}")
