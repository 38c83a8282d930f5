"""Group commit."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from aftercall.errors import JournalClosed, StorageFull
from aftercall.journal.recorder import GroupCommit


async def test_entries_that_come_while_one_batch_is_written_share_the_next() -> None:
    batches: list[list[int]] = []
    begun, go_on = threading.Event(), threading.Event()

    def write(entries: Sequence[int]) -> None:
        batches.append(list(entries))
        begun.set()
        go_on.wait()

    group = GroupCommit("test", write)
    first = group.submit(1)
    await asyncio.to_thread(begun.wait)
    rest = [group.submit(seq) for seq in range(2, 50)]
    go_on.set()
    await asyncio.gather(first, *rest)
    assert batches == [[1], list(range(2, 50))]
    group.close()


async def test_a_batch_has_a_limit() -> None:
    batches: list[list[int]] = []
    begun, go_on = threading.Event(), threading.Event()

    def write(entries: Sequence[int]) -> None:
        batches.append(list(entries))
        begun.set()
        go_on.wait()

    group = GroupCommit("test", write, max_batch=2)
    first = group.submit(1)
    await asyncio.to_thread(begun.wait)
    rest = [group.submit(seq) for seq in range(2, 7)]
    go_on.set()
    await asyncio.gather(first, *rest)
    assert batches == [[1], [2, 3], [4, 5], [6]]
    group.close()


async def test_one_bad_entry_does_not_take_the_others_with_it() -> None:
    go_on = threading.Event()
    written: list[int] = []

    def write(entries: Sequence[int]) -> None:
        go_on.wait()
        if 3 in entries:
            raise StorageFull("no room")
        written.extend(entries)

    group = GroupCommit("test", write)
    results = [group.submit(seq) for seq in range(1, 6)]
    go_on.set()
    outcome = await asyncio.gather(*results, return_exceptions=True)
    assert [type(result) for result in outcome if result] == [StorageFull]
    assert isinstance(outcome[2], StorageFull)
    assert written == [1, 2, 4, 5]
    group.close()


async def test_closing_writes_what_is_queued_and_then_refuses() -> None:
    written: list[int] = []
    closed: list[bool] = []
    group = GroupCommit("test", written.extend, on_close=lambda: closed.append(True))
    waiting = [group.submit(seq) for seq in range(1, 4)]
    await asyncio.to_thread(group.close)
    await asyncio.gather(*waiting)
    assert (written, closed) == ([1, 2, 3], [True])
    with pytest.raises(JournalClosed):
        group.submit(4)
