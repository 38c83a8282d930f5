"""The line to a model: a loop in a thread of its own, so that steps in threads and live calls
share one client.

Opened at the first question, because the packages for models take seconds to load.
"""

import asyncio
from threading import Lock, Thread
from typing import TYPE_CHECKING

from aftercall.errors import ModelUnavailable
from aftercall.llm.model.choice import ModelChoice
from aftercall.llm.model.completion import Completion, Prompt

if TYPE_CHECKING:
    from aftercall.llm.model.provider_client import ProviderClient

CLOSE_TIMEOUT_S = 5.0


class ModelClient:
    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice
        self._lock = Lock()
        self._open: tuple[asyncio.AbstractEventLoop, Thread, ProviderClient] | None = None
        self._is_closed = False

    @property
    def name(self) -> str:
        return self._choice.name

    @property
    def part_chars(self) -> int:
        return self._choice.limits.part_chars

    def open(self) -> tuple[asyncio.AbstractEventLoop, "ProviderClient"]:
        """Connect, if nobody has yet."""
        with self._lock:
            if self._is_closed:
                raise ModelUnavailable(f"{self.name}: the line was closed")
            if self._open is None:
                from aftercall.llm.model.provider_client import ProviderClient  # noqa: PLC0415 - seconds to load, and rules need none of it

                loop = asyncio.new_event_loop()
                thread = Thread(target=loop.run_forever, name="aftercall-model", daemon=True)
                thread.start()
                self._open = (loop, thread, ProviderClient(self._choice))
            return self._open[0], self._open[2]

    def ask(self, prompt: Prompt) -> Completion:
        """For threads. Raises a ModelError."""
        loop, client = self.open()
        return asyncio.run_coroutine_threadsafe(
            client.ask(prompt, self._choice.limits.timeout_s), loop
        ).result()

    async def ask_within(self, prompt: Prompt, timeout_s: float) -> Completion:
        """For a live call, which cannot wait long. Raises a ModelError."""
        loop, client = await asyncio.to_thread(self.open)
        return await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(client.ask(prompt, timeout_s), loop)
        )

    def close(self) -> None:
        with self._lock:
            was_open, self._open, self._is_closed = self._open, None, True
        if was_open is None:
            return
        loop, thread, client = was_open
        asyncio.run_coroutine_threadsafe(_finish(client), loop).result(CLOSE_TIMEOUT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSE_TIMEOUT_S)
        loop.close()


async def _finish(client: "ProviderClient") -> None:
    """Nobody waits for what is still being asked: its step runs again."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await client.close()
