"""What is spoken right now, for the pages that look on.

One look at the journal for all viewers of this process, and none while nobody looks. The journal is shared, so calls that
another process answers are seen, too. A viewer that cannot keep up loses its feed, never the memory of the server.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass

from aftercall.errors import AftercallError
from aftercall.model.turns import Turn
from aftercall.web.store import NumberedEntry, PageStore

LOOK_EVERY_S = 0.1
LOOK_BACK = 256  # on Postgres numbers are given before rows are seen: a late one is below the newest
BACKLOG = 1_000


@dataclass(frozen=True)
class Said:
    call_id: str
    turn: Turn


@dataclass(frozen=True)
class Changed:
    """Calls began or ended."""

    live: frozenset[str]


Happening = Said | Changed


class LiveFeed:
    def __init__(self, store: PageStore) -> None:
        self._store = store
        self._viewers: set[asyncio.Queue[Happening | None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._live: frozenset[str] = frozenset()
        self._seen: dict[int, None] = {}

    async def watch(self) -> AsyncGenerator[Happening]:
        """Everything from now on, until the feed is closed or the viewer falls behind."""
        queue: asyncio.Queue[Happening | None] = asyncio.Queue(BACKLOG)
        if self._looking is None:
            await self._begin()
        self._viewers.add(queue)
        try:
            while (happening := await queue.get()) is not None:
                yield happening
        finally:
            self._viewers.discard(queue)
            if not self._viewers:
                self._stop_looking()

    @property
    def is_idle(self) -> bool:
        """Whether nobody looks on, and so nobody reads the journal for them."""
        return not self._viewers

    def close(self) -> None:
        """Let every viewer go: the server stops."""
        for queue in list(self._viewers):
            self._dismiss(queue)

    async def _begin(self) -> None:
        self._live = frozenset(await asyncio.to_thread(self._store.live_ids))
        newest = await asyncio.to_thread(self._store.newest_entry)
        known = await asyncio.to_thread(self._store.entries_after, newest - LOOK_BACK, BACKLOG)
        self._seen = dict.fromkeys(entry.n for entry in known)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())

    def _stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            with suppress(AftercallError):  # the database is away for a moment; what was said meanwhile is seen after
                await self._look_once()

    async def _look_once(self) -> None:
        newest = max(self._seen, default=0)
        entries = await asyncio.to_thread(self._store.entries_after, newest - LOOK_BACK, BACKLOG)
        fresh = [entry for entry in entries if entry.n not in self._seen]
        live = frozenset(await asyncio.to_thread(self._store.live_ids))
        if live != self._live:
            self._live = live
            self.tell(Changed(live))
        for entry in fresh:
            self._note(entry)
        while len(self._seen) > 4 * LOOK_BACK:
            self._seen.pop(next(iter(self._seen)))

    def _note(self, entry: NumberedEntry) -> None:
        self._seen[entry.n] = None
        if entry.kind == "turn":
            self.tell(Said(entry.call_id, Turn.model_validate_json(entry.body)))

    def tell(self, happening: Happening) -> None:
        for queue in list(self._viewers):
            try:
                queue.put_nowait(happening)
            except asyncio.QueueFull:
                self._dismiss(queue)

    def _dismiss(self, queue: asyncio.Queue[Happening | None]) -> None:
        self._viewers.discard(queue)
        while queue.full():
            queue.get_nowait()
        queue.put_nowait(None)
