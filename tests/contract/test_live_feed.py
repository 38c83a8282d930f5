"""What is spoken reaches those who look on, on both databases, whichever process keeps the call."""

import asyncio
from collections.abc import Iterator

import pytest

from aftercall.app import App, build
from aftercall.clock import SystemClock
from aftercall.model.turns import Turn
from aftercall.settings import Settings
from aftercall.testing import START, make_live_call
from aftercall.web.live import BACKLOG, Changed, LiveFeed, Said
from aftercall.web.store import PageStore


@pytest.fixture
def live(settings: Settings) -> Iterator[App]:
    app = build(settings, SystemClock())
    yield app
    app.close()


def turn(seq: int, text: str) -> Turn:
    return Turn(seq=seq, speaker="caller", text=text, at=START)


async def until_watched(feed: LiveFeed) -> None:
    while feed.is_idle:  # noqa: ASYNC110 - it begins in a thread; the suite's time limit is the only one
        await asyncio.sleep(0.01)


async def test_every_turn_is_seen_once_from_the_moment_one_looks(live: App) -> None:
    record = await live.journal.open(make_live_call())
    await record.append(turn(1, "before"))
    feed = LiveFeed(PageStore(live.database))
    watching = feed.watch()
    first = asyncio.ensure_future(anext(watching))
    await until_watched(feed)
    for seq in range(2, 5):
        await record.append(turn(seq, f"turn {seq}"))
    seen = [await first, await anext(watching), await anext(watching)]
    assert seen == [Said(record.call.id, turn(seq, f"turn {seq}")) for seq in range(2, 5)]
    await live.journal.seal(record, end_reason="caller_hung_up")
    assert await anext(watching) == Changed(frozenset())
    await watching.aclose()
    assert feed.is_idle
    await live.journal.close()


async def test_one_who_cannot_keep_up_is_let_go(live: App) -> None:
    feed = LiveFeed(PageStore(live.database))
    watching = feed.watch()
    first = asyncio.ensure_future(anext(watching, None))
    await until_watched(feed)
    for _ in range(BACKLOG + 1):
        feed.tell(Changed(frozenset()))
    await first
    rest = [happening async for happening in watching]
    assert len(rest) < BACKLOG
    assert feed.is_idle


async def test_a_closing_server_lets_everyone_go(live: App) -> None:
    feed = LiveFeed(PageStore(live.database))
    watching = feed.watch()
    first = asyncio.ensure_future(anext(watching, None))
    await until_watched(feed)
    feed.close()
    assert await first is None
