"""The live feed of the pages: turns as they are spoken, and which calls are live.

One poll of the journal serves all viewers of this process; without viewers there is none. The
journal is shared, so calls of other processes appear, too. A viewer that falls behind is
disconnected, which bounds the memory of the server.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass

from aftercall.errors import AftercallError
from aftercall.model.turns import Turn
from aftercall.web.page_store import NumberedEntry, PageStore

POLL_INTERVAL_S = 0.1
# Postgres assigns numbers before a row is visible: a late row has a number below the newest.
LOOK_BACK_ENTRIES = 256
MAX_BACKLOG_EVENTS = 1_000


@dataclass(frozen=True)
class TurnSaid:
    call_id: str
    turn: Turn


@dataclass(frozen=True)
class LiveCallsChanged:
    """A call began or ended."""

    live_ids: frozenset[str]


LiveEvent = TurnSaid | LiveCallsChanged


class LiveFeed:
    def __init__(self, store: PageStore) -> None:
        self._store = store
        self._viewers: set[asyncio.Queue[LiveEvent | None]] = set()
        self._poll_task: asyncio.Task[None] | None = None
        self._live: frozenset[str] = frozenset()
        self._seen: dict[int, None] = {}

    async def subscribe(self) -> AsyncGenerator[LiveEvent]:
        """First the live calls, then every event, until the feed is closed or the viewer falls
        behind.
        """
        queue: asyncio.Queue[LiveEvent | None] = asyncio.Queue(MAX_BACKLOG_EVENTS)
        if self._poll_task is None:
            await self._start_polling()
        self._viewers.add(queue)
        queue.put_nowait(LiveCallsChanged(self._live))
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
        self._live = frozenset(await asyncio.to_thread(self._store.list_live_ids))
        newest = await asyncio.to_thread(self._store.get_newest_entry_number)
        known = await asyncio.to_thread(
            self._store.list_entries_after,
            newest - LOOK_BACK_ENTRIES,
            MAX_BACKLOG_EVENTS,
        )
        self._seen = dict.fromkeys(entry.n for entry in known)
        if self._poll_task is None:
            self._poll_task = asyncio.create_task(self._poll())

    def _stop_polling(self) -> None:
        if self._poll_task is not None:
            self._poll_task.cancel()
            self._poll_task = None

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_INTERVAL_S)
            with suppress(AftercallError):
                # after a database outage the next poll catches up
                await self._poll_once()

    async def _poll_once(self) -> None:
        newest = max(self._seen, default=0)
        entries = await asyncio.to_thread(
            self._store.list_entries_after,
            newest - LOOK_BACK_ENTRIES,
            MAX_BACKLOG_EVENTS,
        )
        fresh = [entry for entry in entries if entry.n not in self._seen]
        live = frozenset(await asyncio.to_thread(self._store.list_live_ids))
        if live != self._live:
            self._live = live
            self.publish(LiveCallsChanged(live))
        for entry in fresh:
            self._note(entry)
        while len(self._seen) > 4 * LOOK_BACK_ENTRIES:
            self._seen.pop(next(iter(self._seen)))

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
