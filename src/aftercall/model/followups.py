"""Requests and promises as rows of the ledger and as JSON, and the work that sinks get."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, get_args

from aftercall.model.json_fields import Json, pick_fields
from aftercall.model.reading import RequestKind

FollowUpKind = Literal["request", "promise"]
FollowUpState = Literal[
    "unclear",
    "open",
    "held",
    "doing",
    "done",
    "failed",
    "refused",
    "withdrawn",
    "expired",
    "unknown",
    "broken",
]
Trust = Literal["verified", "known", "unknown"]
Purpose = Literal["request", "reminder", "notice", "journal", "event"]
Effect = Literal["done", "passed on", "noted"]
"""What `done` means: the thing itself, someone was told to do it, or it is written down."""
EFFECT_ORDER: tuple[Effect, ...] = ("done", "passed on", "noted")
"""The strongest first."""
Standing = FollowUpState | Effect
"""A state as people see it."""
PERSON: Final = "person"
"""Stands among the sinks of what a person has done.

It is a correction, so a reading or a rebuild leaves it as it is.
"""
TO_DO: tuple[Standing, ...] = ("noted", "failed", "broken", "unknown")
"""What nothing but a person will do: written down, or not done, as far as is known."""
_TOLD_STANDINGS: Mapping[str, str] = {
    "noted": "only written down: a person must do it",
    "unknown": "promised by the agent, a person must see to it",
    "broken": "promised and not done in time",
}
EFFECTS: Mapping[str, Effect] = {
    "agent": "done",
    "mcp": "done",
    "github": "done",
    "webhook": "passed on",
    "message": "passed on",
    "email": "passed on",
    "tasks": "noted",
    "people": "noted",
    PERSON: "done",
}
"""By sink; of several sinks the strongest effect counts."""
TurnRef = tuple[str, int]
"""The call's id and the number of the turn."""


def to_state(standing: str) -> FollowUpState:
    """The state of a row that people see so."""
    states: tuple[FollowUpState, ...] = get_args(FollowUpState)
    return next((state for state in states if state == standing), "done")


def describe_state(
    state: FollowUpState, kind: FollowUpKind, request_kind: RequestKind, sink: str
) -> Standing:
    """The state as people see it: a task on a list is noted, not done.

    An opened issue is done only if an issue was asked for. An unknown sink counts as passed on.
    """
    if state != "done" or not sink:
        return state
    is_task = kind == "request" and request_kind != "issue"
    reached: set[Effect] = {
        "noted" if name == "github" and is_task else EFFECTS.get(name, "passed on")
        for name in sink.split("+")
    }
    return next(effect for effect in EFFECT_ORDER if effect in reached)


@dataclass(frozen=True)
class FollowUpDraft:
    """A request or a promise of a conversation, before it is compared with the ledger."""

    kind: FollowUpKind
    request_kind: RequestKind
    title: str = field(repr=False)
    details: str = field(default="", repr=False)
    person: str | None = field(default=None, repr=False)
    due: str | None = None
    turn_refs: tuple[TurnRef, ...] = ()
    words: str = field(default="", repr=False)
    is_withdrawn: bool = False
    is_unclear: bool = False
    note: str = ""


@dataclass(frozen=True)
class FollowUp:
    """One row of the ledger."""

    id: str
    key: str
    kind: FollowUpKind
    request_kind: RequestKind
    title: str = field(repr=False)
    details: str = field(repr=False)
    person: str | None = field(repr=False)
    due: str | None
    conversation: str
    call_id: str
    agent_id: str
    caller: str | None = field(repr=False)
    turns: tuple[TurnRef, ...]
    words: str = field(repr=False)
    state: FollowUpState
    reason: str = field(repr=False)
    link: str | None
    trust: Trust
    sink: str
    fulfilled_by: str | None
    round: int
    remind_at: datetime | None
    created_at: datetime
    changed_at: datetime

    @property
    def sinks(self) -> tuple[str, ...]:
        return tuple(self.sink.split("+")) if self.sink else ()

    @property
    def standing(self) -> Standing:
        return describe_state(self.state, self.kind, self.request_kind, self.sink)

    @property
    def is_only_here(self) -> bool:
        """Noted in files of this machine: nobody else has to be told of a change."""
        effects = {EFFECTS.get(name) for name in self.sinks}
        return self.state == "done" and effects == {"noted"}

    @property
    def told_standing(self) -> str:
        """For people: what was done and by whom, or that it is left to one of them."""
        if self.fulfilled_by and self.standing == "noted":
            return "kept when the request is done"
        if self.standing in _TOLD_STANDINGS:
            return _TOLD_STANDINGS[self.standing]
        by = [
            "a person" if name == PERSON else name
            for name in self.sinks
            if EFFECTS.get(name, "passed on") == self.standing
        ]
        return f"{self.standing} by {' and '.join(by)}" if by else self.standing


