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

from aftercall.cli.context import get_cli_context
from aftercall.cli.serve import make_uvicorn_server, open_listening_socket
from aftercall.errors import ConfigError

if TYPE_CHECKING:
    from aftercall.lab.server import Lab
    from aftercall.lab.webhook_sender import DeliveryFaults
import sys
from typing import Any

import httpx2
from rich.text import Text

from aftercall.errors import AftercallError

LAB_TIMEOUT_S = 90.0


async def place_call(
    console: Console, address: str, wanted: dict[str, str], lines: list[str], *, as_json: bool
) -> None:
    """Ring through the lab at `address`, ours or one that was running already."""
    spoken: list[dict[str, str]] = []
    async with httpx2.AsyncClient(base_url=address, timeout=LAB_TIMEOUT_S, trust_env=False) as http:

        def show(speaker: str, text: str, *, is_known: bool = False) -> None:
            spoken.append({"speaker": speaker, "text": text})
            if not as_json and not is_known:
                console.print(Text.assemble((f"{speaker:6}", "bold"), f"  {text}"))

        async def do(path: str, body: dict[str, str]) -> dict[str, Any]:
            told = await _ask(http, address, path, body)
            for text in told["heard"]:
                show("agent", text)
            return told

        told = await do("", wanted)
        call, script = told["call"], iter(lines)
        while not told["is_over"]:
            line = next(script, "") if lines else await asyncio.to_thread(_read_line)
            if not line:
                break
            show("caller", line, is_known=not lines)
            told = await do(f"/{call}/say", {"text": line})
        told = await do(f"/{call}/hang-up", {})
    if as_json:
        console.print_json(
            data={
                "carrier": wanted["carrier"],
                "caller": wanted["caller"],
                "turns": spoken,
                "trouble": told["trouble"],
            }
        )
    if told["trouble"]:
        raise AftercallError(f"lab: the call failed: {told['trouble']}")


async def _ask(
    http: httpx2.AsyncClient, address: str, path: str, body: dict[str, str]
) -> dict[str, Any]:
    try:
        answer = await http.post(f"/lab/calls{path}", json=body)
    except httpx2.HTTPError as error:
        raise AftercallError(
            f"lab: no answer from {address} ({type(error).__name__}); choose another --port"
        ) from None
    if answer.status_code not in (200, 201):
        raise AftercallError(
            f"lab: what listens at {address} is no lab, or refused ({answer.status_code}); "
            "choose another --port"
        )
    told: dict[str, Any] = answer.json()
    return told


def _read_line() -> str:
    """What the person at the terminal says; an empty line hangs up."""
    sys.stdout.write("caller  ")
    sys.stdout.flush()
    return sys.stdin.readline().strip()


ACCOUNT = "AC" + "1ab" * 10 + "00"
TOKEN = "lab-token"  # noqa: S105 - opens nothing but the lab
TELNYX_KEY = "KEY-lab"
OUR_NUMBER = "+15550101"


