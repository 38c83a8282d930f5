"""Sample calls: name the fields that matter to your test, the rest has defaults."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from aftercall.model.calls import Call, LiveCall

START = datetime(2026, 2, 13, 15, 41, 12, 120_000, tzinfo=UTC)
_numbers = count(1)


def make_live_call(**fields: Any) -> LiveCall:
    """A live call with a new `sid`."""
    defaults = {
        "source": "test",
        "sid": f"T{next(_numbers):06}",
        "caller": "+15550100",
        "callee": "+15550101",
        "started_at": START,
    }
    return LiveCall.model_validate(defaults | fields)


def make_call(
    said: Iterable[tuple[str, str]] = (("agent", "Hello!"), ("caller", "Hi.")),
    **fields: Any,
) -> Call:
    """A finished call from pairs of speaker and text, two seconds a turn."""
    started = fields.pop("started_at", START)
    turns = [
        {
            "seq": seq,
            "speaker": speaker,
            "text": text,
            "at": started + timedelta(seconds=2 * seq),
        }
        for seq, (speaker, text) in enumerate(said, 1)
    ]
    ended = fields.pop("ended_at", started + timedelta(seconds=2 * len(turns) + 2))
    live = make_live_call(started_at=started, **fields).model_dump()
    return Call.model_validate(live | {"ended_at": ended, "turns": turns})


def make_calls(
    number: int, said: Sequence[tuple[str, str]], **fields: Any
) -> list[Call]:
    """Finished calls with the same words, each from another caller."""
    return [
        make_call(said, caller=f"+1555010{place:04}", **fields)
        for place in range(number)
    ]
