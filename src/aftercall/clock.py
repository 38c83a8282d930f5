"""What time it is, and waiting. Code that needs either takes a Clock: tests use virtual time."""

import asyncio
import time
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import BeforeValidator, PlainSerializer

from aftercall.errors import AftercallError, TooLate

T = TypeVar("T")


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
    """Files hold milliseconds: an instant cut to them survives every round trip unchanged."""
    utc = instant.astimezone(UTC)
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)


EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
OUT_OF_RANGE = "lies outside the years 2000 to 2100 (epoch times are in seconds)"
LATEST = datetime(2100, 1, 1, tzinfo=UTC)


def parse_instant(value: Any) -> datetime:
    """Epoch seconds, or ISO 8601 with a zone.

    A time without a zone means nothing and is refused.
    """
    if isinstance(value, bool):
        raise ValueError("is not a time")
    if isinstance(value, int | float):
        instant = _from_epoch(value)
    elif isinstance(value, str):
        instant = _from_iso(value)
    elif isinstance(value, datetime):
        instant = value
    else:
        raise ValueError("is not a time (epoch seconds, or ISO 8601 with a zone)")
    if instant.tzinfo is None:
        raise ValueError("has no time zone (add Z or an offset)")
    try:
        instant = to_millisecond(instant)
    except OverflowError:
        raise ValueError(OUT_OF_RANGE) from None
    if not EARLIEST <= instant < LATEST:
        raise ValueError(OUT_OF_RANGE)
    return instant


def format_instant(instant: datetime) -> str:
    utc = instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds")[:-6] + "Z"


def format_duration(seconds: float) -> str:
    """For people: `28 ms`, `2.4 s`, `45 s`, `1 min 5 s`, `1 h 2 min`."""
    whole = int(seconds)
    if seconds <= 0:
        return "0 s"
    if seconds < 1:
        return f"{max(1, round(seconds * 1_000))} ms"
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _from_epoch(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(OUT_OF_RANGE) from None


def _from_iso(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            "is not a time (epoch seconds, or ISO 8601 with a zone)"
        ) from None


Instant = Annotated[
    datetime,
    BeforeValidator(parse_instant),
    PlainSerializer(format_instant, return_type=str),
]


async def is_done_within(
    clock: Clock, seconds: float, task: asyncio.Future[Any]
) -> bool:
    """Wait for the task at most this long. The task itself goes on."""
    alarm = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        alarm.cancel()
    return task.done()


async def with_timeout(clock: Clock, seconds: float, work: Awaitable[T]) -> T:
    """The result of the work, or TimeoutError.

    Late work is cancelled. A thread that already runs cannot be: it ends by itself.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda late: late.cancelled() or late.exception())
    try:
        if not await is_done_within(clock, seconds, task):
            raise TimeoutError(f"no answer within {seconds:g} s")
        return task.result()
    finally:
        task.cancel()


async def attempt(
    clock: Clock,
    seconds: float,
    work: Awaitable[T],
    lost: type[AftercallError] = TooLate,
) -> T:
    """The result of work that a live call waits for. Raises `lost` if it is late or breaks.

    So one `except AftercallError` is enough: the call goes on, or the caller hears an apology.
    """
    try:
        return await with_timeout(clock, seconds, work)
    except AftercallError:
        raise
    except TimeoutError as error:
        raise lost(str(error) or "timed out") from error
    except Exception as error:
        raise lost(f"it broke ({type(error).__name__})") from error
