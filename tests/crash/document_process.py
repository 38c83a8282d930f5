"""A process that makes and sends the document of a call, and may be killed in the middle of it."""

import asyncio
from pathlib import Path

from aftercall import faults
from aftercall.app import build
from aftercall.cli.context import wait_for_steps
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.providers import RememSettings
from aftercall.settings.sections import DatabaseSettings
from fakes import make_call


def run(home: str, database_url: str, fault: str, sid: str, remem_url: str) -> None:
    faults.arm(fault)
    asyncio.run(_work(home, database_url, sid, remem_url))


async def _work(home: str, database_url: str, sid: str, remem_url: str) -> None:
    remem = RememSettings.model_validate({"api_key": "vlt_lab", "api_url": remem_url})
    app = build(
        Settings(
            home=Path(home), database=DatabaseSettings(url=database_url), remem=remem
        )
    )
    async with running(app):
        row, _ = app.journal.ingest(
            make_call(
                [("agent", "Hello!"), ("caller", f"Please open a bug about {sid}.")],
                sid=sid,
            )
        )
        await wait_for_steps(app, row.live.id)
    app.close()
