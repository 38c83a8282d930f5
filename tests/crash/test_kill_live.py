"""kill -9 of an agent elsewhere, and of the server, in the middle of live calls: every turn that
the agent was acknowledged is archived once, in order.
"""

import asyncio
import os
import random
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from aftercall.app import App, build
from aftercall.client import Client
from aftercall.settings import Settings
from crash import live_agent_process
from crash.killable_server import MortalServer
from waiting import until

SOAK = bool(os.environ.get("AFTERCALL_SOAK"))
RUNS = 100 if SOAK else 3  # of each kind
TURNS = 40
MAX_LEGS = 100 * RUNS
TOKEN = "live-0123456789abcdefghijklmnopqrs"


class Agent:
    """Processes of one agent: they share a spool."""

    def __init__(self, address: str, folder: Path) -> None:
        self._address = address
        self._spool = folder / "spool"
        self._notes = folder / "notes"
        self._notes.touch()

    def read_notes(self) -> list[str]:
        return self._notes.read_text().splitlines()

    async def start(self, sid: str) -> asyncio.subprocess.Process:
        """Returns when the first turns are acknowledged."""
        known = len(self.read_notes())
        arguments = (self._address, TOKEN, self._spool, sid, TURNS, self._notes)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(live_agent_process.__file__),
            *map(str, arguments),
        )
        await until(lambda: len(self.read_notes()) > known)
        return process

    async def send_leftovers(self) -> None:
        async with Client(self._address, TOKEN, spool=self._spool):
            await until(lambda: not self.has_unsent())

    def has_unsent(self) -> bool:
        files = self._spool.glob("*.call")
        return any(file.read_bytes().count(b"\n") > 2 for file in files)


def read_archived(app: App) -> dict[str, list[str]]:
    """Sid to its texts, over its legs."""
    texts: dict[str, list[str]] = defaultdict(list)
    rows = app.store.list_page(limit=MAX_LEGS)
    assert len(rows) < MAX_LEGS
    for row in sorted(rows, key=lambda row: row.live.id):
        sid = str(row.live.metadata.get("call_sid", row.live.sid))
        call = app.archive.read(str(row.archive_name))[0]
        texts[sid] += [turn.text for turn in call.turns]
    return texts


@pytest.mark.timeout(3600 if SOAK else 120)
async def test_acknowledged_turns_survive_the_death_of_agent_and_server(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    luck = random.Random(20260213)
    server = MortalServer(home, AFTERCALL_API_TOKEN=TOKEN, AFTERCALL_LIVE_LEASE_S="2")
    agent = Agent(server.address, tmp_path)
    await server.start()
    for run in range(RUNS):
        doomed = await agent.start(f"agent{run}")
        await asyncio.sleep(luck.uniform(0, 0.3))
        doomed.kill()
        await doomed.wait()
        living = await agent.start(f"server{run}")
        await asyncio.sleep(luck.uniform(0, 0.3))
        await server.kill()
        await asyncio.sleep(luck.uniform(0, 0.3))
        await server.start()
        assert await living.wait() == 0
    await agent.send_leftovers()
    app = build(Settings(home=home))
    try:
        await until(lambda: app.store.list_unsealed() == [])
        archived = read_archived(app)
        legs = len(app.store.list_page(limit=MAX_LEGS))
    finally:
        app.close()
        await server.stop()
    acknowledged = agent.read_notes()
    print(f"{2 * RUNS} kills, {len(acknowledged)} turns acknowledged, {legs} legs")
    assert len(acknowledged) > RUNS * TURNS
    for sid, texts in archived.items():
        noted = [text for text in acknowledged if text.startswith(f"{sid} ")]
        assert [text for text in texts if text in noted] == noted
        assert len(set(texts)) == len(texts)
    assert set(acknowledged) <= {text for texts in archived.values() for text in texts}
