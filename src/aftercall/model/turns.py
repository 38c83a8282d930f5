"""What happens in a call: turns (what was said) and events (tool uses, marks, faults)."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from aftercall.clock import Instant
from aftercall.model.plain_json import clean_json

MAX_TURN_CHARS = 100_000
# Kinds of events.
BARGE_IN = (
    "barge_in"  # the caller interrupted; `heard` holds the part of the words they heard
)
REQUEST_EVENT = "request.taken"  # the agent noted a request during the call
BRIEFED_EVENT = "briefing.told"
Speaker = Literal["agent", "caller"]

_SPEAKERS: dict[str, Speaker] = {
    "agent": "agent",
    "ai": "agent",
    "assistant": "agent",
    "bot": "agent",
    "caller": "caller",
    "human": "caller",
    "user": "caller",
}


def parse_speaker(value: Any) -> Any:
    if isinstance(value, str) and value.strip().lower() in _SPEAKERS:
        return _SPEAKERS[value.strip().lower()]
    raise ValueError(f"is not one of {', '.join(_SPEAKERS)}")


class Turn(BaseModel):
    """What one speaker said until the other took over."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, defer_build=True
    )

    seq: int = Field(ge=1)
    speaker: Annotated[Speaker, BeforeValidator(parse_speaker)]
    text: Annotated[str, BeforeValidator(clean_json), Field(max_length=MAX_TURN_CHARS)]
    at: Instant
    confidence: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    delay_ms: int | None = Field(default=None, ge=0)
    """Of an answer: how long after the caller's words were known it was heard."""


class Event(BaseModel):
    """Something other than speech: a tool used, an interruption, an engine lost."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, defer_build=True
    )

    seq: int = Field(ge=1)
    kind: str = Field(pattern=r"^[a-z][a-z0-9_.]{0,63}$")
    at: Instant
    data: Annotated[dict[str, Any], BeforeValidator(clean_json)] = Field(
        default_factory=dict
    )
