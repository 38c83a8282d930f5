"""`aftercall memory` and `briefing`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aftercall.cli.context import (
    ID_ARGUMENT,
    JSON_OPTION,
    CliContext,
    count_nouns,
    find_memory_key,
    get_cli_context,
    get_operator_name,
    print_json,
    print_line,
    print_outcome,
    wait_for_steps,
)
from aftercall.cli.search import evaluate
from aftercall.errors import NotFound, RefusedInput
from aftercall.model.people import read_caller, read_party

if TYPE_CHECKING:
    from rich.console import Console

    from aftercall.app import App
    from aftercall.model.facts import MemoryKey, PinPage

_CALLER = typer.Argument(metavar="CALLER", help="The caller's number.")

group = typer.Typer(
    no_args_is_help=True, help="Imported notes, pinned topics, deleted pages."
)


group.command("eval")(evaluate)


def briefing(
    context: typer.Context,
    caller: str = typer.Argument(
        metavar="CALLER",
        help="The number that would ring, or a person at it: +15550100#anna.",
    ),
    verified: bool = typer.Option(
        False,
        "--verified",
        help="As for a caller verified by the carrier or by passcode.",
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Show the briefing an agent would get if this caller rang now. Nothing is used up."""
    from aftercall.briefing.render import briefing_json, render

    cli = get_cli_context(context)
    party = read_party(caller, "CALLER")
    with cli.open_stores() as stores:
        preview = stores.composer.preview(party, is_verified=verified)
    if json:
        print_json(briefing_json(preview, cli.config.settings.zone))
    else:
        print_line(render(preview, cli.config.settings.zone))


