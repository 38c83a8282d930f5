"""`aftercall demo`: the main job end to end, with no account and no key, on loopback only."""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import typer
from rich.console import Console
from rich.text import Text

from aftercall.cli.context import get_cli_context
from aftercall.errors import AftercallError
from aftercall.lab.github import EmulatedGitHub
from aftercall.lab.twilio import EmulatedTwilio, LabCall
from aftercall.model.steps import OPEN_STATES

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


def demo(context: typer.Context) -> None:
    """Ring through an emulated phone network, lose the server in the middle of a call, go on,
    and be remembered.
    """
    console = get_cli_context(context).console
    home = Path(tempfile.mkdtemp(prefix="aftercall-demo-"))
    asyncio.run(_run_demo(_DemoPrinter(console), home))


async def _run_demo(show: "_DemoPrinter", home: Path) -> None:
    address = f"http://127.0.0.1:{_free_port()}"
    async with EmulatedTwilio(TOKEN) as twilio:
        phone = _Phone(show, twilio, address)
        show.print_step("A server starts on this machine; an emulated Twilio has its number")
        with _server(home, address) as server:
            show.print_note(f"{address}, its home is {home}")
            show.print_step(f"{CALLER} rings and asks for things")
            await phone.ring(*FIRST_CALL)
            await phone.hang_up()
            show.print_step("They hang up. The call is sealed, and what comes after it is done")
            for step in (await _wait_for_call(address, 1))["steps"]:
                show.print_note(
                    f"{step['state']:8} {step['name']:9} {step['result'] or step['reason']}"
                )
            show.print_step(
                "They ring again, and in the middle of the call the server is killed (kill -9)"
            )
            await phone.ring(*BEFORE_THE_CRASH)
            server.kill()
        show.print_step(
            "The server starts again: the interrupted call is sealed with every word that was said"
        )
        with _server(home, address):
            call = await _wait_for_call(address, 2)
            show.print_note(
                f"{call['state']}, {call['end_reason']}: "
                + " / ".join(turn["text"] for turn in call["turns"])
            )
            show.print_step(
                "The caller is still on the line and just goes on; the legs are one conversation"
            )
            await phone.say(*AFTER_THE_CRASH)
            await phone.hang_up()
            await _wait_for_call(address, 3)
        show.print_step(
            "Later, when the reconnect window has passed, what was asked for is seen to: once,"
            " and nothing that was taken back"
        )
        with (
            EmulatedGitHub(TOKEN) as github,
            _server(home, address, AFTERCALL_RECONNECT_WINDOW_S="0", **_issues_at(github)),
        ):
            items = await _wait_for_followups(address)
            show.print_items(items)
            show.print_step(
                "A bug report leaves this machine, and anybody can claim a number: it waited "
                "for approval, and now gets it"
            )
            for item in items:
                if item["state"] == "held":
                    _run(home, "followups", "approve", item["id"])
            show.print_items(
                [
                    item
                    for item in await _wait_for_followups(address)
                    if "://" in (item["link"] or "")
                ]
            )
            show.print_step("They ring once more and are remembered")
            await phone.ring(*NEXT_CALL)
            await _wait_for_call(address, 4)
    show.print_step("Every file of the archive is proven")
    show.print_note(_run(home, "verify").strip())
    show.print_note(_run(home, "health").strip().partition("\n")[0])
    show.print_step("What was written")
    workspace = home / "workspace"
    for path in sorted(
        [*(home / "archive").glob("*.json*"), *workspace.rglob("*.md"), *workspace.rglob("*.txt")]
    ):
        show.print_note(str(path))
    show.print_step(f"Look around: AFTERCALL_HOME={home} {sys.executable} -m aftercall calls list")


@dataclass
class _DemoPrinter:
    """What the demo tells, step by step."""

    console: Console
    number: int = 0

    def print_step(self, text: str) -> None:
        self.number += 1
        self.console.print(
            Text.assemble("\n", (f"{self.number:2}", "bold cyan"), " ", (text, "bold"))
        )

    def print_note(self, text: str) -> None:
        self.console.print(Text.assemble("   ", (text, "dim")))

    def print_items(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            self.print_note(
                f"{item['standing']:10} {item['title']}  {item['link'] or item['reason']}"
            )

    def print_speech(self, speaker: str, text: str) -> None:
        self.console.print(Text.assemble("   ", (f"{speaker:7}", "bold"), text))


class _Phone:
    """The caller's phone on the emulated network."""

    def __init__(self, show: _DemoPrinter, twilio: EmulatedTwilio, address: str) -> None:
        self._show = show
        self._twilio = twilio
        self._address = address
        self._call: LabCall | None = None

    async def ring(self, *lines: str) -> None:
        self._call = await self._twilio.ring(
            f"{self._address}/twilio/voice",
            caller=CALLER,
            status_url=f"{self._address}/twilio/status",
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

    def _require_call(self) -> LabCall:
        if self._call is None:
            raise AftercallError("nobody is on the line")
        return self._call


@contextmanager
def _server(home: Path, address: str, **settings: str) -> Iterator["subprocess.Popen[str]"]:
    arguments = [sys.executable, "-m", "aftercall", "serve", "--port", address.rpartition(":")[2]]
    environment = (
        _environment(home)
        | {"AFTERCALL_PUBLIC_URL": address, "TWILIO_AUTH_TOKEN": TOKEN}
        | settings
    )
    process = subprocess.Popen(
        arguments,
        env=environment,
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        if not process.stdout or "http://" not in process.stdout.readline():
            raise AftercallError("the demo's server did not start; `aftercall doctor` may say why")
        yield process
    finally:
        process.terminate()
        process.wait(DEMO_TIMEOUT_S)
        if process.stdout:
            process.stdout.close()


def _issues_at(github: EmulatedGitHub) -> dict[str, str]:
    return {
        "GITHUB_TOKEN": TOKEN,
        "AFTERCALL_GITHUB_REPOSITORY": github.repository,
        "AFTERCALL_GITHUB_API_URL": github.url,
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(home: Path) -> dict[str, str]:
    """The embedded defaults, whatever is configured around us."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
    }
    return inherited | {"AFTERCALL_HOME": str(home)}


async def _wait_for_call(address: str, number: int) -> dict[str, Any]:
    """The call that is the `number`th so far, as the API tells it, once every step has come to
    its end.
    """
    async with (
        asyncio.timeout(DEMO_TIMEOUT_S),
        httpx2.AsyncClient(base_url=address, trust_env=False) as http,
    ):
        while True:
            calls = (await http.get("/api/calls")).json()["calls"]
            if len(calls) >= number:
                call: dict[str, Any] = (await http.get(f"/api/calls/{calls[-number]['id']}")).json()
                if call["steps"] and all(
                    step["state"] not in OPEN_STATES for step in call["steps"]
                ):
                    return call
            await asyncio.sleep(0.2)


async def _wait_for_followups(address: str) -> list[dict[str, Any]]:
    """Requests and promises of every call so far, oldest first, once nothing is pending."""
    async with (
        asyncio.timeout(DEMO_TIMEOUT_S),
        httpx2.AsyncClient(base_url=address, trust_env=False) as http,
    ):
        while True:
            if not (await http.get("/api/health")).json()["counts"]["pending"]:
                items: list[dict[str, Any]] = (await http.get("/api/followups")).json()["followups"]
                return items[::-1]
            await asyncio.sleep(0.2)


def _run(home: Path, *words: str) -> str:
    arguments = [sys.executable, "-m", "aftercall", *words]
    return subprocess.run(
        arguments, env=_environment(home), cwd=home, capture_output=True, text=True, check=True
    ).stdout
