"""`aftercall talk`."""

import asyncio

import typer
from rich.console import Console
from rich.text import Text

from aftercall.app import App
from aftercall.bridge.turn_call import TurnCall
from aftercall.cli.progress import print_steps, wait_for_steps
from aftercall.cli.stage import stage_of
from aftercall.ids import new_id
from aftercall.model.calls import LiveCall
from aftercall.who.caller import read_caller


def talk(
    context: typer.Context,
    caller: str = typer.Option("+15550100", help="The number you call from; empty is withheld."),
) -> None:
    """Call your agent from this terminal: type what the caller says, an empty line hangs up."""
    from aftercall.running import running  # noqa: PLC0415 - the durable engine takes its time to load

    stage = stage_of(context)
    number = read_caller(caller, "--caller")

    async def hold() -> None:
        with stage.app() as app:
            async with running(app):
                await _converse(app, stage.console, number)

    asyncio.run(hold())


async def _converse(app: App, console: Console, number: str | None) -> None:
    live = LiveCall(source="terminal", sid=new_id(), agent_id=app.settings.agent_id, caller=number, started_at=app.clock.now())
    call = TurnCall(app.turn_parts, live)
    console.print(Text.assemble(("agent", "bold"), f"   {(await call.begin()).text}"))
    while call.ended is None:
        said = await asyncio.to_thread(_listen)
        if not said:
            await call.end("caller_hung_up")
            break
        console.print(Text.assemble(("agent", "bold"), f"   {(await call.hear(said)).text}"))
    console.print(f"call {call.call.id} ended: {call.ended}", style="dim")
    print_steps(console, await wait_for_steps(app, call.call.id))


def _listen() -> str:
    try:
        return input("you     ").strip()
    except EOFError:
        return ""
