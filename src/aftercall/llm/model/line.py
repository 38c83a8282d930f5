"""The line to a model: a loop in a thread of its own, so that steps in threads and live calls share one client.

Opened at the first question, because the packages for models take seconds to load.
"""

import asyncio
from threading import Lock, Thread
from typing import TYPE_CHECKING

from aftercall.errors import ModelUnavailable
from aftercall.llm.model.choice import Choice
from aftercall.llm.model.exchange import Put, Said

if TYPE_CHECKING:
    from aftercall.llm.model.client import Client

CLOSE_WITHIN_S = 5.0


class ModelLine:
    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._lock = Lock()
        self._open: tuple[asyncio.AbstractEventLoop, Thread, Client] | None = None
        self._is_closed = False

    @property
    def name(self) -> str:
        return self._choice.name

    @property
    def part_chars(self) -> int:
        return self._choice.limits.part_chars

    def open(self) -> tuple[asyncio.AbstractEventLoop, "Client"]:
        """Connect, if nobody has yet."""
        with self._lock:
            if self._is_closed:
                raise ModelUnavailable(f"{self.name}: the line was closed")
            if self._open is None:
                from aftercall.llm.model.client import Client  # noqa: PLC0415 - seconds to load, and rules need none of it

                loop = asyncio.new_event_loop()
                thread = Thread(target=loop.run_forever, name="aftercall-model", daemon=True)
                thread.start()
                self._open = (loop, thread, Client(self._choice))
            return self._open[0], self._open[2]

    def ask(self, put: Put) -> Said:
        """For threads. Raises a ModelError."""
        loop, client = self.open()
        return asyncio.run_coroutine_threadsafe(client.ask(put, self._choice.limits.timeout_s), loop).result()

    async def ask_within(self, put: Put, timeout_s: float) -> Said:
        """For a live call, which cannot wait long. Raises a ModelError."""
        loop, client = await asyncio.to_thread(self.open)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(client.ask(put, timeout_s), loop))

    def close(self) -> None:
        with self._lock:
            was_open, self._open, self._is_closed = self._open, None, True
        if was_open is None:
            return
        loop, thread, client = was_open
        asyncio.run_coroutine_threadsafe(_finish(client), loop).result(CLOSE_WITHIN_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSE_WITHIN_S)
        loop.close()


async def _finish(client: "Client") -> None:
    """Nobody waits for what is still being asked: its step runs again."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await client.close()
