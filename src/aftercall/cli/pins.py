"""`aftercall memory pins`, `pin`, `unpin` and `edit-pin`."""

import sys

import click
import typer
from rich.text import Text

from aftercall.cli.stage import Stage, me, print_json, stage_of
from aftercall.errors import RefusedInput
from aftercall.memory.key import memory_key
from aftercall.memory.pins.view import pin_json
from aftercall.model.knowledge import MemoryKey
from aftercall.model.pins import PinPage
from aftercall.who.caller import read_party

_JSON = typer.Option(False, "--json", help="Answer as JSON.")
_CALLER = typer.Argument(metavar="CALLER", help="The caller's number.")
_ID = typer.Argument(metavar="ID")


def list_pins(context: typer.Context, caller: str = _CALLER, json: bool = _JSON) -> None:
    """Topics that a caller keeps coming back to: how each stands, what is open, and why it is pinned or not."""
    stage = stage_of(context)
    key = _key(stage, caller)
    with stage.app() as app:
        app.pins.refresh(key)
        shown = app.pins.pages(key)
    if json:
        print_json([pin_json(each) for each in shown])
    elif not shown:
        least = stage.loaded.settings.memory.pin_after
        when = f"one is pinned after {least} conversations" if least else "memory.pin_after is 0"
        stage.console.print(f"No topics: {when}; `aftercall memory pin` pins one by hand.")
    for each in shown if not json else ():
        _print(stage, each)


def pin(
    context: typer.Context,
    caller: str = _CALLER,
    topic: str = typer.Argument(metavar="TOPIC", help="What to call it, in words that the caller uses."),
    json: bool = _JSON,
) -> None:
    """Pin a topic by hand; it stays until somebody unpins it."""
    stage = stage_of(context)
    key = _key(stage, caller)
    with stage.app() as app:
        shown = app.pins.get(app.pins.pin(key, topic, app.audit.entry(me(), "edited", "a pin")).id)
    _tell(shown, "is pinned", json)


def unpin(context: typer.Context, pin_id: str = _ID, json: bool = _JSON) -> None:
    """Unpin a topic; it stays so however often it is spoken of."""
    stage = stage_of(context)
    with stage.app() as app:
        shown = app.pins.get(app.pins.decide(pin_id, "unpinned", app.audit.entry(me(), "edited", pin_id)).id)
    _tell(shown, "is unpinned", json)


def edit_pin(
    context: typer.Context,
    pin_id: str = _ID,
    title: str = typer.Option("", help="Another name for it."),
    json: bool = _JSON,
) -> None:
    """Write your own words on a topic's page: from standard input, or in $EDITOR. The next call is told them instead of ours."""
    stage = stage_of(context)
    with stage.app() as app:
        before = app.pins.get(pin_id).pin.note or ""
        text = click.edit(before, extension=".md", require_save=False) if sys.stdin.isatty() else _read_text()
        audit = app.audit.entry(me(), "edited", pin_id)
        app.pins.edit(pin_id, before if text is None else text, title=title, audit=audit)
        shown = app.pins.get(pin_id)
    _tell(shown, "is as you wrote it", json)


def _read_text() -> str:
    """Byte for byte: no line ending is changed."""
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise RefusedInput("standard input", f"is not valid UTF-8 (byte {error.start})") from None


def _key(stage: Stage, caller: str) -> MemoryKey:
    settings = stage.loaded.settings
    key = memory_key(settings, settings.agent_id, read_party(caller, "CALLER"))
    if key is None:
        raise RefusedInput("CALLER", "nobody is remembered under this number (memory.scope, or a withheld number)")
    return key


def _tell(shown: PinPage, what: str, json: bool) -> None:
    if json:
        print_json(pin_json(shown))
    else:
        typer.echo(f"{shown.pin.id}  {shown.pin.title} {what}")


def _print(stage: Stage, shown: PinPage) -> None:
    pin, zone = shown.pin, stage.loaded.settings.zone
    colour = "green" if pin.state == "pinned" else "dim"
    stage.console.print(Text.assemble((pin.title, "bold"), "  ", (pin.state, colour), f" ({pin.reason})  {pin.id}"))
    if pin.note:
        stage.console.print(pin.note, style="italic")
    if shown.about:
        stage.console.print(f"  about   {shown.about}")
    stage.console.print(f"  status  {shown.status}")
    for item in shown.open_items:
        stage.console.print(f"  open    {item.title} ({item.state}{f', due {item.due}' if item.due else ''})")
    for mention in pin.history:
        stage.console.print(
            Text.assemble("  ", (f"{mention.at.astimezone(zone):%Y-%m-%d %H:%M}  call {mention.call_id}", "dim"), f"  {mention.words}")
        )
