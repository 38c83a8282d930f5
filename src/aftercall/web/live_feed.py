"""What happens in live calls and lists, as it happens, for the pages that are open.

One poll of the journal serves all viewers of the live page in this process; without viewers there
is none. The journal is shared, so calls of other processes appear, too. A viewer that falls behind
is disconnected, which bounds the memory of the server.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from aftercall.errors import AftercallError
from aftercall.model.calls import Turn
from aftercall.web.page_store import NumberedEntry, PageStore

POLL_INTERVAL_S = 0.1
POLLS_BETWEEN_LISTS = 10
# Postgres assigns numbers before a row is visible: a late row has a number below the newest.
LOOK_BACK_ENTRIES = 256
MAX_BACKLOG_EVENTS = 1_000


@dataclass(frozen=True)
class TurnSaid:
    call_id: str
    turn: Turn


@dataclass(frozen=True)
class LiveCallsChanged:
    """A call began, can be listened to, or ended.

    Viewers of one version may share what they make of it.
    """

    live_ids: frozenset[str]
    version: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ListsChanged:
    """A step ended, or a request or promise changed."""

    version: int


LiveEvent = TurnSaid | LiveCallsChanged | ListsChanged


class LiveFeed:
    """One poll for all viewers; each has a queue of its own."""

    def __init__(self, store: PageStore, is_audible: Callable[[str], bool]) -> None:
        self._store = store
        self._is_audible = is_audible
        self._audible: frozenset[str] = frozenset()
        self._viewers: set[asyncio.Queue[LiveEvent | None]] = set()
        self._poll_task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._live: frozenset[str] = frozenset()
        self._seen: dict[int, None] = {}
        self._versions = count(1)
        self._lists: object = None
        self._lists_version = 0

    async def subscribe(self) -> AsyncGenerator[LiveEvent]:
        """First the live calls, then every event, until the feed is closed or the viewer falls
        behind.
        """
        queue: asyncio.Queue[LiveEvent | None] = asyncio.Queue(MAX_BACKLOG_EVENTS)
        async with self._starting:  # of many viewers that come at once, one starts it
            if self._poll_task is None:
                await self._start_polling()
            self._viewers.add(queue)
        queue.put_nowait(LiveCallsChanged(self._live))
        queue.put_nowait(ListsChanged(self._lists_version))
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self._viewers.discard(queue)
            if not self._viewers:
                self._stop_polling()

    @property
    def is_idle(self) -> bool:
        """Whether there are no viewers, so the journal is not polled."""
        return not self._viewers

    def close(self) -> None:
        """Disconnects every viewer, because the server stops."""
        for queue in list(self._viewers):
            self._drop_viewer(queue)

    async def _start_polling(self) -> None:
        """Notes what is known already, so that the first poll tells only what is new."""
        self._live = frozenset(await asyncio.to_thread(self._store.list_live_ids))
        self._audible = frozenset(filter(self._is_audible, self._live))
        newest = await asyncio.to_thread(self._store.get_newest_entry_number)
        known = await asyncio.to_thread(
            self._store.list_entries_after,
            newest - LOOK_BACK_ENTRIES,
            MAX_BACKLOG_EVENTS,
        )
        self._seen = dict.fromkeys(entry.n for entry in known)
        self._lists = await asyncio.to_thread(self._store.read_list_state)
        self._lists_version = next(self._versions)
        self._poll_task = asyncio.create_task(self._poll())

    def _stop_polling(self) -> None:
        if self._poll_task is not None:
            self._poll_task.cancel()
            self._poll_task = None

    async def _poll(self) -> None:
        """Runs until the last viewer has gone."""
        for number in count(1):
            await asyncio.sleep(POLL_INTERVAL_S)
            with suppress(AftercallError):
                # after a database outage the next poll catches up
                await self._poll_once()
                if number % POLLS_BETWEEN_LISTS == 0:
                    await self._poll_lists()

    async def _poll_once(self) -> None:
        """Entries of the journal, and which calls are live."""
        newest = max(self._seen, default=0)
        entries = await asyncio.to_thread(
            self._store.list_entries_after,
            newest - LOOK_BACK_ENTRIES,
            MAX_BACKLOG_EVENTS,
        )
        fresh = [entry for entry in entries if entry.n not in self._seen]
        live = frozenset(await asyncio.to_thread(self._store.list_live_ids))
        audible = frozenset(filter(self._is_audible, live))
        if (live, audible) != (self._live, self._audible):
            self._live = live
            self._audible = audible
            self.publish(LiveCallsChanged(live, next(self._versions)))
        for entry in fresh:
            self._note(entry)
        while len(self._seen) > 4 * LOOK_BACK_ENTRIES:
            self._seen.pop(next(iter(self._seen)))

    async def _poll_lists(self) -> None:
        lists = await asyncio.to_thread(self._store.read_list_state)
        if lists != self._lists:
            self._lists = lists
            self._lists_version = next(self._versions)
            self.publish(ListsChanged(self._lists_version))

    def _note(self, entry: NumberedEntry) -> None:
        self._seen[entry.n] = None
        if entry.kind == "turn":
            self.publish(TurnSaid(entry.call_id, Turn.model_validate_json(entry.body)))

    def publish(self, event: LiveEvent) -> None:
        for queue in list(self._viewers):
            try:
                queue.put_nowait(event)
            except asyncio.QueueFull:
                self._drop_viewer(queue)

    def _drop_viewer(self, queue: asyncio.Queue[LiveEvent | None]) -> None:
        self._viewers.discard(queue)
        while queue.full():
            queue.get_nowait()
        queue.put_nowait(None)
