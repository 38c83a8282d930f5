"""What time it is, and waiting.

Everything that needs either is handed a Clock, so tests run on virtual time.
"""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The current instant, in UTC, to the millisecond."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards; only differences mean something."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime:
        return to_millisecond(datetime.now(UTC))

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def to_millisecond(instant: datetime) -> datetime:
    """Cut to what our files can hold, so that an instant survives every round trip unchanged."""
    utc = instant.astimezone(UTC)
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)
