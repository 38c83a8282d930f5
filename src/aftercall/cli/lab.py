"""`aftercall lab`."""

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import typer
from rich.console import Console
from rich.markup import escape

from aftercall.cli.serve import listen, stopping_server
from aftercall.cli.stage import stage_of
from aftercall.errors import AftercallError, ConfigError

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
    twice: list[str] = typer.Option([], "--twice", metavar="KIND", help="Webhooks that come twice: `completed`, `call.hangup` … or `*`."),  # noqa: B008
    late: list[str] = typer.Option([], "--late", metavar="KIND=SECONDS", help="Webhooks that come late; others overtake them."),  # noqa: B008
    real_time: bool = typer.Option(False, "--real-time", help="Speech takes as long as speaking it does."),
) -> None:
    """A phone network in a box: emulated Twilio, Telnyx and OpenAI audio on this machine, for your agent to talk to."""
    if carrier not in ("twilio", "telnyx"):
        raise ConfigError("lab: --carrier is twilio or telnyx")
    console = stage_of(context).console
    wanted = {"agent": agent, "caller": ring, "carrier": carrier}
    if ring and _is_taken(port):  # a lab is running there, and the agent may be pointed at it
        asyncio.run(_play(console, f"http://127.0.0.1:{port}", wanted, say))
        return
    with listen("127.0.0.1", port) as listening:
        box = _make_box(f"http://127.0.0.1:{listening.getsockname()[1]}", agent, number, real_time)
        box.take_on(read_habits(twice, late))
        asyncio.run(_visit(console, box, listening, wanted, say) if ring else _stay(console, box, listening))


def read_habits(twice: list[str], late: list[str]) -> "Habits":
    from aftercall.lab.habits import Habits  # noqa: PLC0415 - other commands need no lab

    try:
        delays = {kind: float(seconds) for kind, seconds in (spec.split("=", 1) for spec in late)}
    except ValueError:
        raise ConfigError("lab: --late is KIND=SECONDS, as in completed=2.5") from None
    return Habits(frozenset(twice), delays)


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return port != 0 and probe.connect_ex(("127.0.0.1", port)) == 0


async def _visit(console: Console, box: "Lab", listening: socket.socket, wanted: dict[str, str], lines: list[str]) -> None:
    async with _serving(box, listening):
        await _play(console, box.address, wanted, lines)


def _make_box(address: str, agent: str, numbers: list[str], real_time: bool) -> "Lab":
    try:
        from aftercall.lab.numbers import Number, read_number  # noqa: PLC0415 - other commands need no lab
        from aftercall.lab.server import make_lab  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(f"lab: needs {error.name}; install aftercall[telnyx]") from None
    box = make_lab(address, TOKEN, ACCOUNT, TELNYX_KEY, in_real_time=real_time)
    box.exchange.numbers[OUR_NUMBER] = Number(f"{agent}/twilio/voice", f"{agent}/twilio/status")
    box.exchange.numbers.update(read_number(spec) for spec in numbers)
    return box


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


async def _stay(console: Console, box: "Lab", listening: socket.socket) -> None:
    stopped = asyncio.Event()
    async with _serving(box, listening):
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        console.print(f"The lab listens on {box.address}  (stop with Ctrl-C). Point your agent at it:\n")
        for name, value in settings_for(box).items():
            console.print(f"export {name}='{value}'")
        console.print("\nNumbers:")
        for number_, plan in box.exchange.numbers.items():
            console.print(f"  {number_}  {plan.outcome or plan.voice_url}")
        console.print(f"\nRing it: aftercall lab --ring +15550100 --say 'Hello!'   (--carrier telnyx; or POST {box.address}/lab/calls)")
        await stopped.wait()


def settings_for(box: "Lab") -> dict[str, str]:
    """What an agent sets to talk to this box instead of the carriers."""
    return {
        "AFTERCALL_ENGINE": "receptionist",  # the keys below would choose others, who live elsewhere
        "AFTERCALL_MODEL": "rules",
        "TWILIO_ACCOUNT_SID": ACCOUNT,
        "TWILIO_AUTH_TOKEN": TOKEN,
        "TWILIO_PHONE_NUMBER": OUR_NUMBER,
        "AFTERCALL_TWILIO_API_URL": box.address,
        "TELNYX_API_KEY": TELNYX_KEY,
        "TELNYX_PUBLIC_KEY": box.telnyx.public_key,
        "TELNYX_PHONE_NUMBER": OUR_NUMBER,
        "AFTERCALL_TELNYX_API_URL": box.address,
        "OPENAI_API_KEY": box.audio.api_key,
        "OPENAI_BASE_URL": f"{box.address}/v1",
    }


async def _play(console: Console, address: str, wanted: dict[str, str], lines: list[str]) -> None:
    """Ring through the lab at `address`, ours or one that was running already."""
    async with httpx2.AsyncClient(base_url=address, timeout=60.0, trust_env=False) as http:

        async def do(path: str, body: dict[str, str]) -> dict[str, Any]:
            try:
                answer = await http.post(f"/lab/calls{path}", json=body)
            except httpx2.HTTPError as error:
                raise AftercallError(f"lab: no answer from {address} ({type(error).__name__}); choose another --port") from None
            if answer.status_code not in (200, 201):
                raise AftercallError(f"lab: what listens at {address} is no lab, or refused ({answer.status_code}); choose another --port")
            told: dict[str, Any] = answer.json()
            for text in told["heard"]:
                console.print(f"[bold]agent [/]  {escape(text)}")
            return told

        told = await do("", wanted)
        call, script = told["call"], iter(lines)
        while not told["is_over"]:
            line = next(script, "") if lines else await asyncio.to_thread(_read_line)
            if not line:
                break
            if lines:
                console.print(f"[bold]caller[/]  {escape(line)}")
            told = await do(f"/{call}/say", {"text": line})
        told = await do(f"/{call}/hang-up", {})
    if told["trouble"]:
        raise AftercallError(f"lab: the call failed: {told['trouble']}")


def _read_line() -> str:
    """What the person at the terminal says; an empty line hangs up."""
    sys.stdout.write("caller  ")
    sys.stdout.flush()
    return sys.stdin.readline().strip()
