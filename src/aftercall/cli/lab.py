"""`aftercall lab`: serves the phone network in a box, or rings an agent through it."""

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2
import typer
from rich.console import Console
from rich.text import Text

from aftercall.cli.context import get_cli_context
from aftercall.errors import AftercallError, ConfigError
from aftercall.model.json_fields import Json
from aftercall.web.uvicorn_server import make_uvicorn_server, open_listening_socket

if TYPE_CHECKING:
    from aftercall.lab.carrier import DeliveryFaults
    from aftercall.lab.server import Lab

LAB_TIMEOUT_S = 90.0
ACCOUNT = "AC" + "1ab" * 10 + "00"
TOKEN = "lab-token"  # noqa: S105 - opens nothing but the lab
TELNYX_KEY = "KEY-lab"
OUR_NUMBER = "+15550101"


_PORT = typer.Option(
    8090, min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one."
)
AGENT = "http://127.0.0.1:8080"
_AGENT = typer.Option(
    "",
    help=f"Where your agent listens; {AGENT} if unset, or as a running lab was told.",
)
_NUMBER = typer.Option(
    [],
    "--number",
    help=(
        "NUMBER=ADDRESS of a voice webhook, or NUMBER=busy, no-answer, failed, voicemail; "
        "may be repeated."
    ),
)
_RING = typer.Option(
    "",
    metavar="NUMBER",
    help="Ring the agent from this number, talk, hang up and exit.",
)
_SAY = typer.Option(
    [],
    "--say",
    help="With --ring: what the caller says, line by line; without it you type.",
)
_CARRIERS = ("twilio", "telnyx", "elevenlabs", "vapi", "retell", "bland")
_CARRIER = typer.Option("twilio", help=f"With --ring: {', '.join(_CARRIERS)}.")
_VOICE = typer.Option(
    "words",
    help="With --ring, on streamed calls: words (for the lab's engines), espeak or tones.",
)
_TWICE = typer.Option(
    [],
    "--twice",
    metavar="KIND",
    help="Webhooks that come twice: `completed`, `call.hangup` … or `*`.",
)
_LATE = typer.Option(
    [],
    "--late",
    metavar="KIND=SECONDS",
    help="Webhooks that come late; others overtake them.",
)
_FAULT = typer.Option(
    [],
    "--fault",
    metavar="SERVER=KIND",
    help="What goes wrong with the next request: `anthropic=rate_limit`, `deepgram=mute` …",
)
_REPLY = typer.Option(
    [],
    "--reply",
    help="What the agent on the emulated voice engines answers, one after the other.",
)
_MODEL = typer.Option(
    [], "--model", help="One more model name that the emulated model servers know."
)
_REAL_TIME = typer.Option(
    False, "--real-time", help="Speech takes as long as speaking it does."
)
_AS_JSON = typer.Option(False, "--json", help="What to set, or the call, as JSON.")


def lab(
    context: typer.Context,
    port: int = _PORT,
    agent: str = _AGENT,
    number: list[str] = _NUMBER,
    ring: str = _RING,
    say: list[str] = _SAY,
    carrier: str = _CARRIER,
    voice: str = _VOICE,
    twice: list[str] = _TWICE,
    late: list[str] = _LATE,
    fault: list[str] = _FAULT,
    reply: list[str] = _REPLY,
    model: list[str] = _MODEL,
    real_time: bool = _REAL_TIME,
    as_json: bool = _AS_JSON,
) -> None:
    """A phone network in a box: carriers, voice engines, models and sinks, emulated on this
    machine, for your agent to talk to.
    """
    if carrier not in _CARRIERS:
        raise ConfigError(f"lab: --carrier is one of {', '.join(_CARRIERS)}")
    if voice not in ("words", "espeak", "tones"):
        raise ConfigError("lab: --voice is words, espeak or tones")
    console = get_cli_context(context).console
    order = {"caller": ring, "carrier": carrier, "voice": voice}
    order |= {"agent": agent} if agent else {}
    call = LabCallCommand(console, order, say, as_json)
    if ring and _is_port_in_use(port):  # rings through the lab that runs there
        asyncio.run(call.place(f"http://127.0.0.1:{port}"))
        return
    with open_listening_socket("127.0.0.1", port) as listening:
        options = LabOptions(agent or AGENT, number, real_time, reply, model, fault)
        box = configure_lab(f"http://127.0.0.1:{listening.getsockname()[1]}", options)
        box.set_delivery_faults(parse_delivery_faults(twice, late))
        if ring:
            asyncio.run(_serve_one_call(box, listening, call))
        else:
            asyncio.run(_serve_until_stopped(console, box, listening, as_json=as_json))


@dataclass(frozen=True)
class LabOptions:
    agent: str
    numbers: list[str]
    real_time: bool
    replies: list[str]
    models: list[str]
    faults: list[str]


def parse_delivery_faults(twice: list[str], late: list[str]) -> "DeliveryFaults":
    from aftercall.lab.carrier import DeliveryFaults

    try:
        delays = {
            kind: float(seconds)
            for kind, seconds in (spec.split("=", 1) for spec in late)
        }
    except ValueError:
        raise ConfigError("lab: --late is KIND=SECONDS, as in completed=2.5") from None
    return DeliveryFaults(frozenset(twice), delays)


