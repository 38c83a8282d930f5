"""Group commit, on both databases: together in one transaction, each by itself."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import Column, Connection, MetaData, Table, Text, event, insert, select
from sqlalchemy.exc import IntegrityError

from aftercall.app import App
from aftercall.db.group_commit import MAX_BATCH_ACTIONS, GroupCommitter
from aftercall.errors import DatabaseUnreachable

words = Table("clerk_words", MetaData(), Column("word", Text, primary_key=True))


@pytest.fixture
def clerk(app: App) -> Iterator[GroupCommitter]:
    words.create(app.database.engine)
    clerk = GroupCommitter(app.database)
    yield clerk
    clerk.close()
    words.drop(app.database.engine)


def count_commits(app: App) -> list[object]:
    commits: list[object] = []
    event.listen(app.database.engine, "commit", commits.append)
    return commits


def kept(app: App) -> set[str]:
    with app.database.read() as connection:
        return set(connection.execute(select(words.c.word)).scalars())


def put(clerk: GroupCommitter, word: str) -> "asyncio.Task[str]":
    def entry(connection: Connection) -> str:
        connection.execute(insert(words).values(word=word))
        return word

    return asyncio.create_task(clerk.write(entry))


@asynccontextmanager
async def held_up(clerk: GroupCommitter) -> AsyncIterator[None]:
    """A transaction that lasts until the end."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: Connection) -> None:
        begun.set()
        go_on.wait(60)

    waiting = asyncio.create_task(clerk.write(wait))
    await asyncio.to_thread(begun.wait)
    yield
    go_on.set()
    await waiting


async def test_what_comes_at_the_same_time_is_one_transaction(
    app: App, clerk: GroupCommitter
) -> None:
    commits = count_commits(app)
    said = [f"w{n}" for n in range(MAX_BATCH_ACTIONS)]
    async with held_up(clerk):
        writes = [put(clerk, word) for word in said]
        await asyncio.sleep(0)
    assert await asyncio.gather(*writes) == said
    assert len(commits) == 2
    assert kept(app) == set(said)


async def test_more_than_fit_are_written_in_the_next_transactions(
    app: App, clerk: GroupCommitter
) -> None:
    commits = count_commits(app)
    said = [f"w{n}" for n in range(2 * MAX_BATCH_ACTIONS + 1)]
    async with held_up(clerk):
        writes = [put(clerk, word) for word in said]
        await asyncio.sleep(0)
    await asyncio.gather(*writes)
    assert len(commits) == 4
    assert kept(app) == set(said)


async def test_an_entry_that_fails_takes_none_of_the_others_with_it(
    app: App, clerk: GroupCommitter
) -> None:
    ended = await asyncio.gather(
        *(put(clerk, word) for word in ("a", "b", "a", "c")), return_exceptions=True
    )
    assert [type(one) for one in ended] == [str, str, IntegrityError, str]
    assert kept(app) == {"a", "b", "c"}


async def test_nothing_of_an_entry_that_fails_half_way_stays(
    app: App, clerk: GroupCommitter
) -> None:
    def half(connection: Connection) -> None:
        connection.execute(insert(words).values(word="half"))
        raise ValueError("the canary sings")

    ended = await asyncio.gather(
        clerk.write(half), put(clerk, "whole"), return_exceptions=True
    )
    assert [type(one) for one in ended] == [ValueError, str]
    assert kept(app) == {"whole"}


async def test_a_database_that_is_away_is_told_to_all_who_wait(
    app: App, clerk: GroupCommitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise DatabaseUnreachable("no connection to the database")

    with monkeypatch.context() as fault:
        fault.setattr(app.database, "write", away)
        ended = await asyncio.gather(
            put(clerk, "a"), put(clerk, "b"), return_exceptions=True
        )
    assert [type(one) for one in ended] == [DatabaseUnreachable] * 2
    assert await put(clerk, "c") == "c"
    assert kept(app) == {"c"}


async def test_whoever_no_longer_waits_holds_up_nobody(
    app: App, clerk: GroupCommitter
) -> None:
    gone, stays = put(clerk, "gone"), put(clerk, "stays")
    await asyncio.sleep(0)
    gone.cancel()
    assert await stays == "stays"
    assert "stays" in kept(app)