@group.command("import")
def import_notes(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH…",
            help="Markdown files, folders of them, or an OpenClaw workspace.",
        ),
    ],
    caller: str = typer.Option("", help="Whose notes they are; the owner's if unset."),
    wait: bool = typer.Option(
        True,
        "--wait/--no-wait",
        help="Find facts now; otherwise a running server or worker does.",
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Import notes and find facts in them.

    Importing a file twice adds nothing. If the import stops half-way, run it again.
    """
    import asyncio

    from aftercall.cli.console import make_console
    from aftercall.memory.importer import find_note_files, resolve_note_owner

    cli = get_cli_context(context)
    owner = resolve_note_owner(cli.config.settings, read_caller(caller, "--caller"))
    paths_found = [file for path in paths for file in find_note_files(Path(path))]
    console = make_console(stderr=True)
    with cli.open_app() as app:
        new, calls = _import_files(app, paths_found, owner, console)
        if wait and calls:
            asyncio.run(_find_facts(app, calls, console))
        found = [
            entry for call_id in new if (entry := app.facts.find_extraction(call_id))
        ]
    counts = {
        "new": sum(entry.facts_extracted for entry in found),
        "updated": sum(entry.facts_updated for entry in found),
        "said again": sum(entry.facts_deduplicated for entry in found),
    }
    total = len(paths_found)
    known = len(calls) - len(new)
    if json:
        print_json({"files": total, "new": len(new), "known": known, "facts": counts})
    else:
        facts = ", ".join(f"{count} {name}" for name, count in counts.items())
        typer.echo(
            f"{count_nouns(file=total)}: {len(new)} imported, {known} known already; facts: {facts}"
        )


@group.command("pins")
def list_pins(
    context: typer.Context, caller: str = _CALLER, json: bool = JSON_OPTION
) -> None:
    """Topics that a caller keeps coming back to: the state of each, what is open, and why it is
    pinned or not.
    """
    from aftercall.memory.pins.store import pin_json

    cli = get_cli_context(context)
    key = find_memory_key(cli, caller, "CALLER")
    with cli.open_app() as app:
        app.pins.refresh(key)
        pages = app.pins.list_pages(key)
    if json:
        print_json([pin_json(page) for page in pages])
        return
    if not pages:
        least = cli.config.settings.memory.pin_after
        when = (
            f"one is pinned after {least} conversations"
            if least
            else "memory.pin_after is 0"
        )
        cli.console.print(
            f"No topics: {when}; `aftercall memory pin` pins one by hand."
        )
    for page in pages:
        _print_pin(cli, page)


@group.command("pin")
def pin(
    context: typer.Context,
    caller: str = _CALLER,
    topic: str = typer.Argument(
        metavar="TOPIC", help="Its name, in words that the caller uses."
    ),
    json: bool = JSON_OPTION,
) -> None:
    """Pin a topic by hand; it stays pinned until you unpin it."""
    cli = get_cli_context(context)
    key = find_memory_key(cli, caller, "CALLER")
    with cli.open_app() as app:
        audit = app.audit.make_writer(get_operator_name(), "edited", "a pin")
        page = app.pins.get(app.pins.pin_topic(key, topic, audit).id)
    _print_change(page, "is pinned", json)


@group.command("unpin")
def unpin(
    context: typer.Context, pin_id: str = ID_ARGUMENT, json: bool = JSON_OPTION
) -> None:
    """Unpin a topic; it stays unpinned however often the caller mentions it."""
    from aftercall.stores import find_id

    with get_cli_context(context).open_app() as app:
        pin_id = find_id(app.database, "pin", pin_id)
        audit = app.audit.make_writer(get_operator_name(), "edited", pin_id)
        page = app.pins.get(app.pins.set_state(pin_id, "unpinned", audit).id)
    _print_change(page, "is unpinned", json)


@group.command("edit-pin")
def edit_pin(
    context: typer.Context,
    pin_id: str = ID_ARGUMENT,
    title: str = typer.Option("", help="Another name for it."),
    json: bool = JSON_OPTION,
) -> None:
    """Write a note on a topic, from standard input or in $EDITOR.

    The next briefing uses your note instead of the generated text.
    """
    import click

    from aftercall.stores import find_id

    with get_cli_context(context).open_app() as app:
        pin_id = find_id(app.database, "pin", pin_id)
        before = app.pins.get(pin_id).pin.note or ""
        if sys.stdin.isatty():
            text = click.edit(before, extension=".md", require_save=False)
        else:
            text = _read_text()
        audit = app.audit.make_writer(get_operator_name(), "edited", pin_id)
        app.pins.edit(
            pin_id, before if text is None else text, title=title, audit=audit
        )
        page = app.pins.get(pin_id)
    _print_change(page, "is as you wrote it", json)


@group.command("restore-page")
def restore_page(
    context: typer.Context,
    path: str = typer.Argument(
        metavar="PATH", help="In the workspace: people/+15550100/USER.md."
    ),
) -> None:
    """Bring a page back that was deleted by hand, as it last was. Needs Postgres."""
    from aftercall.workspace import files
    from aftercall.workspace.paths import find_root
    from aftercall.workspace.revisions import RevisionStore, make_key

    with get_cli_context(context).open_app() as app:
        page = find_root(app.settings) / path
        if files.read(page) is not None:
            raise RefusedInput("PATH", "is there")
        last = RevisionStore(app.database).find_last_body(make_key(path))
        text = files.decode(page, last)
        if text is None:
            raise NotFound(
                f"no earlier text of {path} is kept; only Postgres keeps the history of pages"
            )
        files.write(page, text, app.clock.now())
    print_line(f"{path} is back")


def _import_files(
    app: "App", paths: list[Path], owner: "MemoryKey", console: "Console"
) -> tuple[list[str], list[str]]:
    """The ids of the calls that are new, and of all."""
    from rich.progress import Progress

    from aftercall.journal.journal import ingest_call
    from aftercall.memory.importer import to_calls

    new: list[str] = []
    calls: list[str] = []
    with Progress(console=console, transient=True) as progress:
        for file in progress.track(paths, description="reading"):
            for call in to_calls(file, owner, app.settings, app.clock.now()):
                row, is_new = ingest_call(app.journal, call)
                calls.append(row.live.id)
                if is_new:
                    new.append(row.live.id)
    return new, calls


async def _find_facts(app: "App", calls: list[str], console: "Console") -> None:
    from rich.progress import Progress

    from aftercall.running import running

    async with running(app):
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task("finding facts", total=len(calls))
            for call_id in calls:
                await wait_for_steps(app, call_id)
                progress.advance(task)


def _read_text() -> str:
    """Reads bytes, so that line endings stay as they are."""
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise RefusedInput(
            "standard input", f"is not valid UTF-8 (byte {error.start})"
        ) from None


def _print_change(page: "PinPage", what: str, json: bool) -> None:
    from aftercall.memory.pins.store import pin_json

    print_outcome(pin_json(page), f"{page.pin.id}  {page.pin.title} {what}", json)


def _print_pin(cli: CliContext, page: "PinPage") -> None:
    """A pin with its topic, and the calls and facts it rests on."""
    from rich.text import Text

    pin = page.pin
    show = cli.console.print
    state = (pin.state, "green" if pin.state == "pinned" else "dim")
    show(Text.assemble((pin.title, "bold"), "  ", state, f" ({pin.reason})  {pin.id}"))
    if pin.note:
        show(pin.note, style="italic")
    if page.about:
        show(f"  about   {page.about}")
    show(f"  status  {page.status}")
    for item in page.open_items:
        due = f", due {item.due}" if item.due else ""
        show(f"  open    {item.title} ({item.state}{due})")
    for mention in pin.history:
        at = f"{mention.at.astimezone(cli.config.settings.zone):%Y-%m-%d %H:%M}"
        show(
            Text.assemble(
                "  ", (f"{at}  call {mention.call_id}", "dim"), f"  {mention.words}"
            )
        )
