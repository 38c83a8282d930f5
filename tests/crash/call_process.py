"""A process that keeps calls and may be killed at any moment; what it acknowledged, it had on
disk.
"""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from aftercall import faults
from aftercall.app import App, build
from aftercall.clock import SystemClock
from aftercall.journal.journal import recover
from aftercall.model.calls import Turn
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from fakes import make_live_call


def run(
    home: str, database_url: str, fault: str, acknowledged: str, calls: int, turns: int
) -> None:
    """Keep `calls` calls at once, each of `turns` turns, and seal them; write down each append
    that returned.
    """
    faults.arm(fault)
    with Path(acknowledged).open("ab", buffering=0) as file:
        asyncio.run(_keep_calls(home, database_url, file.fileno(), calls, turns))


async def _keep_calls(
    home: str, database_url: str, file: int, calls: int, turns: int
) -> None:
    app = build(Settings(home=Path(home), database=DatabaseSettings(url=database_url)))
    await asyncio.to_thread(recover, app.journal)
    await asyncio.gather(
        *(_keep_call(app, file, number, turns) for number in range(calls))
    )
    await app.journal.close()
    app.close()


async def _keep_call(app: App, file: int, number: int, turns: int) -> None:
    clock = SystemClock()
    call = make_live_call(
        sid=f"P{os.getpid()}N{number}",
        caller=f"+1555010{number % 3:02}",
        started_at=clock.now(),
    )
    record = await app.journal.open(call)
    state = app.resume.peek(call)
    if state and (joined := app.resume.consume(state, call)):
        record.call = joined
    for seq in range(1, turns + 1):
        await record.append(
            Turn(
                seq=seq,
                speaker="caller",
                text=f"{call.id} says {seq}",
                at=clock.now() + timedelta(milliseconds=seq),
            )
        )
        os.write(file, f"{call.id} says {seq}\n".encode())
    await app.journal.seal(record, end_reason="caller_hung_up")
