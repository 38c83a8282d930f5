"""What a carrier's webhooks report, the same for every carrier.

Webhooks come late, twice and out of order. A notice whose `key` was seen before is a repeat; an
empty key says nothing.

Commands to a carrier's REST API are values, too. `carrier` sends them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from urllib.parse import quote, urlencode

from aftercall.model.calls import Direction, LiveCall
from aftercall.model.json_fields import Json
from aftercall.model.people import normalise_caller
from aftercall.model.plain_json import clean_text


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """One request below the carrier's API address, with a form or with JSON.

    A request that is not repeatable would do its work twice if it were sent twice. `action` names
    it in messages, where ids and fields do not belong.
    """

    action: str
    method: str
    path: str
    form: Sequence[tuple[str, str]] = field(default=(), repr=False)
    json: Json | None = field(default=None, repr=False)
    is_repeatable: bool = True

    @property
    def content_type(self) -> str:
        return (
            "application/x-www-form-urlencoded"
            if self.json is None
            else "application/json"
        )

    @property
    def body(self) -> bytes:
        if self.method == "GET":
            return b""
        text = urlencode(self.form) if self.json is None else json.dumps(self.json)
        return text.encode()

    @property
    def target(self) -> str:
        """The path with its query: a GET carries its form there."""
        is_query = self.method == "GET" and self.form
        return f"{self.path}?{urlencode(self.form)}" if is_query else self.path


def path_part(text: str) -> str:
    """An id as one part of a path, whatever it holds."""
    return quote(text, safe=":@=+~")


MAX_DETAIL_CHARS = 200
NUMBER_REFUSED = "number_refused"
_DETAILS_BY_NUMBER = (
    "caller_as_sent",
    "caller_id_name",
    "caller_name",
    "from_city",
    "from_country",
)


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
        """The end reason for the archive."""
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
    """A call begins. `verified`: the carrier vouches that the number is the caller's.

    A number that the carrier found to be forged is refused: the call counts as withheld.
    """

    key: str
    source: str
    sid: str
    caller: str | None = field(repr=False)
    callee: str | None = field(repr=False)
    direction: Direction
    verified: bool
    metadata: Json = field(repr=False)

    @property
    def is_number_refused(self) -> bool:
        return NUMBER_REFUSED in self.metadata

    def refuse_number(self) -> "RingNotice":
        """The ring without the number, and without what the carrier knows by the number."""
        kept = {
            name: value
            for name, value in self.metadata.items()
            if name not in _DETAILS_BY_NUMBER
        }
        return replace(
            self,
            caller=None,
            verified=False,
            metadata=kept | {NUMBER_REFUSED: "the carrier says that it is forged"},
        )

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
    """What the carrier transcribed of the caller. An unknown confidence is None."""

    key: str
    sid: str
    text: str = field(default="", repr=False)
    confidence: float | None = None
    is_final: bool = True


@dataclass(frozen=True, slots=True)
class CallProgress:
    """The state of a call.

    `ring` says who is on the line, if the carrier repeats it. `client_state` is ours: it was sent
    with a command and comes back.
    """

    key: str
    sid: str
    state: CarrierCallState
    ring: RingNotice | None = field(default=None, repr=False)
    client_state: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class RecordingNotice:
    """The state of a recording. Any of `call_sids` may be the known id (`metadata["ids"]`)."""

    key: str
    call_sids: tuple[str, ...]
    state: RecordingState
    recording_sid: str | None = None
    url: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SpeakingEnded:
    """The carrier said what we asked for, or was interrupted. `client_state` is ours."""

    key: str
    sid: str
    client_state: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class StreamFailed:
    """The carrier could not open or keep the media socket: the caller hears nothing."""

    key: str
    sid: str


Notice = (
    RingNotice
    | SpeechGathered
    | CallProgress
    | RecordingNotice
    | SpeakingEnded
    | StreamFailed
)


def read_party(party: object, side: str, metadata: Json) -> str | None:
    """A normalised number or address. Any other counts as withheld, with its text in metadata."""
    if not isinstance(party, str):
        return None
    try:
        return normalise_caller(party)
    except ValueError:
        metadata[f"{side}_as_sent"] = clean_detail(party)
        return None


def clean_detail(text: str) -> str:
    """Free text of a carrier that every database can store."""
    return clean_text(text[:MAX_DETAIL_CHARS])


def read_confidence(value: object) -> float | None:
    """Between 0 and 1. Carriers send 0 when they do not know."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        confidence = float(value)
    except (ValueError, OverflowError):
        return None
    return confidence if 0 < confidence <= 1 else None
