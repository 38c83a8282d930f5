"""Instants as they stand in our files: UTC, milliseconds, `2026-02-13T15:41:12.120Z`."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from aftercall.clock import to_millisecond

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


def _from_epoch(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(OUT_OF_RANGE) from None


def _from_iso(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError("is not a time (epoch seconds, or ISO 8601 with a zone)") from None


Instant = Annotated[
    datetime, BeforeValidator(parse_instant), PlainSerializer(format_instant, return_type=str)
]
