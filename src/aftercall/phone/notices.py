"""What a carrier's webhooks tell, the same on every carrier: a call rings, was heard, has moved
on, was recorded.

Webhooks come late, twice and out of order: a notice whose `key` was seen before is the same
notice (an empty key says nothing).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from aftercall.model.calls import Direction, LiveCall
from aftercall.model.people import normalise_caller

MAX_DETAIL_CHARS = 200


class CarrierCallState(StrEnum):
    RINGING = "ringing"
    ANSWERED = "answered"
    COMPLETED = "completed"
    BUSY = "busy"
    FAILED = "failed"
    NO_ANSWER = "no_answer"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self not in (CarrierCallState.RINGING, CarrierCallState.ANSWERED)

    @property
    def end_reason(self) -> str:
        """Why a call ended, as the archive says it."""
        return "caller_hung_up" if self is CarrierCallState.COMPLETED else self.value


class RecordingState(StrEnum):
    RUNNING = "running"
    READY = "ready"
    ABSENT = "absent"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        return self is not RecordingState.RUNNING


@dataclass(frozen=True, slots=True)
class RingNotice:
    """A call that wants to begin.

    `verified` only where the carrier vouches that the number is the caller's own.
    """

    key: str
    source: str
    sid: str
    caller: str | None = field(repr=False)
    callee: str | None = field(repr=False)
    direction: Direction
    verified: bool
    metadata: Mapping[str, Any] = field(repr=False)

    def open_call(self, started_at: datetime, agent_id: str = "main") -> LiveCall:
        return LiveCall(
            source=self.source,
            sid=self.sid,
            agent_id=agent_id,
            direction=self.direction,
            caller=self.caller,
            callee=self.callee,
            verified=self.verified,
            started_at=started_at,
            metadata=dict(self.metadata),
        )


@dataclass(frozen=True, slots=True)
class SpeechGathered:
    """What the carrier's own ears made of the caller; a confidence that it does not know is
    None.
    """

    key: str
    sid: str
    text: str = field(default="", repr=False)
    confidence: float | None = None
    digits: str = field(default="", repr=False)
    is_final: bool = True


@dataclass(frozen=True, slots=True)
class CallProgress:
    """Where a call stands.

    Of two, the one with the higher `order` is the later; None where the carrier does not say.

    `ring` tells who is on the line where the carrier repeats it; `words` are our own, sent
    along with a command and come back.
    """

    key: str
    sid: str
    state: CarrierCallState
    duration_s: int | None = None
    order: float | None = None
    ring: RingNotice | None = field(default=None, repr=False)
    client_state: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class RecordingNotice:
    """How a recording stands.

    `calls` are ids of its call, any of which may be the known one (`metadata["ids"]`).
    """

    key: str
    call_sids: tuple[str, ...]
    state: RecordingState
    recording_sid: str | None = None
    url: str | None = field(default=None, repr=False)
    fetch_within_s: int | None = None


@dataclass(frozen=True, slots=True)
class SpeakingEnded:
    """What the carrier was asked to say has been said, or broken off; `words` are our own, sent
    along with the asking.
    """

    key: str
    sid: str
    client_state: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class StreamFailed:
    """The carrier could not open or keep the media socket: the caller hears nothing unless
    somebody speaks.
    """

    key: str
    sid: str


Notice = RingNotice | SpeechGathered | CallProgress | RecordingNotice | SpeakingEnded | StreamFailed


def read_party(party: object, side: str, metadata: dict[str, Any]) -> str | None:
    """A number or address in our form.

    One that has none counts as withheld; how it was sent is kept beside the call.
    """
    if not isinstance(party, str):
        return None
    try:
        return normalise_caller(party)
    except ValueError:
        metadata[f"{side}_as_sent"] = clean_detail(party)
        return None


def clean_detail(text: str) -> str:
    """Free text of a carrier, made fit for every store."""
    return text[:MAX_DETAIL_CHARS].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def read_confidence(value: object) -> float | None:
    """Between 0 and 1. Nought is what carriers send when they do not know."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        confidence = float(value)
    except (ValueError, OverflowError):
        return None
    return confidence if 0 < confidence <= 1 else None
