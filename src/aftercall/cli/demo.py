"""`aftercall demo`: the main job end to end, with no account and no key, on loopback only."""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import typer
from rich.console import Console
from rich.text import Text

from aftercall.cli.context import get_cli_context
from aftercall.encryption import load_api_token
from aftercall.errors import AftercallError
from aftercall.model.json_fields import Json
from aftercall.model.reading import OPEN_STATES
from aftercall.settings import Settings

if TYPE_CHECKING:
    from aftercall.lab.twilio import EmulatedTwilio, LabCall

CALLER = "+15550100"
TOKEN = "the-demo's-own-token"  # noqa: S105 - both ends of the emulated line are ours
FIRST_CALL = (
    "Hi, this is Bill Harker.",
    "Could you open a bug about the broken thumbnails on the gallery page?",
    (
        "And remind me to follow up with Markus on Tuesday. And please book a table for four for "
        "tomorrow."
    ),
    "Actually, scratch the table.",
)
BEFORE_THE_CRASH = ("Please send Dana the signed contract.",)
AFTER_THE_CRASH = ("Please send Dana the signed contract by Friday.",)
NEXT_CALL = ("What did we talk about last time?", "That's all, thanks, bye!")
DEMO_TIMEOUT_S = 30.0
POLL_INTERVAL_S = 0.2


def demo(context: typer.Context) -> None:
    """Ring through an emulated phone network, lose the server in the middle of a call, go on,
    and be remembered. On a terminal it ends on the pages and stays until Ctrl-C.
    """
    console = get_cli_context(context).console
    home = Path(tempfile.mkdtemp(prefix="aftercall-demo-"))
    address = f"http://127.0.0.1:{_free_port()}"
    show = DemoPrinter(console)
    asyncio.run(_run_demo(show, home, address))
    if console.is_terminal and not os.environ.get("CI"):
        show_pages(show, home, address)


async def _run_demo(show: "DemoPrinter", home: Path, address: str) -> None:
    from aftercall.lab.twilio import EmulatedTwilio

    async with EmulatedTwilio(TOKEN) as twilio:
        phone = _Phone(show, twilio, address)
        await _call_and_crash(show, phone, home)
        await _continue_call(show, phone, home)
        await _follow_up_and_ring_back(show, phone, home)
    show.print_step("Every file of the archive is proven")
    show.print_note(_run(home, "verify").strip())
    show.print_note(_run(home, "health").strip().partition("\n")[0])
    show.print_step("The files")
    workspace = home / "workspace"
    files = [*(home / "archive").glob("*.json*"), *workspace.rglob("*.md")]
    for path in sorted([*files, *workspace.rglob("*.txt")]):
        show.print_note(str(path))
    show.print_step(
        f"Look around: AFTERCALL_HOME={home} {sys.executable} -m aftercall calls list"
    )


def show_pages(show: "DemoPrinter", home: Path, address: str) -> None:
    """Serves the pages with the demo's calls until Ctrl-C."""
    with _server(home, address, AFTERCALL_RECONNECT_WINDOW_S="0") as server:
        assert server.stdout  # noqa: S101 - a pipe, as _server opens it
        link = server.stdout.readline().partition("http")
        show.print_step("See it all in a browser; this link logs you in, once")
        show.print_note(f"{link[1]}{link[2].strip()}")
        show.print_note("Ctrl-C ends the demo.")
        with suppress(KeyboardInterrupt):
            server.wait()


async def _call_and_crash(show: "DemoPrinter", phone: "_Phone", home: Path) -> None:
    show.print_step(
        "A server starts on this machine; an emulated Twilio has its number"
    )
    with _server(home, phone.address) as server:
        show.print_note(f"{phone.address}, its home is {home}")
        show.print_step(f"{CALLER} rings and asks for things")
        await phone.ring(*FIRST_CALL)
        await phone.hang_up()
        show.print_step(
            "The caller hangs up. The call is sealed and the post-call steps run"
        )
        for step in (await _wait_for_call(home, phone.address, 1))["steps"]:
            result = step["result"] or step["reason"]
            show.print_note(f"{step['state']:8} {step['name']:9} {result}")
        show.print_step(
            "The caller rings again; mid-call the server is killed (kill -9)"
        )
        await phone.ring(*BEFORE_THE_CRASH)
        server.kill()


async def _continue_call(show: "DemoPrinter", phone: "_Phone", home: Path) -> None:
    show.print_step(
        "The server starts again and seals the interrupted call with every turn"
    )
    with _server(home, phone.address):
        call = await _wait_for_call(home, phone.address, 2)
        words = " / ".join(turn["text"] for turn in call["turns"])
        show.print_note(f"{call['state']}, {call['end_reason']}: {words}")
        show.print_step(
            "The caller, still on the line, goes on; both legs are one conversation"
        )
        await phone.say(*AFTER_THE_CRASH)
        await phone.hang_up()
        await _wait_for_call(home, phone.address, 3)


