"""A process that lets go of what is past its time, as durable work, and may be killed in the
middle of it.
"""

import asyncio
from pathlib import Path

from aftercall import faults
from aftercall.app import build
from aftercall.privacy import retention
from aftercall.privacy.retention import start_retention
from aftercall.running import running
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from waiting import until

retention.POLL_INTERVAL_S = 0.2  # nobody waits for it but the test


def settings_for(home: str, database_url: str) -> Settings:
    rules = {
        "transcripts_days": 1,
        "facts_days": 1,
        "action": {"transcripts": "archive", "facts": "archive"},
    }
    return Settings.model_validate(
        {
            "home": Path(home),
            "database": DatabaseSettings(url=database_url),
            "retention": rules,
        }
    )


def run(home: str, database_url: str, fault: str) -> None:
    faults.arm(fault)
    asyncio.run(_let_go(home, database_url))


async def _let_go(home: str, database_url: str) -> None:
    """The first process starts the run; one that comes after a crash only takes it over."""
    app = build(settings_for(home, database_url))
    async with running(app):
        await start_retention(app.retention)
        await until(lambda: not any(app.retention.find_expired().values()))
    app.close()
