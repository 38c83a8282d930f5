"""A process that fetches recordings and may be killed in the middle of it."""

import asyncio

from aftercall import faults
from aftercall.app import build
from aftercall.model.calls import Call
from aftercall.running import running
from aftercall.settings import Settings


def run(settings: Settings, fault: str) -> None:
    """Work until every recording has come to its end."""
    faults.arm(fault)
    asyncio.run(_work(settings))


async def _work(settings: Settings) -> None:
    app = build(settings)
    async with running(app):
        for row in app.store.list_page(limit=100):
            while any(
                found.state in ("waiting", "downloading")
                for found in app.recordings.list_for_call(row.live.id)
            ):
                await app.clock.sleep(0.05)
    app.close()


def report(settings: Settings, call: Call, url: str, fault: str) -> None:
    """A hosted platform reports a call and names its recording."""
    faults.arm(fault)
    app = build(settings)
    asyncio.run(app.hosted_calls.take_report(call, url))
    app.close()