async def _follow_up_and_ring_back(
    show: "DemoPrinter", phone: "_Phone", home: Path
) -> None:
    from aftercall.lab.services import EmulatedGitHub

    show.print_step(
        "After the reconnect window each request is carried out once; a withdrawn one is not"
    )
    with EmulatedGitHub(TOKEN) as github:
        settings = {
            "AFTERCALL_RECONNECT_WINDOW_S": "0",
            "GITHUB_TOKEN": TOKEN,
            "AFTERCALL_GITHUB_REPOSITORY": github.repository,
            "AFTERCALL_GITHUB_API_URL": github.url,
        }
        with _server(home, phone.address, **settings):
            items = await _wait_for_followups(home, phone.address)
            show.print_items(items)
            show.print_step(
                "A bug report leaves this machine and a caller's number can be forged: the "
                "report waited for approval, and now gets it"
            )
            for item in items:
                if item["state"] == "held":
                    _run(home, "followups", "approve", item["id"])
            items = await _wait_for_followups(home, phone.address)
            show.print_items([item for item in items if "://" in (item["link"] or "")])
            show.print_step("The caller rings once more and is remembered")
            await phone.ring(*NEXT_CALL)
            await _wait_for_call(home, phone.address, 4)


@dataclass
class DemoPrinter:
    console: Console
    number: int = 0

    def print_step(self, text: str) -> None:
        self.number += 1
        number = (f"{self.number:2}", "bold cyan")
        self.console.print(Text.assemble("\n", number, " ", (text, "bold")))

    def print_note(self, text: str) -> None:
        self.console.print(Text.assemble("   ", (text, "dim")))

    def print_items(self, items: list[Json]) -> None:
        for item in items:
            outcome = item["link"] or item["reason"]
            self.print_note(f"{item['standing']:10} {item['title']}  {outcome}")

    def print_speech(self, speaker: str, text: str) -> None:
        self.console.print(Text.assemble("   ", (f"{speaker:7}", "bold"), text))


class _Phone:
    """The caller's phone on the emulated network; `address` is the server's."""

    def __init__(
        self, show: DemoPrinter, twilio: "EmulatedTwilio", address: str
    ) -> None:
        self.address = address
        self._show = show
        self._twilio = twilio
        self._call: LabCall | None = None

    async def ring(self, *lines: str) -> None:
        self._call = await self._twilio.ring(
            f"{self.address}/twilio/voice",
            caller=CALLER,
            status_url=f"{self.address}/twilio/status",
        )
        self._print_heard()
        await self.say(*lines)

    async def say(self, *lines: str) -> None:
        for line in lines:
            self._show.print_speech("caller", line)
            await self._twilio.say(self._require_call(), line)
            self._print_heard()

    async def hang_up(self) -> None:
        await self._twilio.hang_up(self._require_call())

    def _print_heard(self) -> None:
        call = self._require_call()
        for text in call.heard:
            self._show.print_speech("agent", text)
        call.heard.clear()
        if call.fault:
            raise AftercallError(f"the emulated line failed: {call.fault}")

    def _require_call(self) -> "LabCall":
        if self._call is None:
            raise AftercallError("the phone has no call")
        return self._call


@contextmanager
def _server(
    home: Path, address: str, **settings: str
) -> Iterator["subprocess.Popen[str]"]:
    arguments = [
        sys.executable,
        "-m",
        "aftercall",
        "serve",
        "--port",
        address.rpartition(":")[2],
    ]
    ours = {"AFTERCALL_PUBLIC_URL": address, "TWILIO_AUTH_TOKEN": TOKEN}
    process = subprocess.Popen(
        arguments,
        env=_environment(home) | ours | settings,
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        if not process.stdout or "http://" not in process.stdout.readline():
            raise AftercallError(
                "the demo's server did not start; `aftercall doctor` may say why"
            )
        yield process
    finally:
        process.terminate()
        process.wait(DEMO_TIMEOUT_S)
        if process.stdout:
            process.stdout.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(home: Path) -> dict[str, str]:
    """The embedded defaults, whatever is configured around the demo."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
    inherited = {name: value for name, value in os.environ.items() if name in kept}
    return inherited | {"AFTERCALL_HOME": str(home)}


async def _wait_for_call(home: Path, address: str, number: int) -> Json:
    """The `number`th call so far, once all of its steps have ended."""
    async with _polling(home, address) as http:
        while True:
            calls = (await http.get("/api/calls")).json()["calls"]
            if len(calls) >= number:
                call: Json = (
                    await http.get(f"/api/calls/{calls[-number]['id']}")
                ).json()
                states = [step["state"] for step in call["steps"]]
                if states and not any(state in OPEN_STATES for state in states):
                    return call
            await asyncio.sleep(POLL_INTERVAL_S)


async def _wait_for_followups(home: Path, address: str) -> list[Json]:
    """Requests and promises of every call so far, oldest first, once nothing is pending."""
    async with _polling(home, address) as http:
        while True:
            if not (await http.get("/api/health")).json()["counts"]["pending"]:
                items: list[Json] = (await http.get("/api/followups")).json()[
                    "followups"
                ]
                return items[::-1]
            await asyncio.sleep(POLL_INTERVAL_S)


@asynccontextmanager
async def _polling(home: Path, address: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with the token that the server made in its home."""
    token = load_api_token(Settings(home=home)).get_secret_value()
    async with (
        asyncio.timeout(DEMO_TIMEOUT_S),
        httpx2.AsyncClient(
            base_url=address,
            headers={"Authorization": f"Bearer {token}"},
            timeout=None,
            trust_env=False,
        ) as http,
    ):
        yield http


def _run(home: Path, *words: str) -> str:
    arguments = [sys.executable, "-m", "aftercall", *words]
    return subprocess.run(
        arguments,
        env=_environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
