"""Group commit: many live calls write at once, one commit carries them all.

A thread of its own does the writing, so that neither the event loop nor the audio ever waits
for the disk. While one batch is being written the next one gathers.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from aftercall.errors import JournalClosed
from aftercall.journal.store import JournalEntry

MAX_BATCH_ENTRIES = 1_000


class PendingWrite(asyncio.Future[None]):
    """Done when the entry is on disk.

    It cannot be cancelled: an entry on its way cannot be called back.
    """

    def cancel(self, msg: object = None) -> bool:
        return False


class JournalWriter:
    def __init__(
        self,
        write: Callable[[Sequence[JournalEntry]], None],
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._write = write
        self._on_close = on_close
        self._queue: queue.SimpleQueue[tuple[JournalEntry, PendingWrite] | None] = (
            queue.SimpleQueue()
        )
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def submit(self, entry: JournalEntry) -> PendingWrite:
        if self._closed:
            raise JournalClosed("the journal has been shut down")
        future = PendingWrite(loop=asyncio.get_running_loop())
        self._queue.put((entry, future))
        return future

    def close(self) -> None:
        """Write what is queued, then stop."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            self._thread.join()
            self._on_close()

    def _run(self) -> None:
        while (batch := self._next_batch()) is not None:
            self._commit(batch)

    def _next_batch(self) -> list[tuple[JournalEntry, PendingWrite]] | None:
        first = self._queue.get()
        if first is None:
            return None
        batch = [first]
        while len(batch) < MAX_BATCH_ENTRIES:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            if item is None:
                self._queue.put(None)
                break
            batch.append(item)
        return batch

    def _commit(self, batch: list[tuple[JournalEntry, PendingWrite]]) -> None:
        try:
            self._write([entry for entry, _ in batch])
        except Exception as error:  # noqa: BLE001 - the edge of the thread: whoever waits is told
            if len(batch) > 1:  # one bad entry must not take the others with it
                for item in batch:
                    self._commit([item])
            else:
                _notify([batch[0][1]], error)
        else:
            _notify([future for _, future in batch], None)


def _notify(futures: list[PendingWrite], error: Exception | None) -> None:
    loops = {future.get_loop() for future in futures}
    for loop in loops:
        own = (
            futures
            if len(loops) == 1
            else [future for future in futures if future.get_loop() is loop]
        )
        with suppress(RuntimeError):  # a closed loop: nobody waits there any more
            loop.call_soon_threadsafe(_resolve, own, error)


def _resolve(futures: list[PendingWrite], error: Exception | None) -> None:
    for future in futures:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
