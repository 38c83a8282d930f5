"""A process that erases a caller, goes on writing down a call, and is then killed."""

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path

from aftercall.app import App, build
from aftercall.model.calls import Turn
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from fakes import START, make_live_call

TURNS = 200


def erase_and_write(home: str, database_url: str, pipe: Connection) -> None:
    """Tells when the caller is erased, waits, writes turns, and tells that every one was
    acknowledged.
    """
    app = build(Settings(home=Path(home), database=DatabaseSettings(url=database_url)))
    asyncio.run(_write(app, pipe))


async def _write(app: App, pipe: Connection) -> None:
    record = await app.journal.open(make_live_call(sid="S2", caller="+15550199"))
    app.eraser.erase("+15550100")
    pipe.send("erased")
    await asyncio.to_thread(pipe.recv)
    for number in range(1, TURNS + 1):
        await record.append(
            Turn(seq=number, speaker="caller", text=f"word {number}", at=START)
        )
    pipe.send(record.call.id)
    await asyncio.to_thread(pipe.recv)  # until it is killed


def use(home: str, database_url: str) -> None:
    """Any other command on the same home."""
    app = build(Settings(home=Path(home), database=DatabaseSettings(url=database_url)))
    app.store.list_page(limit=10)
    app.close()
