"""A call, live and finished: the form of the archive, of `ingest` and of `POST /api/calls`.

What happens in it are turns (what was said) and events (tool uses, marks, faults).
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from aftercall.clock import Instant
from aftercall.errors import RefusedInput
from aftercall.ids import new_id
from aftercall.model.people import normalise_caller
from aftercall.model.plain_json import clean_json, refuse_many_values

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


IMPORTED = "import"  # the source of imported notes; there was no phone call
SENDER = "sender"  # in the metadata of a call that an agent elsewhere reports: who
MAX_TURNS = 20_000
MAX_CALL_CHARS = 5_000_000
MAX_METADATA_BYTES = 65_536
MAX_DURATION = timedelta(hours=48)
# between a platform's clocks for calls and for turns
MAX_CLOCK_DRIFT = timedelta(seconds=5)

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SID = re.compile(r"[A-Za-z0-9_+=][A-Za-z0-9_.:@=+~-]{0,199}")


def _check_id(value: str) -> str:
    if not _ID.fullmatch(value):
        raise ValueError("may hold only letters, digits, - and _ (64 at most)")
    return value


def is_sid(value: object) -> bool:
    return (
        isinstance(value, str)
        and _SID.fullmatch(value) is not None
        and ".." not in value
    )


def _check_sid(value: str) -> str:
    if not is_sid(value):
        raise ValueError(
            "may hold only letters, digits and _.:@=+~- (200 at most, no '..')"
        )
    return value


def _check_number(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError("is not text")
    return normalise_caller(value)


_REASONS = {
    "bool_type": "is not true or false",
    "dict_type": "is not an object",
    "extra_forbidden": "is not a known field",
    "float_type": "is not a number",
    "int_type": "is not a whole number",
    "literal_error": "is not {expected}",
    "missing": "is missing",
    "model_type": "is not an object",
    "string_pattern_mismatch": "does not match {pattern}",
    "string_type": "is not text",
    "too_long": "is longer than {max_length:,}",
    "tuple_type": "is not a list",
}

Id = Annotated[str, AfterValidator(_check_id)]
Sid = Annotated[str, AfterValidator(_check_sid)]
PhoneNumber = Annotated[str | None, BeforeValidator(_check_number)]
Direction = Literal["inbound", "outbound"]
SENDER = "sender"
"""In the metadata of a call that another agent answers: who sends it to us."""


class LiveCall(BaseModel):
    """What is known of a call when it connects."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, defer_build=True
    )

    id: Id = Field(default_factory=new_id)
    source: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")
    sid: Sid
    agent_id: Id = "main"
    direction: Direction = "inbound"
    caller: PhoneNumber = None
    callee: PhoneNumber = None
    verified: bool = False
    started_at: Instant
    conversation: Id = ""
    resumes: Id | None = None
    metadata: Annotated[dict[str, Any], BeforeValidator(clean_json)] = Field(
        default_factory=dict
    )

    @model_validator(mode="before")
    @classmethod
    def _default_conversation(cls, data: Any) -> Any:
        """A call that continues no other is its own conversation."""
        if not isinstance(data, dict):
            return data
        identity = data.get("id") or new_id()
        return {
            **data,
            "id": identity,
            "conversation": data.get("conversation") or identity,
        }

    @field_validator("metadata")
    @classmethod
    def _check_metadata_size(cls, metadata: dict[str, Any]) -> dict[str, Any]:
        try:
            size = len(json.dumps(metadata, allow_nan=False))
        except (ValueError, TypeError, RecursionError):
            raise ValueError("is not plain JSON") from None
        if size > MAX_METADATA_BYTES:
            raise ValueError(f"is {size:,} bytes long; {MAX_METADATA_BYTES:,} at most")
        return metadata


