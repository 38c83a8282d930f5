"""Group commit."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from aftercall.errors import JournalClosed, StorageFull
from aftercall.journal.store import JournalEntry
from aftercall.journal.writer import JournalWriter


def entry(seq: int) -> JournalEntry:
    return JournalEntry("call", "turn", seq, "{}")


async def test_entries_that_come_while_one_batch_is_written_share_the_next() -> None:
    batches: list[list[int]] = []
    begun, go_on = threading.Event(), threading.Event()

    def write(entries: Sequence[JournalEntry]) -> None:
        batches.append([e.seq for e in entries])
        begun.set()
        go_on.wait()

    writer = JournalWriter(write)
    first = writer.submit(entry(1))
    await asyncio.to_thread(begun.wait)
    rest = [writer.submit(entry(seq)) for seq in range(2, 50)]
    go_on.set()
    await asyncio.gather(first, *rest)
    assert batches == [[1], list(range(2, 50))]
    writer.close()


async def test_one_bad_entry_does_not_take_the_others_with_it() -> None:
    go_on = threading.Event()
    written: list[int] = []

    def write(entries: Sequence[JournalEntry]) -> None:
        go_on.wait()
        if any(e.seq == 3 for e in entries):
            raise StorageFull("no room")
        written.extend(e.seq for e in entries)

    writer = JournalWriter(write)
    results = [writer.submit(entry(seq)) for seq in range(1, 6)]
    go_on.set()
    outcome = await asyncio.gather(*results, return_exceptions=True)
    assert [isinstance(result, StorageFull) for result in outcome] == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert written == [1, 2, 4, 5]
    writer.close()


async def test_closing_writes_what_is_queued_and_then_refuses() -> None:
    written: list[int] = []
    closed: list[bool] = []
    writer = JournalWriter(
        lambda entries: written.extend(e.seq for e in entries), lambda: closed.append(True)
    )
    waiting = [writer.submit(entry(seq)) for seq in range(1, 4)]
    await asyncio.to_thread(writer.close)
    await asyncio.gather(*waiting)
    assert (written, closed) == ([1, 2, 3], [True])
    with pytest.raises(JournalClosed):
        writer.submit(entry(4))
