"""A process that works on sealed calls and may be killed in the middle of it."""

import asyncio
from pathlib import Path

from aftercall import faults
from aftercall.app import build
from aftercall.cli.context import wait_for_steps
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from fakes import make_call


def run(home: str, database_url: str, fault: str, sids: list[str]) -> None:
    """Take the calls in, if they are new, and work until every step of each has come to its end."""
    faults.arm(fault)
    asyncio.run(_work(home, database_url, sids))


async def _work(home: str, database_url: str, sids: list[str]) -> None:
    app = build(Settings(home=Path(home), database=DatabaseSettings(url=database_url)))
    async with running(app):
        for sid in sids:
            said = [
                ("agent", "Hello, I'm Wren."),
                ("caller", f"Hi, this is Bill. Please open a bug about {sid}."),
                ("agent", "Noted."),
            ]
            row, _ = app.journal.ingest(make_call(said, sid=sid))
            await wait_for_steps(app, row.live.id)
    app.close()