class Call(LiveCall):
    """A finished call. Never changed once it is sealed."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    ended_at: Instant
    end_reason: str = Field(default="completed", pattern=r"^[a-z][a-z0-9_]{0,63}$")
    turns: tuple[Turn, ...] = Field(max_length=MAX_TURNS, strict=False)
    events: tuple[Event, ...] = Field(default=(), max_length=MAX_TURNS, strict=False)

    @field_validator("turns", "events", mode="before")
    @classmethod
    def _number_entries(cls, entries: Any) -> Any:
        """Numbers entries that came without a number."""
        if not isinstance(entries, list):
            return entries
        return [
            {"seq": seq, **entry}
            if isinstance(entry, dict) and entry.get("seq") is None
            else entry
            for seq, entry in enumerate(entries, 1)
        ]

    @model_validator(mode="after")
    def _check_consistency(self, info: ValidationInfo) -> Self:
        if info.context and info.context.get("sealed"):
            return self  # a sealed call is what happened, even if a clock was set back
        _check_span(self.started_at, self.ended_at)
        _check_order(self)
        if sum(len(turn.text) for turn in self.turns) > MAX_CALL_CHARS:
            raise ValueError(
                f"turns: hold more than {MAX_CALL_CHARS:,} characters together"
            )
        return self

    @property
    def duration_s(self) -> float:
        return (self.ended_at - self.started_at).total_seconds()

    @property
    def is_silent(self) -> bool:
        """Whether its caller said nothing. Such a call is kept but replaces no other."""
        return not has_caller_words(self.turns)


def has_caller_words(turns: Iterable[Turn | Event]) -> bool:
    """Recognisers write blanks and dots for silence; those are no words."""
    spoken = (
        turn.text
        for turn in turns
        if isinstance(turn, Turn) and turn.speaker == "caller"
    )
    return any(character.isalnum() for text in spoken for character in text)


def parse_call(data: object) -> Call:
    """A finished call from outside. Raises RefusedInput for the first field that does not fit."""
    if not isinstance(data, dict):
        raise RefusedInput("call", "is not a JSON object")
    if {"call", "gold"} <= data.keys():
        told = "is a labelled call: `aftercall eval reading` reads those, and its `call` fits here"
        raise RefusedInput("call", told)
    try:
        return Call.model_validate(data)
    except ValidationError as error:
        raise to_refused_input(error) from None


def parse_call_json(raw: bytes) -> Call:
    refuse_many_values(raw, "call")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedInput("call", f"is not valid UTF-8 (byte {error.start})") from None
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise RefusedInput(
            "call",
            f"is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg})",
        ) from None
    except (ValueError, RecursionError):
        raise RefusedInput("call", "is not valid JSON") from None
    return parse_call(data)


def to_refused_input(error: ValidationError) -> RefusedInput:
    """The first problem in one line, without the value, which may be speech."""
    return problem_to_refusal(error.errors(include_url=False, include_input=False)[0])


def problem_to_refusal(first: Mapping[str, Any]) -> RefusedInput:
    """The refusal for one problem as pydantic describes it."""
    message = first["msg"].removeprefix("Value error, ")
    reason = _REASONS.get(first["type"], message).format(**first.get("ctx", {}))
    parts = [
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]
    ]
    field = "".join(parts).lstrip(".")
    if not field:
        field, _, reason = reason.partition(": ")
    return RefusedInput(field, reason[:1].lower() + reason[1:])


def _check_span(started_at: datetime, ended_at: datetime) -> None:
    if ended_at < started_at:
        raise ValueError("ended_at: lies before started_at")
    if ended_at - started_at > MAX_DURATION:
        raise ValueError("ended_at: lies more than 48 hours after started_at")


def _check_order(call: Call) -> None:
    """Numbers follow each other, and no time goes back by more than clocks drift."""
    kinds: tuple[tuple[str, Sequence[Turn | Event]], ...] = (
        ("turns", call.turns),
        ("events", call.events),
    )
    for name, entries in kinds:
        last = call.started_at - MAX_CLOCK_DRIFT
        for index, entry in enumerate(entries):
            if entry.seq != index + 1:
                raise ValueError(
                    f"{name}[{index}].seq: is {entry.seq} where {index + 1} is next"
                )
            if entry.at < last:
                earlier = "started_at" if index == 0 else f"{name}[{index - 1}].at"
                raise ValueError(f"{name}[{index}].at: lies before {earlier}")
            if name == "turns" and entry.at > call.ended_at + MAX_CLOCK_DRIFT:
                raise ValueError(f"{name}[{index}].at: lies after ended_at")
            last = entry.at


RecordingState = Literal["waiting", "downloading", "here", "absent", "failed"]
TranscriptState = Literal["none", "waiting", "here", "failed"]


@dataclass(frozen=True)
class Recording:
    """`absent` is final: the carrier has no recording. `path` is relative to the home."""

    id: str
    call_id: str
    carrier: str
    sid: str
    url: str | None = field(repr=False)
    state: RecordingState
    sha256: str | None
    bytes: int | None
    path: str | None
    attempts: int
    reason: str
    transcript: TranscriptState
    changed_at: datetime
    etag: str | None = None


_LEADING_FIELDS = (
    "schema",
    "id",
    "source",
    "sid",
    "agent_id",
    "direction",
    "caller",
    "callee",
    "verified",
)


def encode_call(call: Call) -> bytes:
    """Field order of the file format: what the call is, what was said, metadata."""
    data = call.model_dump(
        mode="json", by_alias=True, exclude={"turns", "events", "metadata"}
    )
    ordered = {key: data.pop(key) for key in _LEADING_FIELDS} | data
    ordered["turns"] = dump_items(call.turns)
    if call.events:
        ordered["events"] = dump_items(call.events)
    return format_json(ordered | {"metadata": call.metadata})


def dump_items(items: Iterable[Turn | Event]) -> list[dict[str, Any]]:
    return [item.model_dump(mode="json", exclude_none=True) for item in items]


def format_json(data: dict[str, Any]) -> bytes:
    """One field a line and one turn a line, for people and for line-based tools."""
    fields = ",\n".join(
        f" {_quote(name)}: {_format_value(value)}" for name, value in data.items()
    )
    return f"{{\n{fields}\n}}\n".encode()


def _format_value(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(_quote(item) for item in value) + "\n ]"
    return _quote(value)


def _quote(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
