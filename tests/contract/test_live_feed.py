"""What is spoken reaches those who look on, on both databases, whichever process keeps the call."""

import asyncio

import pytest

from aftercall.app import App
from aftercall.clock import SystemClock
from aftercall.model.calls import Turn
from aftercall.settings import Settings
from aftercall.web.live_feed import (
    MAX_BACKLOG_EVENTS,
    ListsChanged,
    LiveCallsChanged,
    LiveFeed,
    TurnSaid,
)
from aftercall.web.page_store import PageStore
from fakes import START, make_live_call
from opened_apps import OpenApp


@pytest.fixture
def live(settings: Settings, open_app: OpenApp) -> App:
    return open_app(settings, SystemClock())


def turn(seq: int, text: str) -> Turn:
    return Turn(seq=seq, speaker="caller", text=text, at=START)


async def until_watched(feed: LiveFeed) -> None:
    while feed.is_idle:
        await asyncio.sleep(0.01)


async def test_every_turn_is_seen_once_from_the_moment_one_looks(live: App) -> None:
    record = await live.journal.open(make_live_call())
    await record.append(turn(1, "before"))
    feed = LiveFeed(PageStore(live.database), live.phone.is_audible)
    watching = feed.subscribe()
    first = asyncio.ensure_future(anext(watching))
    await until_watched(feed)
    for seq in range(2, 5):
        await record.append(turn(seq, f"turn {seq}"))
    assert await first == LiveCallsChanged(frozenset({record.call.id}))
    assert isinstance(await anext(watching), ListsChanged)
    seen = [await anext(watching) for _ in range(3)]
    assert seen == [
        TurnSaid(record.call.id, turn(seq, f"turn {seq}")) for seq in range(2, 5)
    ]
    await live.journal.seal(record, end_reason="caller_hung_up")
    later = [
        await anext(watching) for _ in range(2)
    ]  # the finished call is in a list, too
    assert LiveCallsChanged(frozenset()) in later
    await watching.aclose()
    assert feed.is_idle


async def test_one_who_cannot_keep_up_is_let_go(live: App) -> None:
    feed = LiveFeed(PageStore(live.database), live.phone.is_audible)
    watching = feed.subscribe()
    first = asyncio.ensure_future(anext(watching, None))
    await until_watched(feed)
    await first
    for _ in range(MAX_BACKLOG_EVENTS + 1):
        feed.publish(LiveCallsChanged(frozenset()))
    rest = [happening async for happening in watching]
    assert len(rest) < MAX_BACKLOG_EVENTS
    assert feed.is_idle


async def test_a_closing_server_lets_everyone_go(live: App) -> None:
    feed = LiveFeed(PageStore(live.database), live.phone.is_audible)
    watching = feed.subscribe()
    first = asyncio.ensure_future(anext(watching, None))
    await until_watched(feed)
    await first
    await anext(watching)  # the lists
    feed.close()
    assert await anext(watching, None) is None


async def test_viewers_who_come_at_once_share_what_is_rendered(live: App) -> None:
    feed = LiveFeed(PageStore(live.database), live.phone.is_audible)
    watching = [feed.subscribe() for _ in range(20)]
    await asyncio.gather(*map(anext, watching))
    lists = await asyncio.gather(*map(anext, watching))
    assert len(set(lists)) == 1
    for viewer in watching:
        await viewer.aclose()
    assert feed.is_idle
