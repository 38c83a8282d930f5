"""What happens to a call after it is sealed, step by step."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

StepState = Literal["waiting", "running", "done", "failed", "skipped"]


@dataclass(frozen=True)
class Outcome:
    """How a step ended: what it made, or why it made nothing."""

    state: Literal["done", "skipped"]
    reason: str = ""
    result: str | None = None


@dataclass(frozen=True)
class Step:
    """One step of one call as it stands."""

    name: str
    state: StepState
    reason: str
    attempts: int
    result: str | None
    changed_at: datetime


def done(result: str | None = None) -> Outcome:
    return Outcome("done", result=result)


def skipped(reason: str) -> Outcome:
    return Outcome("skipped", reason)