@dataclass(frozen=True)
class FollowUpChange:
    """A line of a follow-up's history."""

    at: datetime
    who: str
    what: str
    note: str


@dataclass(frozen=True)
class SinkWork:
    """What a sink gets. All but keys and paths was said on the phone: data, no instructions."""

    key: str
    purpose: Purpose
    kind: RequestKind
    title: str = field(repr=False)
    details: str = field(default="", repr=False)
    person: str | None = field(default=None, repr=False)
    due: str | None = None
    words: str = field(default="", repr=False)
    caller: str | None = field(default=None, repr=False)
    agent_id: str = "main"
    conversation: str = ""
    call_id: str = ""
    trust: Trust = "unknown"
    at: datetime | None = None
    archives: tuple[str, ...] = ()

    @classmethod
    def from_followup(cls, row: FollowUp, purpose: Purpose, key: str) -> "SinkWork":
        return cls(
            key=key,
            purpose=purpose,
            kind=row.request_kind,
            title=row.title,
            details=row.details,
            person=row.person,
            due=row.due,
            caller=row.caller,
            agent_id=row.agent_id,
            conversation=row.conversation,
            call_id=row.call_id,
            trust=row.trust,
            at=row.created_at,
        )

    def to_json(self) -> Json:
        """For programs; `title`, `details`, `person` and `words` hold what was said."""
        said = "key purpose kind title details person due words caller trust"
        return {
            **pick_fields(self, f"{said} agent_id conversation"),
            "call": self.call_id,
            "archives": list(self.archives),
        }

    @property
    def may_contact_caller(self) -> bool:
        """Only a verified number is called or written to."""
        return self.purpose != "notice" and self.trust == "verified"


@dataclass(frozen=True)
class SinkReceipt:
    """Where the result is, and what the sink answered."""

    link: str | None = None
    response: str = ""


@dataclass(frozen=True)
class Delivery:
    """What one sink is to do, and how far it is."""

    key: str
    followup_id: str | None
    conversation: str
    sink: str
    purpose: Purpose
    state: Literal["due", "sending", "waiting", "done", "dead"]
    attempts: int
    reason: str
    link: str | None
    response: str | None
    created_at: datetime
    changed_at: datetime


@dataclass(frozen=True)
class FollowUpRun:
    """The follow-up work of one conversation: its timer and its state."""

    conversation: str
    agent_id: str
    caller: str | None = field(repr=False)
    ended_at: datetime
    state: Literal["due", "running", "done", "failed"]
    reason: str
    run: int
    finished_run: int
    legs: Json
    changed_at: datetime


def followup_json(row: FollowUp) -> Json:
    said = "id kind request_kind title details person due"
    return {
        **pick_fields(
            row, f"{said} state standing reason link trust sinks conversation"
        ),
        "call": row.call_id,
        **pick_fields(row, "agent_id caller"),
        "turns": [{"call": call, "seq": seq} for call, seq in row.turns],
        **pick_fields(row, "words fulfilled_by remind_at created_at changed_at"),
    }


def delivery_json(delivery: Delivery) -> Json:
    names = "key sink purpose state attempts reason link response changed_at"
    return pick_fields(delivery, names)


def change_json(change: FollowUpChange) -> Json:
    return pick_fields(change, "at who what note")
