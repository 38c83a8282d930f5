"""A process that answers a call while the database is away, or tidies up afterwards, and may be
killed at a named point.
"""

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path

from aftercall import faults
from aftercall.app import build
from aftercall.bridge.turn_call import TurnCallParts
from aftercall.briefing.composer import fill_cache
from aftercall.journal.journal import recover
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from fakes import FakePhone


def ring(home: str, database_url: str, fault: str, pipe: Connection) -> None:
    """Says when it is ready, waits until the database has been switched off, and answers a call."""
    app = build(Settings(home=Path(home), database=DatabaseSettings(url=database_url)))
    pipe.send("ready")
    pipe.recv()
    faults.arm(fault)
    asyncio.run(_talk(app.phone.turn_parts, pipe))


async def _talk(parts: TurnCallParts, pipe: Connection) -> None:
    _, heard = await FakePhone(parts).ring(
        "Please call the plumber.", "And the electrician.", "That is all."
    )
    pipe.send(heard)


def tidy(home: str, database_url: str, fault: str) -> None:
    """What a start does: what was kept on disk is taken up, what a crash left is sealed,
    briefings are prepared.
    """
    app = build(Settings(home=Path(home), database=DatabaseSettings(url=database_url)))
    faults.arm(fault)
    recover(app.journal)
    fill_cache(app.composer)
    app.close()
