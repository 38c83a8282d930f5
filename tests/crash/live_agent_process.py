"""An agent in a process of its own that reports one call, and notes each turn it was acknowledged.

python live_agent_process.py ADDRESS TOKEN SPOOL SID TURNS NOTES
"""

import asyncio
import sys
from pathlib import Path

from aftercall.client import Client


async def run(turns: int, address: str, token: str, spool: str, sid: str) -> None:
    async with Client(address, token, spool=spool).call(
        source="agent", sid=sid, caller="+15550100"
    ) as call:
        for number in range(turns):
            text = f"{sid} says {number}"
            await call.turn("caller" if number % 2 else "agent", text)
            note(text)
            await asyncio.sleep(0.01)


def note(text: str) -> None:
    with NOTES.open("a") as notes:
        notes.write(f"{text}\n")


if __name__ == "__main__":
    NOTES = Path(sys.argv[6])
    asyncio.run(run(int(sys.argv[5]), *sys.argv[1:5]))
