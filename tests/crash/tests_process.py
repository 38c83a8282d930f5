"""A process that runs tests, as durable work, and may be killed in the middle of it."""

import asyncio
from pathlib import Path

from aftercall import faults, test_runs
from aftercall.app import build
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from waiting import until


def run(home: str, database_url: str, fault: str) -> None:
    faults.arm(fault)
    database = DatabaseSettings(url=database_url)
    asyncio.run(_run(Settings(home=Path(home), database=database)))


async def _run(settings: Settings) -> None:
    """The first process starts the run; one that comes after a crash only takes it over."""
    app = build(settings)
    folder = settings.home / "tests"
    async with running(app):
        if not folder.exists():
            asked = test_runs.make_request(settings, "practice", "opening_hours", 2)
            await test_runs.start_run(asked)
        await until(lambda: any(folder.glob("*/report.json")))
    app.close()
