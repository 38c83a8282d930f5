"""`aftercall talk`."""

import asyncio

import typer
from rich.console import Console
from rich.text import Text

from aftercall.app import App
from aftercall.bridge.turn_call import TurnCall
from aftercall.cli.calls import print_steps, wait_for_steps
from aftercall.cli.context import get_cli_context
from aftercall.ids import new_id
from aftercall.model.calls import LiveCall
from aftercall.who.caller import read_caller


def talk(
    context: typer.Context,
    caller: str = typer.Option("+15550100", help="The number you call from; empty is withheld."),
) -> None:
    """Call your agent from this terminal: type what the caller says, an empty line hangs up."""
    from aftercall.running import running

    stage = get_cli_context(context)
    number = read_caller(caller, "--caller")

    async def hold() -> None:
        with stage.open_app() as app:
            async with running(app):
                await _converse(app, stage.console, number)

    asyncio.run(hold())


async def _converse(app: App, console: Console, number: str | None) -> None:
    live = LiveCall(
        source="terminal",
        sid=new_id(),
        agent_id=app.settings.agent_id,
        caller=number,
        started_at=app.clock.now(),
    )
    call = TurnCall(app.turn_parts, live)
    console.print(Text.assemble(("agent", "bold"), f"   {(await call.start()).text}"))
    while call.end_reason is None:
        said = await asyncio.to_thread(_read_line)
        if not said:
            await call.end("caller_hung_up")
            break
        console.print(Text.assemble(("agent", "bold"), f"   {(await call.answer(said)).text}"))
    console.print(f"call {call.call.id} ended: {call.end_reason}", style="dim")
    print_steps(console, await wait_for_steps(app, call.call.id))


def _read_line() -> str:
    try:
        return input("you     ").strip()
    except EOFError:
        return ""
