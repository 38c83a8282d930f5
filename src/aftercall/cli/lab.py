"""`aftercall lab`."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from aftercall.cli.lab_call import play
from aftercall.cli.serve import listen, stopping_server
from aftercall.cli.stage import stage_of
from aftercall.errors import ConfigError

if TYPE_CHECKING:
    from aftercall.lab.habits import Habits
    from aftercall.lab.server import Lab

ACCOUNT = "AC" + "1ab" * 10 + "00"
TOKEN = "lab-token"  # noqa: S105 - opens nothing but the lab
TELNYX_KEY = "KEY-lab"
OUR_NUMBER = "+15550101"


def lab(
    context: typer.Context,
    port: int = typer.Option(8090, min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one."),
    agent: str = typer.Option("http://127.0.0.1:8080", help="Where your agent listens."),
    number: list[str] = typer.Option(  # noqa: B008 - how Typer is told
        [], "--number", help="NUMBER=ADDRESS of a voice webhook, or NUMBER=busy, no-answer, failed, voicemail; may be repeated."
    ),
    ring: str = typer.Option("", metavar="NUMBER", help="Ring the agent from this number, talk, hang up and exit."),
    say: list[str] = typer.Option([], "--say", help="With --ring: what the caller says, line by line; without it you type."),  # noqa: B008
    carrier: str = typer.Option("twilio", help="With --ring: twilio or telnyx."),
    voice: str = typer.Option("words", help="With --ring, on streamed calls: words (for the lab's engines), espeak or tones."),
    twice: list[str] = typer.Option([], "--twice", metavar="KIND", help="Webhooks that come twice: `completed`, `call.hangup` … or `*`."),  # noqa: B008
    late: list[str] = typer.Option([], "--late", metavar="KIND=SECONDS", help="Webhooks that come late; others overtake them."),  # noqa: B008
    fault: list[str] = typer.Option(  # noqa: B008
        [], "--fault", metavar="SERVER=KIND", help="What goes wrong with the next request: `anthropic=rate_limit`, `deepgram=mute` …"
    ),
    reply: list[str] = typer.Option([], "--reply", help="What the agent on the emulated voice engines answers, one after the other."),  # noqa: B008
    model: list[str] = typer.Option([], "--model", help="One more model name that the emulated model servers know."),  # noqa: B008
    real_time: bool = typer.Option(False, "--real-time", help="Speech takes as long as speaking it does."),
    as_json: bool = typer.Option(False, "--json", help="What to set, or the call, as JSON."),
) -> None:
    """A phone network in a box: carriers, voice engines, models and sinks, emulated on this machine, for your agent to talk to."""
    if carrier not in ("twilio", "telnyx"):
        raise ConfigError("lab: --carrier is twilio or telnyx")
    if voice not in ("words", "espeak", "tones"):
        raise ConfigError("lab: --voice is words, espeak or tones")
    console = stage_of(context).console
    wanted = {"agent": agent, "caller": ring, "carrier": carrier, "voice": voice}
    if ring and _is_taken(port):  # a lab is running there, and the agent may be pointed at it
        asyncio.run(play(console, f"http://127.0.0.1:{port}", wanted, say, as_json=as_json))
        return
    with listen("127.0.0.1", port) as listening:
        orders = Orders(agent, number, real_time, reply, model, fault)
        box = make_box(f"http://127.0.0.1:{listening.getsockname()[1]}", orders)
        box.take_on(read_habits(twice, late))
        if ring:
            asyncio.run(_visit(console, box, listening, wanted, say, as_json=as_json))
        else:
            asyncio.run(_stay(console, box, listening, as_json=as_json))


@dataclass(frozen=True)
class Orders:
    """What was wanted of a box."""

    agent: str
    numbers: list[str]
    real_time: bool
    replies: list[str]
    models: list[str]
    faults: list[str]


def read_habits(twice: list[str], late: list[str]) -> "Habits":
    from aftercall.lab.habits import Habits  # noqa: PLC0415 - other commands need no lab

    try:
        delays = {kind: float(seconds) for kind, seconds in (spec.split("=", 1) for spec in late)}
    except ValueError:
        raise ConfigError("lab: --late is KIND=SECONDS, as in completed=2.5") from None
    return Habits(frozenset(twice), delays)


def make_box(address: str, orders: Orders) -> "Lab":
    from aftercall.lab.faults import order  # noqa: PLC0415 - other commands need no lab
    from aftercall.lab.numbers import Number, read_number  # noqa: PLC0415
    from aftercall.lab.script import in_order  # noqa: PLC0415
    from aftercall.lab.server import NOTED, make_lab  # noqa: PLC0415

    script = in_order(*orders.replies, then=NOTED)
    box = make_lab(address, TOKEN, ACCOUNT, TELNYX_KEY, in_real_time=orders.real_time, script=script)
    box.models += tuple(orders.models)
    box.exchange.numbers[OUR_NUMBER] = Number(f"{orders.agent}/twilio/voice", f"{orders.agent}/twilio/status")
    box.exchange.numbers.update(read_number(spec) for spec in orders.numbers)
    for fault in orders.faults:
        order(box, fault)
    return box


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return port != 0 and probe.connect_ex(("127.0.0.1", port)) == 0


async def _visit(
    console: Console, box: "Lab", listening: socket.socket, wanted: dict[str, str], lines: list[str], *, as_json: bool
) -> None:
    async with _serving(box, listening):
        await play(console, box.address, wanted, lines, as_json=as_json)


@asynccontextmanager
async def _serving(box: "Lab", listening: socket.socket) -> AsyncIterator[None]:
    from aftercall.lab.desk import make_router  # noqa: PLC0415
    from aftercall.lab.server import make_server  # noqa: PLC0415

    app = make_server(box)
    app.include_router(make_router(box))
    server = stopping_server(app)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn tells nobody
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        await task


async def _stay(console: Console, box: "Lab", listening: socket.socket, *, as_json: bool) -> None:
    stopped = asyncio.Event()
    async with _serving(box, listening):
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        _show(console, box, as_json=as_json)
        await stopped.wait()


def _show(console: Console, box: "Lab", *, as_json: bool) -> None:
    from aftercall.lab.exports import exports_of  # noqa: PLC0415

    exports = exports_of(box, OUR_NUMBER)
    numbers = {number: plan.outcome or plan.voice_url for number, plan in box.exchange.numbers.items()}
    if as_json:
        settings = {name: value for group in exports.values() for name, value in group.items()}
        console.print_json(data={"address": box.address, "settings": settings, "numbers": numbers, "models": box.models}, indent=None)
        return
    console.print(f"The lab listens on {box.address}  (stop with Ctrl-C). Point your agent at what it uses of it:")
    for server, settings in exports.items():
        console.print(f"\n# {server}")
        for name, value in settings.items():
            console.print(f"export {name}='{value}'", soft_wrap=True)
    console.print("\nNumbers:")
    for number, plan in numbers.items():
        console.print(f"  {number}  {plan}")
    console.print(f"\nRing it: aftercall lab --ring +15550100 --say 'Hello!'   (--carrier telnyx; or POST {box.address}/lab/calls)")
