"""The steps after a call is sealed, and how each ended."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

StepState = Literal["waiting", "running", "done", "failed", "skipped"]
OPEN_STATES: tuple[StepState, ...] = ("waiting", "running")
OUTBOUND_REASON = "an outbound call: the callee is not the user"


@dataclass(frozen=True)
class ReadingTrace:
    """Who answered which question at what cost. `prompt` is the hash of the question."""

    reader: str
    prompt: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None


@dataclass(frozen=True)
class StepOutcome:
    """What a step made, or why it made nothing.

    A step that waits for another one runs when that has ended.
    """

    state: StepState
    reason: str = ""
    result: str | None = None
    trace: ReadingTrace | None = None
    write: Callable[[Any], None] | None = field(default=None, compare=False, repr=False)
    """Writes in the transaction that records the outcome; gets the connection."""


@dataclass(frozen=True)
class Step:
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
