"""What happens to a call after it is sealed, step by step."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from aftercall.model.reading import ReadingTrace

StepState = Literal["waiting", "running", "done", "failed", "skipped"]
OPEN_STATES: tuple[StepState, ...] = ("waiting", "running")


@dataclass(frozen=True)
class StepOutcome:
    """How a step ended: what it made, or why it made nothing.

    One that waits for another step is taken when that has ended.
    """

    state: StepState
    reason: str = ""
    result: str | None = None
    trace: ReadingTrace | None = None
    write: Callable[[Any], None] | None = field(default=None, compare=False, repr=False)
    """What it still has to write, given a connection: in the transaction that records how it
    ended.
    """


@dataclass(frozen=True)
class Step:
    """One step of one call as it stands."""

    name: str
    state: StepState
    reason: str
    attempts: int
    result: str | None
    changed_at: datetime
    trace: ReadingTrace | None = None


def done(
    result: str | None = None,
    trace: ReadingTrace | None = None,
    write: Callable[[Any], None] | None = None,
) -> StepOutcome:
    return StepOutcome("done", result=result, trace=trace, write=write)


def awaiting(reason: str) -> StepOutcome:
    return StepOutcome("waiting", reason)


def failed(reason: str) -> StepOutcome:
    return StepOutcome("failed", reason)


def skipped(reason: str, trace: ReadingTrace | None = None) -> StepOutcome:
    return StepOutcome("skipped", reason, trace=trace)
