"""A backup of many calls while calls go on: how late audio frames are with it and without.

A server process answers the clock every 20 ms, as an audio loop does, and writes turns of live
calls; `aftercall backup` runs beside it as its own process. Both tables come from one run.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from aftercall.app import App, build
from aftercall.model.calls import Turn
from aftercall.settings import Settings
from fakes import make_call, make_live_call
from tables import print_table

FRAME_S = 0.02
SAID = (
    ("agent", "Hello! What can I do for you?"),
    ("caller", "Please send Dana the signed contract on Tuesday."),
    ("agent", "I have written it down. Anything else?"),
    ("caller", "No, thank you. Goodbye."),
)


def fill(app: App, number: int) -> None:
    for _ in range(number):
        app.journal.ingest(make_call(SAID))


async def measure(app: App, live: int, until: "asyncio.Future[None]") -> list[float]:
    """How late each tick of 20 ms is, in ms, while live calls write a turn a second each."""

    async def talk() -> None:
        recorder = await app.journal.open(make_live_call())
        for seq in range(1, 100_000):
            if until.done():
                break
            turn = Turn(seq=seq, speaker="caller", text=SAID[1][1], at=app.clock.now())
            await recorder.append(turn)
            await asyncio.sleep(1)
        await app.journal.seal(recorder, end_reason="completed")

    talking = [asyncio.create_task(talk()) for _ in range(live)]
    late = []
    due = time.monotonic()
    while not until.done():
        due += FRAME_S
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        late.append(max(0.0, time.monotonic() - due) * 1000)
        due = max(due, time.monotonic() - FRAME_S)
    await asyncio.gather(*talking)
    return late


async def back_up(home: Path, to: Path) -> float:
    program = [sys.executable, "-m", "aftercall", "backup", str(to)]
    environ = os.environ | {"AFTERCALL_HOME": str(home)}
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *program, env=environ, stdout=subprocess.DEVNULL
    )
    assert await process.wait() == 0
    return time.monotonic() - began


async def compare(app: App, home: Path, to: Path, live: int) -> list[list[str]]:
    rows = []
    for name in ("without a backup", "during a backup"):
        until: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        measuring = asyncio.create_task(measure(app, live, until))
        took = 10.0
        if name.startswith("during"):
            took = await back_up(home, to)
        else:
            await asyncio.sleep(took)
        until.set_result(None)
        late = sorted(await measuring)
        p50, p99 = late[len(late) // 2], late[int(len(late) * 0.99)]
        rows.append(
            [name, f"{took:.1f}", f"{p50:.2f}", f"{p99:.2f}", f"{late[-1]:.1f}"]
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--live", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as folder:
        home, to = Path(folder, "home"), Path(folder, "backups")
        to.mkdir()
        app = build(Settings(home=home))
        fill(app, options.calls)
        rows = asyncio.run(compare(app, home, to, options.live))
        app.close()
        size = sum(file.stat().st_size for file in to.iterdir()) / 1e6
    print_table(
        f"Backup of {options.calls:,} calls ({size:.0f} MB), {options.live} live calls",
        ["", "seconds", "late p50 ms", "p99 ms", "max ms"],
        rows,
    )


if __name__ == "__main__":
    main()
