"""`aftercall demo`: the main job end to end, with no account and no key, on loopback only."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from aftercall.cli.stage import stage_of
from aftercall.errors import AftercallError

CALLER = "+15550100"
FIRST_CALL = (
    "Hi, this is Bill Harker.",
    "Could you open a bug about the broken thumbnails on the gallery page?",
    "And remind me to follow up with Markus on Tuesday. And please book a table for four for tomorrow.",
    "Actually, scratch the table.",
)
CUT_OFF = ("Please send Dana the signed contract.",)
RING_BACK = ("Sorry, we were cut off. Please send Dana the signed contract by Friday.",)
NEXT_CALL = ("What did we talk about last time?", "That's all, thanks, bye!")
PATIENCE_S = 30.0


def demo(context: typer.Context) -> None:
    """Ring the built-in receptionist, lose the server in the middle of a call, ring back, and be remembered."""
    console = stage_of(context).console
    home = Path(tempfile.mkdtemp(prefix="aftercall-demo-"))
    asyncio.run(_play(console, home))


async def _play(console: Console, home: Path) -> None:
    show = _Show(console)
    show.step("A server starts, with nothing configured")
    with _server(home) as server:
        show.note(f"{server.address}, its home is {home}")
        show.step(f"{CALLER} rings and asks for things")
        call_id = await _ring(show, server, FIRST_CALL)
        show.step("They hang up. The call is sealed, and what comes after it is done")
        for step in (await _finished(server, call_id))["steps"]:
            show.note(f"{step['state']:8} {step['name']:9} {step['result'] or step['reason']}")
        show.step("They ring again, and in the middle of the call the server is killed (kill -9)")
        lost = await _ring(show, server, CUT_OFF, kill=server)
    show.step("The server starts again: the interrupted call is sealed with every word that was said")
    with _server(home) as server:
        call = await _finished(server, lost)
        show.note(f"{call['state']}, {call['end_reason']}: " + " / ".join(turn["text"] for turn in call["turns"]))
        show.step("They ring back inside the reconnect window and go on where they were")
        await _finished(server, await _ring(show, server, RING_BACK))
    show.step("Later, when the window has passed, they ring once more and are remembered")
    with _server(home, AFTERCALL_RECONNECT_WINDOW_S="0") as server:
        await _finished(server, await _ring(show, server, NEXT_CALL))
    show.step("Every file of the archive is proven")
    show.note(_run(home, "verify").strip())
    show.step("What was written")
    workspace = home / "workspace"
    for path in sorted([*(home / "archive").glob("*.json*"), *workspace.rglob("*.md"), *workspace.rglob("*.txt")]):
        show.note(str(path))
    show.step(f"Look around: AFTERCALL_HOME={home} {sys.executable} -m aftercall calls list")


@dataclass
class _Show:
    """What the demo tells, step by step."""

    console: Console
    number: int = 0

    def step(self, text: str) -> None:
        self.number += 1
        self.console.print(f"\n[bold cyan]{self.number:2}[/] [bold]{escape(text)}[/]")

    def note(self, text: str) -> None:
        self.console.print(f"   [dim]{escape(text)}[/]")

    def said(self, speaker: str, text: str) -> None:
        self.console.print(f"   [bold]{speaker:7}[/]{escape(text)}")


@dataclass(frozen=True)
class _Server:
    address: str
    process: "subprocess.Popen[str]"


@contextmanager
def _server(home: Path, **settings: str) -> Iterator[_Server]:
    arguments = [sys.executable, "-m", "aftercall", "serve", "--port", "0"]
    environment = _environment(home) | settings
    process = subprocess.Popen(arguments, env=environment, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        line = process.stdout.readline() if process.stdout else ""
        address = next((word for word in line.split() if word.startswith("http://")), None)
        if address is None:
            raise AftercallError("the demo's server did not start; `aftercall doctor` may say why")
        yield _Server(address, process)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        if process.stdout:
            process.stdout.close()


def _environment(home: Path) -> dict[str, str]:
    """The embedded defaults, whatever is configured around us."""
    inherited = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")}
    return inherited | {"AFTERCALL_HOME": str(home)}


async def _ring(show: _Show, server: _Server, lines: tuple[str, ...], *, kill: _Server | None = None) -> str:
    """A call through the browser's door; returns its id. With `kill` the server dies after the last line."""
    address = server.address.replace("http://", "ws://")
    async with connect(f"{address}/browser/call?caller=%2B{CALLER[1:]}", proxy=None) as socket:
        heard = await _hear(show, socket)
        for line in lines:
            show.said("caller", line)
            await socket.send(json.dumps({"type": "say", "text": line}))
            heard = await _hear(show, socket)
        if kill:
            kill.process.kill()
        with suppress(ConnectionClosed):  # the agent may have hung up, or the server may be gone
            await socket.send(json.dumps({"type": "hang_up"}))
            await _hear(show, socket)
    return str(heard["call"])


async def _hear(show: _Show, socket: ClientConnection) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE_S))
    if message["type"] == "agent":
        show.said("agent", message["text"])
    return message


async def _finished(server: _Server, call_id: str) -> dict[str, Any]:
    """The call as the API tells it, once every step has come to its end."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            call = await asyncio.to_thread(_get, f"{server.address}/api/calls/{call_id}")
            if call["steps"] and all(step["state"] not in ("waiting", "running") for step in call["steps"]):
                return call
            await asyncio.sleep(0.2)


def _get(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - our own server on loopback
        found: dict[str, Any] = json.load(answer)
    return found


def _run(home: Path, *words: str) -> str:
    arguments = [sys.executable, "-m", "aftercall", *words]
    return subprocess.run(arguments, env=_environment(home), cwd=home, capture_output=True, text=True, check=True).stdout
