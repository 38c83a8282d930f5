"""Waiting for what another thread or process does; the suite's time limit is the only one."""

import asyncio
from collections.abc import Callable


async def until(is_so: Callable[[], bool]) -> None:
    while not await asyncio.to_thread(is_so):
        await asyncio.sleep(0.02)
