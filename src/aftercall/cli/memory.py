"""`aftercall memory`."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from aftercall.app import App
from aftercall.cli import pins
from aftercall.cli.calls import wait_for_steps
from aftercall.cli.context import get_cli_context, make_console, print_json
from aftercall.journal.record import ingest_call
from aftercall.memory.importer import NoteOwner, find_note_files, resolve_note_owner, to_calls
from aftercall.who.caller import read_caller

group = typer.Typer(no_args_is_help=True, help="What is remembered besides calls.")


group.command("pins")(pins.list_pins)
group.command("pin")(pins.pin)
group.command("unpin")(pins.unpin)
group.command("edit-pin")(pins.edit_pin)


@group.callback()
def memory() -> None:
    """What is remembered besides calls."""


@group.command("import")
def import_notes(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH…", help="Markdown files, folders of them, or an OpenClaw workspace."
        ),
    ],
    caller: str = typer.Option("", help="Whose notes they are; the owner's if unset."),
    wait: bool = typer.Option(
        True, "--wait/--no-wait", help="Look for facts now; otherwise whoever is at work does."
    ),
    json: bool = typer.Option(False, "--json", help="Answer as JSON."),
) -> None:
    """Take notes in and look for facts in them.

    The same file twice adds nothing; stopped half-way, run it again.
    """
    stage = get_cli_context(context)
    who = resolve_note_owner(stage.config.settings, read_caller(caller, "--caller"))
    files = [file for path in paths for file in find_note_files(Path(path))]
    console = make_console(stderr=True)
    with stage.open_app() as app:
        new, calls = _import_files(app, files, who, console)
        if wait and calls:
            _look_for_facts(app, calls, console)
        found = [entry for call_id in new if (entry := app.facts.find_extraction(call_id))]
    came = {
        "new": sum(entry.facts_extracted for entry in found),
        "updated": sum(entry.facts_updated for entry in found),
        "said again": sum(entry.facts_deduplicated for entry in found),
    }
    if json:
        print_json(
            {"files": len(files), "new": len(new), "known": len(calls) - len(new), "facts": came}
        )
    else:
        facts = ", ".join(f"{count} {name}" for name, count in came.items())
        typer.echo(
            f"{len(files)} files: {len(new)} taken in, {len(calls) - len(new)} known already; "
            f"facts: {facts}"
        )


def _import_files(
    app: App, files: list[Path], who: NoteOwner, console: Console
) -> tuple[list[str], list[str]]:
    """The ids of the calls that are new, and of all."""
    new: list[str] = []
    calls: list[str] = []
    with Progress(console=console, transient=True) as progress:
        for file in progress.track(files, description="reading"):
            for call in to_calls(file, who, app.settings, app.clock.now()):
                row, is_new = ingest_call(app.journal, call)
                calls.append(row.live.id)
                if is_new:
                    new.append(row.live.id)
    return new, calls


def _look_for_facts(app: App, calls: list[str], console: Console) -> None:
    from aftercall.running import running

    async def work() -> None:
        async with running(app):
            with Progress(console=console, transient=True) as progress:
                task = progress.add_task("looking for facts", total=len(calls))
                for call_id in calls:
                    await wait_for_steps(app, call_id)
                    progress.advance(task)

    asyncio.run(work())
