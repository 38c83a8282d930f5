"""Requests and promises as rows of the ledger, and the work that is handed to a sink for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from aftercall.model.reading import RequestKind

FollowUpKind = Literal["request", "promise"]
FollowUpState = Literal[
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
Purpose = Literal["request", "reminder", "notice", "journal"]
Effect = Literal["done", "passed on", "noted"]
"""What `done` means of a request: the thing itself, that somebody was told to do it, or that it
stands written somewhere.
"""
EFFECTS: Mapping[str, Effect] = {
    "agent": "done",
    "mcp": "done",
    "github": "done",
    "webhook": "passed on",
    "message": "passed on",
    "email": "passed on",
    "tasks": "noted",
    "people": "noted",
}
"""By the sink that had it; the furthest of several counts."""
TurnRef = tuple[str, int]
"""A turn: the call's id and the number within it."""


def describe_state(
    state: FollowUpState, kind: FollowUpKind, request_kind: RequestKind, sink: str
) -> str:
    """A state as people and callers are told it: a contract that only stands on a list has not
    been sent.

    An issue is the thing itself where an issue was asked for. A sink nobody knows was given the
    request.
    """
    if state != "done" or not sink:
        return state
    is_task = kind == "request" and request_kind != "issue"
    reached = {
        "noted" if name == "github" and is_task else EFFECTS.get(name, "passed on")
        for name in sink.split("+")
    }
    return next(effect for effect in ("done", "passed on", "noted") if effect in reached)


@dataclass(frozen=True)
class FollowUpDraft:
    """A request or a promise as a conversation tells it, before the ledger compares it with
    what it holds.
    """

    kind: FollowUpKind
    request_kind: RequestKind
    title: str = field(repr=False)
    details: str = field(default="", repr=False)
    person: str | None = field(default=None, repr=False)
    due: str | None = None
    turn_refs: tuple[TurnRef, ...] = ()
    words: str = field(default="", repr=False)
    is_withdrawn: bool = False
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
    reason: str
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
    def standing(self) -> str:
        return describe_state(self.state, self.kind, self.request_kind, self.sink)


@dataclass(frozen=True)
class FollowUpChange:
    """A line of a follow-up's history."""

    at: datetime
    who: str
    what: str
    note: str


@dataclass(frozen=True)
class SinkWork:
    """What a sink is given.

    Everything in it but keys and paths was said on the phone: data, never an instruction.
    """

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
        """What any sink is told of a row of the ledger, whatever it is to do about it."""
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

    @property
    def may_contact_caller(self) -> bool:
        """A number that was only claimed is not rung back or written to."""
        return self.purpose != "notice" and self.trust == "verified"


@dataclass(frozen=True)
class SinkReceipt:
    """What a sink made of it: where it is, and what it answered."""

    link: str | None = None
    response: str = ""


@dataclass(frozen=True)
class Delivery:
    """One effect of one sink, as far as it got."""

    key: str
    followup_id: str | None
    conversation: str
    sink: str
    purpose: Purpose
    state: Literal["sending", "waiting", "done", "rehearsed", "dead"]
    attempts: int
    reason: str
    link: str | None
    response: str | None
    created_at: datetime
    changed_at: datetime


@dataclass(frozen=True)
class FollowUpRun:
    """The follow-up work of one conversation: its timer, and how far it is."""

    conversation: str
    agent_id: str
    caller: str | None = field(repr=False)
    ended_at: datetime
    state: Literal["due", "running", "done", "failed"]
    reason: str
    run: int
    finished_run: int
    legs: Mapping[str, Any]
    changed_at: datetime
