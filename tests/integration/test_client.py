"""`aftercall.client` against a real server that goes away and comes back."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.server import ServerConnection, serve

from aftercall.app import App, build
from aftercall.client import (
    CallInUse,
    CallRefused,
    CallWriter,
    Client,
    SyncClient,
    check_framework,
)
from aftercall.model.calls import Call
from aftercall.settings import Settings
from server_process import serving_on
from waiting import until

TOKEN = "client-0123456789abcdefghijklmnop"
EXAMPLE = Path(__file__).parents[2] / "examples" / "live_call.py"
HEAVY = ("fastapi", "sqlalchemy", "pydantic", "httpx2", "aftercall.app")


class Box:
    """A home, a port and a spool; the server runs within `serving`."""

    def __init__(self, folder: Path) -> None:
        self.home, self.spool = folder / "home", folder / "spool"
        self.home.mkdir(mode=0o700)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"

    @contextmanager
    def serving(self) -> Iterator[None]:
        with serving_on(self.port, self.home, {"AFTERCALL_API_TOKEN": TOKEN}):
            # so that the first call need not wait on a busy machine
            httpx2.get(f"{self.address}/readyz", timeout=60, trust_env=False)
            yield

    def client(self) -> Client:
        return Client(self.address, TOKEN, spool=self.spool)

    def read_calls(self) -> list[Call]:
        app: App = build(Settings(home=self.home))
        try:
            rows = sorted(app.store.list_page(limit=50), key=lambda row: row.live.id)
            return [app.archive.read(str(row.archive_name))[0] for row in rows]
        finally:
            app.close()


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def texts(call: Call) -> list[str]:
    return [turn.text for turn in call.turns]


MINE: dict[str, Any] = {"source": "mine", "sid": "1", "caller": "+15550100"}


def test_the_client_imports_nothing_heavy() -> None:
    code = (
        f"import sys, aftercall.client; print([m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


async def test_a_server_that_is_away_costs_no_word_and_repeats_none(box: Box) -> None:
    async with box.client() as client:
        call = client.call(**MINE)
        with box.serving():
            await call.__aenter__()
            first = call.id
            await call.turn("caller", "one")
            with pytest.raises(CallInUse):
                await box.client().call(**MINE).__aenter__()
        await call.turn("caller", "two")
        assert await call.search("anything") == (
            "That did not work just now. Say so; you may offer to take it down instead."
        )
        assert (await call.take_request("Ring Jim")).startswith("Taken down.")
        with box.serving():
            await call.turn("agent", "three")
            await call.end()
            await until(
                lambda: [path.name for path in box.spool.iterdir()] == ["sender"]
            )
            assert call.id != first
    legs = await asyncio.to_thread(box.read_calls)
    assert [texts(leg) for leg in legs] == [["one"], ["two", "three"]]
    assert [leg.end_reason for leg in legs] == ["server_stopped", "completed"]
    assert [event.data["title"] for event in legs[1].events] == ["Ring Jim"]
    assert legs[1].resumes == legs[0].id


async def test_what_a_recorder_adds_while_the_server_is_away_is_stored_in_order(
    box: Box,
) -> None:
    async with box.client() as client:
        call = client.call(**MINE)
        writer = CallWriter(call)
        with box.serving():
            await call.__aenter__()
            writer.add_turn("caller", "one", time.time())
            await until(call.drained.is_set)
        writer.add_turn("agent", "two", time.time(), is_interrupted=True)
        (spooled,) = box.spool.glob("*.call")
        await until(lambda: b"barge_in" in spooled.read_bytes())
        with box.serving():
            writer.add_turn("caller", "three", time.time())
            await writer.end("completed")
            await until(call.drained.is_set)
            writer.add_turn("caller", "too late", time.time())
    legs = await asyncio.to_thread(box.read_calls)
    assert [texts(leg) for leg in legs] == [["one"], ["two", "three"]]
    assert [event.kind for event in legs[1].events].count("barge_in") == 1


async def test_what_dead_agents_left_is_sent_one_call_after_the_other(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a process that dies again leaves one leg without an end, not one a call."""
    monkeypatch.setattr("aftercall.client.call.START_TIMEOUT_S", 0.1)
    for number in range(5):
        async with box.client() as client:
            call = await client.call(**MINE | {"sid": str(number)}).__aenter__()
            await call.turn("caller", "Hello?")
    begun: list[list[str]] = []

    async def hang_up_on_the_first(link: ServerConnection) -> None:
        begun.append([json.loads(await link.recv())["op"]])
        for _ in range(3):
            await (await link.ping())
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                begun[-1].append(json.loads(await link.recv())["op"])

    async with serve(hang_up_on_the_first, "127.0.0.1", box.port), box.client():
        await until(lambda: len(begun) > 1)
    assert begun[0] == ["start"]
    with box.serving():
        async with box.client():
            await until(lambda: not list(box.spool.glob("*.call")))
    assert [texts(call) for call in box.read_calls()] == [["Hello?"]] * 5