def configure_lab(address: str, options: LabOptions) -> "Lab":
    from aftercall.lab.engine import reply_in_order
    from aftercall.lab.exchange import make_agent_number, parse_number
    from aftercall.lab.server import DEFAULT_REPLY, make_lab

    script = reply_in_order(*options.replies, then=DEFAULT_REPLY)
    box = make_lab(
        address,
        TOKEN,
        ACCOUNT,
        TELNYX_KEY,
        in_real_time=options.real_time,
        script=script,
    )
    box.models += tuple(options.models)
    box.exchange.numbers[OUR_NUMBER] = make_agent_number(options.agent.rstrip("/"))
    box.exchange.numbers.update(parse_number(spec) for spec in options.numbers)
    for fault in options.faults:
        box.queue_fault(fault)
    return box


@dataclass
class LabCallCommand:
    """One call through the lab's HTTP routes, with lines from the command or typed ones."""

    console: Console
    order: dict[str, str]
    lines: list[str]
    as_json: bool
    turns: list[dict[str, str]] = field(default_factory=list)

    async def place(self, address: str) -> None:
        async with httpx2.AsyncClient(
            base_url=address, timeout=LAB_TIMEOUT_S, trust_env=False
        ) as http:
            call = await self._post(http, "", self.order)
            script = self._read_lines()
            while not call["is_over"]:
                line = await asyncio.to_thread(next, script, "")
                if not line:
                    break
                self._add_turn("caller", line, is_shown=bool(self.lines))
                call = await self._post(http, f"/{call['call']}/say", {"text": line})
            call = await self._post(http, f"/{call['call']}/hang-up", {})
        if self.as_json:
            parties = {"carrier": self.order["carrier"], "caller": self.order["caller"]}
            self.console.print_json(
                data=parties | {"turns": self.turns, "trouble": call["trouble"]}
            )
        if call["trouble"]:
            raise AftercallError(f"lab: the call failed: {call['trouble']}")

    def _read_lines(self) -> Iterator[str]:
        """The caller's lines; at the terminal an empty line hangs up."""
        yield from self.lines
        while not self.lines:
            sys.stdout.write("caller  ")
            sys.stdout.flush()
            yield sys.stdin.readline().strip()

    async def _post(
        self, http: httpx2.AsyncClient, path: str, body: dict[str, str]
    ) -> Json:
        address = str(http.base_url).rstrip("/")
        try:
            answer = await http.post(f"/lab/calls{path}", json=body)
        except httpx2.HTTPError as error:
            raise AftercallError(
                f"lab: no answer from {address} ({type(error).__name__}); choose another --port"
            ) from None
        if answer.status_code not in (200, 201):
            raise AftercallError(
                f"lab: the server at {address} is not a lab, or refused "
                f"({answer.status_code}); choose another --port"
            )
        call: Json = answer.json()
        for text in call["heard"]:
            self._add_turn("agent", text)
        return call

    def _add_turn(self, speaker: str, text: str, *, is_shown: bool = True) -> None:
        self.turns.append({"speaker": speaker, "text": text})
        if is_shown and not self.as_json:
            self.console.print(Text.assemble((f"{speaker:6}", "bold"), f"  {text}"))


def _is_port_in_use(port: int) -> bool:
    with socket.socket() as probe:
        return port != 0 and probe.connect_ex(("127.0.0.1", port)) == 0


async def _serve_one_call(
    box: "Lab", listening: socket.socket, call: LabCallCommand
) -> None:
    async with _serving(box, listening):
        await call.place(box.address)


async def _serve_until_stopped(
    console: Console, box: "Lab", listening: socket.socket, *, as_json: bool
) -> None:
    stopped = asyncio.Event()
    async with _serving(box, listening):
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        _show(console, box, as_json=as_json)
        await stopped.wait()


@asynccontextmanager
async def _serving(box: "Lab", listening: socket.socket) -> AsyncIterator[None]:
    from aftercall.lab.server import make_router, make_server

    app = make_server(box)
    app.include_router(make_router(box))
    started = asyncio.Event()
    server = make_uvicorn_server(app, started.set)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    task.add_done_callback(lambda _: started.set())
    await started.wait()
    try:
        yield
    finally:
        server.should_exit = True
        await task


def _show(console: Console, box: "Lab", *, as_json: bool) -> None:
    from aftercall.lab.server import make_exports

    exports = make_exports(box, OUR_NUMBER)
    numbers = {
        number: plan.outcome or plan.voice_url
        for number, plan in box.exchange.numbers.items()
    }
    if as_json:
        settings = {
            name: value for group in exports.values() for name, value in group.items()
        }
        shown = {"address": box.address, "settings": settings}
        shown |= {"numbers": numbers, "models": box.models}
        console.print_json(data=shown, indent=None)
        return
    console.print(
        f"The lab listens on {box.address}  (stop with Ctrl-C). Set what your agent uses of it:"
    )
    for server, settings in exports.items():
        console.print(f"\n# {server}")
        for name, value in settings.items():
            console.print(f"export {name}='{value}'", soft_wrap=True)
    console.print("\nNumbers:")
    for number, plan in numbers.items():
        console.print(f"  {number}  {plan}")
    console.print(
        f"\nRing it: aftercall lab --port {urlsplit(box.address).port} --ring +15550100 "
        f"--say 'Hello!'   (--carrier telnyx; or POST {box.address}/lab/calls)"
    )
