"""`aftercall memory pins`, `pin`, `unpin` and `edit-pin`."""

import sys

import click
import typer
from rich.text import Text

from aftercall.cli.context import CliContext, get_cli_context, get_operator_name, print_json
from aftercall.errors import RefusedInput
from aftercall.memory.pins.page import pin_json
from aftercall.memory.visibility import memory_key
from aftercall.model.facts import MemoryKey, PinPage
from aftercall.who.caller import read_party

_JSON = typer.Option(False, "--json", help="Answer as JSON.")
_CALLER = typer.Argument(metavar="CALLER", help="The caller's number.")
_ID = typer.Argument(metavar="ID")


def list_pins(context: typer.Context, caller: str = _CALLER, json: bool = _JSON) -> None:
    """Topics that a caller keeps coming back to: how each stands, what is open, and why it is
    pinned or not.
    """
    stage = get_cli_context(context)
    key = _key(stage, caller)
    with stage.open_app() as app:
        app.pins.refresh(key)
        shown = app.pins.list_pages(key)
    if json:
        print_json([pin_json(each) for each in shown])
    elif not shown:
        least = stage.config.settings.memory.pin_after
        when = f"one is pinned after {least} conversations" if least else "memory.pin_after is 0"
        stage.console.print(f"No topics: {when}; `aftercall memory pin` pins one by hand.")
    for each in shown if not json else ():
        _print(stage, each)


def pin(
    context: typer.Context,
    caller: str = _CALLER,
    topic: str = typer.Argument(
        metavar="TOPIC", help="What to call it, in words that the caller uses."
    ),
    json: bool = _JSON,
) -> None:
    """Pin a topic by hand; it stays until somebody unpins it."""
    stage = get_cli_context(context)
    key = _key(stage, caller)
    with stage.open_app() as app:
        shown = app.pins.get(
            app.pins.pin_topic(
                key, topic, app.audit.make_writer(get_operator_name(), "edited", "a pin")
            ).id
        )
    _print_change(shown, "is pinned", json)


def unpin(context: typer.Context, pin_id: str = _ID, json: bool = _JSON) -> None:
    """Unpin a topic; it stays so however often it is spoken of."""
    stage = get_cli_context(context)
    with stage.open_app() as app:
        shown = app.pins.get(
            app.pins.set_state(
                pin_id, "unpinned", app.audit.make_writer(get_operator_name(), "edited", pin_id)
            ).id
        )
    _print_change(shown, "is unpinned", json)


def edit_pin(
    context: typer.Context,
    pin_id: str = _ID,
    title: str = typer.Option("", help="Another name for it."),
    json: bool = _JSON,
) -> None:
    """Write your own words on a topic's page: from standard input, or in $EDITOR.

    The next call is told them instead of ours.
    """
    stage = get_cli_context(context)
    with stage.open_app() as app:
        before = app.pins.get(pin_id).pin.note or ""
        text = (
            click.edit(before, extension=".md", require_save=False)
            if sys.stdin.isatty()
            else _read_text()
        )
        audit = app.audit.make_writer(get_operator_name(), "edited", pin_id)
        app.pins.edit(pin_id, before if text is None else text, title=title, audit=audit)
        shown = app.pins.get(pin_id)
    _print_change(shown, "is as you wrote it", json)


def _read_text() -> str:
    """Byte for byte: no line ending is changed."""
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise RefusedInput("standard input", f"is not valid UTF-8 (byte {error.start})") from None


def _key(cli: CliContext, caller: str) -> MemoryKey:
    settings = cli.config.settings
    key = memory_key(settings, settings.agent_id, read_party(caller, "CALLER"))
    if key is None:
        raise RefusedInput(
            "CALLER", "nobody is remembered under this number (memory.scope, or a withheld number)"
        )
    return key


def _print_change(shown: PinPage, what: str, json: bool) -> None:
    if json:
        print_json(pin_json(shown))
    else:
        typer.echo(f"{shown.pin.id}  {shown.pin.title} {what}")


def _print(cli: CliContext, shown: PinPage) -> None:
    pin, zone = shown.pin, cli.config.settings.zone
    colour = "green" if pin.state == "pinned" else "dim"
    cli.console.print(
        Text.assemble((pin.title, "bold"), "  ", (pin.state, colour), f" ({pin.reason})  {pin.id}")
    )
    if pin.note:
        cli.console.print(pin.note, style="italic")
    if shown.about:
        cli.console.print(f"  about   {shown.about}")
    cli.console.print(f"  status  {shown.status}")
    for item in shown.open_items:
        cli.console.print(
            f"  open    {item.title} ({item.state}{f', due {item.due}' if item.due else ''})"
        )
    for mention in pin.history:
        cli.console.print(
            Text.assemble(
                "  ",
                (f"{mention.at.astimezone(zone):%Y-%m-%d %H:%M}  call {mention.call_id}", "dim"),
                f"  {mention.words}",
            )
        )
