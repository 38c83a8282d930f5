"""The steps of a call as API and commands show them."""

from dataclasses import asdict
from typing import Any

from aftercall.clock import format_instant
from aftercall.model.steps import OPEN_STATES, Step


def steps_json(steps: list[Step]) -> list[dict[str, Any]]:
    return [
        {
            "name": step.name,
            "state": step.state,
            "reason": step.reason,
            "attempts": step.attempts,
            "result": step.result,
            "changed_at": format_instant(step.changed_at),
            "trace": asdict(step.trace) if step.trace else None,
        }
        for step in steps
    ]


def are_finished(steps: list[Step]) -> bool:
    return bool(steps) and all(step.state not in OPEN_STATES for step in steps)
