"""Times and tuples as JSON has them."""

from dataclasses import dataclass
from datetime import UTC, datetime

from aftercall.model.json_fields import pick_fields


@dataclass(frozen=True)
class Heard:
    words: tuple[str, ...]
    at: datetime
    until: datetime | None = None
    secret: str = "not asked for"


def test_picked_fields_have_the_order_asked_for_and_times_as_text() -> None:
    heard = Heard(("hello", "there"), datetime(2026, 2, 13, 15, 41, tzinfo=UTC))
    assert list(pick_fields(heard, "at until words").items()) == [
        ("at", "2026-02-13T15:41:00.000Z"),
        ("until", None),
        ("words", ["hello", "there"]),
    ]