async def test_what_a_dead_agent_left_is_sent_by_the_next_one(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aftercall.client.call.START_TIMEOUT_S", 0.1)
    client = box.client()
    async with client.call(**MINE) as call:
        assert (call.id, call.briefing.text) == (None, "")
        for text in ("one", "two"):
            await call.turn("caller", text)
    await client.close()
    with box.serving():
        async with box.client():
            while len(list(box.spool.iterdir())) > 1:
                await asyncio.sleep(0.02)
    [sealed] = await asyncio.to_thread(box.read_calls)
    assert (texts(sealed), sealed.end_reason) == (["one", "two"], "completed")


async def test_a_briefing_that_comes_late_is_told_with_the_tools(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aftercall.client.call.START_TIMEOUT_S", 0.1)
    late: list[str] = []
    listen = lambda briefing: late.append(briefing.text)  # noqa: E731
    async with box.client() as client, client.call(**MINE, on_briefing=listen) as call:
        assert (call.tools, call.briefing.text, late) == ((), "", [])
        with box.serving():
            await until(lambda: bool(late))
            assert late == [call.briefing.text]
            assert [tool["name"] for tool in call.tools] == [
                "search_memory",
                "take_request",
            ]
            await call.turn("caller", "one")
            odd = {"query": "half a \ud83d character"}
            assert "Nothing" in await call.run_tool("search_memory", odd)
            assert "did not work" in await call.run_tool("fly", {})


@pytest.mark.parametrize("found", ["1.13.9", "2.0.0", ""])
def test_a_framework_that_is_too_old_too_new_or_missing_is_named(
    found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(package: str) -> str:
        if not found:
            raise PackageNotFoundError
        return found

    monkeypatch.setattr("aftercall.client.version", version)
    with pytest.raises(ImportError, match=r"pipecat-ai >= 1.14, < 2 is needed"):
        check_framework("pipecat-ai", (1, 14), 2)


def test_the_sync_client_and_what_is_refused(box: Box) -> None:
    with box.serving(), SyncClient(box.address, TOKEN, spool=box.spool) as client:
        with client.call(**MINE) as call:
            for speaker, text in (("dog", "x"), ("caller", "x" * 100_001)):
                with pytest.raises(ValueError, match=r"speaker|text"):
                    call.turn(speaker, text)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="kind"):
                call.event("passcode.right")
            call.turn("caller", "half a \ud83d character", confidence=0.5)
            call.event("tool.used", {"name": "x"})
            assert "Nothing was found" in call.search("plumber")
        with pytest.raises(CallRefused, match="has ended"):
            call.turn("caller", "late")
        with pytest.raises(CallRefused, match="caller: is not a phone number"):
            client.call(source="mine", sid="2", caller="Bob").__enter__()
    [sealed] = box.read_calls()
    assert texts(sealed) == ["half a ? character"]


def test_the_example_knows_in_its_second_call_what_was_said_in_the_first(
    box: Box,
) -> None:
    def ring(said: str) -> str:
        environment = {
            "AFTERCALL_URL": box.address,
            "AFTERCALL_API_TOKEN": TOKEN,
            "AFTERCALL_SPOOL": str(box.spool),
            "PYTHONPATH": ":".join(sys.path),
        }
        done = subprocess.run(
            [sys.executable, str(EXAMPLE), "+15550100"],
            input=said,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    with box.serving():
        first = ring("Please call the plumber.\n")
        assert "I have written that down." in first
        assert "plumber" in ring("").split("</briefing>")[0]
