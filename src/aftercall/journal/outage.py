"""Whether the database is away, and looking out for its return. While it is there, this costs nothing."""

import asyncio
from collections.abc import Awaitable, Callable

from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.log import get_logger

LOOK_EVERY_S = 1.0

log = get_logger("outage")


class Outage:
    def __init__(self, is_ready: Callable[[], bool], return_home: Callable[[], Awaitable[None]], clock: Clock) -> None:
        """`return_home` brings everything back that was kept elsewhere meanwhile; it is tried until it succeeds."""
        self.is_on = False
        self.reason: AftercallError | None = None
        """Why it is on."""
        self._is_ready = is_ready
        self._return_home = return_home
        self._clock = clock
        self._watch: asyncio.Task[None] | None = None

    def begin(self, error: AftercallError) -> None:
        if not self.is_on:
            log.error("the database is away; calls are kept on disk until it is back", error=error.code, reason=str(error))
        self.is_on, self.reason = True, error
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._look_out())

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    async def _look_out(self) -> None:
        told = ""
        while True:
            await self._clock.sleep(LOOK_EVERY_S)
            try:
                if not await asyncio.to_thread(self._is_ready):
                    continue
                self.is_on = False  # first: what is written from here on goes to the database again
                await self._return_home()
            except Exception as error:  # noqa: BLE001 - the edge of the watch: one that stopped would leave calls on disk for ever
                self.is_on = True
                code = getattr(error, "code", type(error).__name__)
                if code != told:  # it is tried every second, and told once
                    log.warning("the database is not back yet", error=code)
                told = code
            if not self.is_on:
                self.reason = None
                log.warning("the database is back")
                return
