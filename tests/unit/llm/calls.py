"""Calls written as scripts: one line a turn, `A:` for the agent and `C:` for the caller."""

from datetime import UTC, datetime, timedelta

from aftercall.model.calls import Call, parse_call

TUESDAY = datetime(2026, 3, 3, 15, tzinfo=UTC)


def call_of(script: str, started_at: datetime = TUESDAY) -> Call:
    lines = [line.strip() for line in script.strip().splitlines()]
    turns = [
        {
            "speaker": "agent" if line.startswith("A:") else "caller",
            "text": line[2:].strip(),
            "at": (started_at + timedelta(seconds=5 * number)).isoformat(),
        }
        for number, line in enumerate(lines)
    ]
    ended_at = started_at + timedelta(seconds=5 * len(turns))
    return parse_call(
        {
            "source": "script",
            "sid": "S1",
            "started_at": started_at.isoformat(),
            "ended_at": ended_at.isoformat(),
            "turns": turns,
        }
    )
