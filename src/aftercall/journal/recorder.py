"""The recorder of one live call: numbers its entries and hands them to the journal."""

import asyncio
from collections.abc import Awaitable, Callable

from aftercall.errors import (
    CallNotLive,
    JournalConflict,
    JournalGap,
)
from aftercall.faults import fault_point
from aftercall.journal.replay import (
    JournalEntry,
    to_entry,
)
from aftercall.model.calls import LiveCall
from aftercall.model.turns import Event, Turn


class CallRecorder:
    """One live call's numbered entries.

    The caller keeps their order; a gap is refused. The lock only keeps an append apart from the
    seal and from the move back to the database.
    """

    def __init__(
        self,
        call: LiveCall,
        write: Callable[["CallRecorder", JournalEntry], Awaitable[None]],
    ) -> None:
        self.call = call
        self.is_open = True
        self.is_spilling = False
        """Its entries go to a file until the database is back."""
        self.lock = asyncio.Lock()
        self._write = write
        self._written: dict[str, list[JournalEntry]] = {"turn": [], "event": []}

    @property
    def next_turn_seq(self) -> int:
        return len(self._written["turn"]) + 1

    @property
    def next_event_seq(self) -> int:
        return len(self._written["event"]) + 1

    @property
    def entries(self) -> list[JournalEntry]:
        return [*self._written["turn"], *self._written["event"]]

    async def append(self, item: Turn | Event) -> None:
        """Returns when the item is on disk.

        Repeating an item changes nothing; a gap or another version is refused.
        """
        entry = to_entry(self.call.id, item)
        async with self.lock:
            if not self.is_open:
                raise CallNotLive(
                    f"call {self.call.id} has ended; add an addendum instead"
                )
            if self._is_written(entry):
                return
            fault_point("journal.before_append")
            await self._write(self, entry)
            fault_point("journal.after_append")

    def mark_written(self, entry: JournalEntry) -> None:
        """The entry is on disk."""
        self._written[entry.kind].append(entry)

    async def close(self) -> None:
        """Waits for a running append and refuses others."""
        async with self.lock:
            self.is_open = False

    def _is_written(self, entry: JournalEntry) -> bool:
        kept = self._written[entry.kind]
        if entry.seq > len(kept) + 1:
            raise JournalGap(
                f"call {self.call.id}: {entry.kind} {entry.seq} came where {len(kept) + 1} is next"
            )
        if entry.seq == len(kept) + 1:
            return False
        if kept[entry.seq - 1].body != entry.body:
            raise JournalConflict(
                f"call {self.call.id}: {entry.kind} {entry.seq} is already written, with "
                "other contents"
            )
        return True