def lab(
    context: typer.Context,
    port: int = typer.Option(8090, min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one."),
    agent: str = typer.Option("http://127.0.0.1:8080", help="Where your agent listens."),
    number: list[str] = typer.Option(
        [],
        "--number",
        help=(
            "NUMBER=ADDRESS of a voice webhook, or NUMBER=busy, no-answer, failed, voicemail; "
            "may be repeated."
        ),
    ),
    ring: str = typer.Option(
        "", metavar="NUMBER", help="Ring the agent from this number, talk, hang up and exit."
    ),
    say: list[str] = typer.Option(
        [], "--say", help="With --ring: what the caller says, line by line; without it you type."
    ),
    carrier: str = typer.Option("twilio", help="With --ring: twilio or telnyx."),
    voice: str = typer.Option(
        "words",
        help="With --ring, on streamed calls: words (for the lab's engines), espeak or tones.",
    ),
    twice: list[str] = typer.Option(
        [],
        "--twice",
        metavar="KIND",
        help="Webhooks that come twice: `completed`, `call.hangup` … or `*`.",
    ),
    late: list[str] = typer.Option(
        [], "--late", metavar="KIND=SECONDS", help="Webhooks that come late; others overtake them."
    ),
    fault: list[str] = typer.Option(
        [],
        "--fault",
        metavar="SERVER=KIND",
        help="What goes wrong with the next request: `anthropic=rate_limit`, `deepgram=mute` …",
    ),
    reply: list[str] = typer.Option(
        [],
        "--reply",
        help="What the agent on the emulated voice engines answers, one after the other.",
    ),
    model: list[str] = typer.Option(
        [], "--model", help="One more model name that the emulated model servers know."
    ),
    real_time: bool = typer.Option(
        False, "--real-time", help="Speech takes as long as speaking it does."
    ),
    as_json: bool = typer.Option(False, "--json", help="What to set, or the call, as JSON."),
) -> None:
    """A phone network in a box: carriers, voice engines, models and sinks, emulated on this
    machine, for your agent to talk to.
    """
    if carrier not in ("twilio", "telnyx"):
        raise ConfigError("lab: --carrier is twilio or telnyx")
    if voice not in ("words", "espeak", "tones"):
        raise ConfigError("lab: --voice is words, espeak or tones")
    console = get_cli_context(context).console
    wanted = {"agent": agent, "caller": ring, "carrier": carrier, "voice": voice}
    if ring and _is_port_in_use(port):  # a lab is running there, and the agent may be pointed at it
        asyncio.run(place_call(console, f"http://127.0.0.1:{port}", wanted, say, as_json=as_json))
        return
    with open_listening_socket("127.0.0.1", port) as listening:
        orders = LabOptions(agent, number, real_time, reply, model, fault)
        box = configure_lab(f"http://127.0.0.1:{listening.getsockname()[1]}", orders)
        box.set_delivery_faults(parse_webhook_habits(twice, late))
        if ring:
            asyncio.run(_serve_one_call(console, box, listening, wanted, say, as_json=as_json))
        else:
            asyncio.run(_serve_until_stopped(console, box, listening, as_json=as_json))


@dataclass(frozen=True)
class LabOptions:
    """What was wanted of a box."""

    agent: str
    numbers: list[str]
    real_time: bool
    replies: list[str]
    models: list[str]
    faults: list[str]


def parse_webhook_habits(twice: list[str], late: list[str]) -> "DeliveryFaults":
    from aftercall.lab.webhook_sender import DeliveryFaults

    try:
        delays = {kind: float(seconds) for kind, seconds in (spec.split("=", 1) for spec in late)}
    except ValueError:
        raise ConfigError("lab: --late is KIND=SECONDS, as in completed=2.5") from None
    return DeliveryFaults(frozenset(twice), delays)


def configure_lab(address: str, orders: LabOptions) -> "Lab":
    from aftercall.lab.faults import queue_fault
    from aftercall.lab.numbers import LabNumber, parse_number
    from aftercall.lab.script import reply_in_order
    from aftercall.lab.server import DEFAULT_REPLY, make_lab

    script = reply_in_order(*orders.replies, then=DEFAULT_REPLY)
    box = make_lab(
        address, TOKEN, ACCOUNT, TELNYX_KEY, in_real_time=orders.real_time, script=script
    )
    box.models += tuple(orders.models)
    box.exchange.numbers[OUR_NUMBER] = LabNumber(
        f"{orders.agent}/twilio/voice", f"{orders.agent}/twilio/status"
    )
    box.exchange.numbers.update(parse_number(spec) for spec in orders.numbers)
    for fault in orders.faults:
        queue_fault(box, fault)
    return box


def _is_port_in_use(port: int) -> bool:
    with socket.socket() as probe:
        return port != 0 and probe.connect_ex(("127.0.0.1", port)) == 0


async def _serve_one_call(
    console: Console,
    box: "Lab",
    listening: socket.socket,
    wanted: dict[str, str],
    lines: list[str],
    *,
    as_json: bool,
) -> None:
    async with _serving(box, listening):
        await place_call(console, box.address, wanted, lines, as_json=as_json)


@asynccontextmanager
async def _serving(box: "Lab", listening: socket.socket) -> AsyncIterator[None]:
    from aftercall.lab.control_api import make_router
    from aftercall.lab.server import make_server

    app = make_server(box)
    app.include_router(make_router(box))
    server = make_uvicorn_server(app)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn tells nobody
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        await task


async def _serve_until_stopped(
    console: Console, box: "Lab", listening: socket.socket, *, as_json: bool
) -> None:
    stopped = asyncio.Event()
    async with _serving(box, listening):
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        _show(console, box, as_json=as_json)
        await stopped.wait()


def _show(console: Console, box: "Lab", *, as_json: bool) -> None:
    from aftercall.lab.control_api import make_exports

    exports = make_exports(box, OUR_NUMBER)
    numbers = {
        number: plan.outcome or plan.voice_url for number, plan in box.exchange.numbers.items()
    }
    if as_json:
        settings = {name: value for group in exports.values() for name, value in group.items()}
        console.print_json(
            data={
                "address": box.address,
                "settings": settings,
                "numbers": numbers,
                "models": box.models,
            },
            indent=None,
        )
        return
    console.print(
        f"The lab listens on {box.address}  (stop with Ctrl-C). Point your agent at what it "
        "uses of it:"
    )
    for server, settings in exports.items():
        console.print(f"\n# {server}")
        for name, value in settings.items():
            console.print(f"export {name}='{value}'", soft_wrap=True)
    console.print("\nNumbers:")
    for number, plan in numbers.items():
        console.print(f"  {number}  {plan}")
    console.print(
        "\nRing it: aftercall lab --ring +15550100 --say 'Hello!'   (--carrier telnyx; or "
        f"POST {box.address}/lab/calls)"
    )
