"""What happens to a call after it is sealed, step by step."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from aftercall.model.reading import Trace

StepState = Literal["waiting", "running", "done", "failed", "skipped"]


@dataclass(frozen=True)
class Outcome:
    """How a step ended: what it made, or why it made nothing."""

    state: Literal["done", "skipped"]
    reason: str = ""
    result: str | None = None
    trace: Trace | None = None


@dataclass(frozen=True)
class Step:
    """One step of one call as it stands."""

    name: str
    state: StepState
    reason: str
    attempts: int
    result: str | None
    changed_at: datetime
    trace: Trace | None = None


def done(result: str | None = None, trace: Trace | None = None) -> Outcome:
    return Outcome("done", result=result, trace=trace)


def skipped(reason: str, trace: Trace | None = None) -> Outcome:
    return Outcome("skipped", reason, trace=trace)
