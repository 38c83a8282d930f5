"""What a reader finds in one finished call, and how the steps that use it ended.

Every item names the turns it rests on.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field

from aftercall.model.people import spoken_name

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


RequestKind = Literal[
    "issue", "task", "reminder", "note", "message", "booking", "other"
]
Category = Literal[
    "preference",
    "decision",
    "person",
    "action_item",
    "correction",
    "technical",
    "routine",
    "emotional",
]
CATEGORIES: tuple[Category, ...] = get_args(Category)
REQUEST_KINDS: tuple[RequestKind, ...] = get_args(RequestKind)
Visibility = Literal["shared", "private", "secret"]
Sentiment = Literal["negative", "neutral", "positive"]
Turns = tuple[Annotated[int, Field(ge=1)], ...]
T = TypeVar("T")


class _FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Profile(_FrozenModel):
    """What the caller clearly said about themselves."""

    name: str | None = None
    call_name: str | None = None
    pronouns: str | None = None
    timezone: str | None = None
    notes: str | None = None
    context: str | None = None

    @property
    def spoken_name(self) -> str | None:
        return spoken_name(self.name, self.call_name)


class Identity(_FrozenModel):
    """How the agent named and described itself."""

    name: str | None = None
    creature: str | None = None
    vibe: str | None = None
    emoji: str | None = None


class Request(_FrozenModel):
    """What the caller wants done after the call."""

    kind: RequestKind
    title: str
    details: str = ""
    person: str | None = None
    due: date | None = None
    turns: Turns
    words: str


class UnclearRequest(_FrozenModel):
    """What may be a request: shown to people with its words, never acted on."""

    title: str
    turns: Turns
    words: str
    confidence: float = Field(ge=0, le=1)


class WithdrawnRequest(_FrozenModel):
    """Asked for, then called off: it must not be done."""

    title: str
    turns: Turns


class Promise(_FrozenModel):
    """What the agent said it or its company would do."""

    title: str
    turns: Turns
    words: str


class ItemDecision(_FrozenModel):
    """Who decided one question about an item: a model, or the rules where it had no answer."""

    title: str
    about: str
    answer: str | None
    by: str


class RequestsReading(_FrozenModel):
    """What one call asks for and promises."""

    requests: tuple[Request, ...] = ()
    unclear: tuple[UnclearRequest, ...] = ()
    withdrawn: tuple[WithdrawnRequest, ...] = ()
    promises: tuple[Promise, ...] = ()


class Summary(_FrozenModel):
    """A call in a few plain sentences, and under headings for the next call."""

    text: str
    topics: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    context: str = ""


class KnownFact(_FrozenModel):
    """A fact that memory already holds, for a reader. Never a secret."""

    id: str
    category: Category
    text: str


class FactDraft(_FrozenModel):
    """A fact from one call, before memory compares it with what it holds.

    `supersedes` and `duplicate_of` are a reader's suggestion: ids of known facts, checked later.
    """

    category: Category
    text: str
    summary: str = Field(max_length=100)
    visibility: Visibility
    confidence: float = Field(ge=0, le=1)
    sentiment: Sentiment = "neutral"
    turns: Turns
    words: str
    supersedes: str | None = None
    duplicate_of: str | None = None


class Reading(_FrozenModel):
    """Everything that was read from one call."""

    language: str
    summary: str
    profile: Profile = Profile()
    identity: Identity = Identity()
    requests: tuple[Request, ...] = ()
    unclear: tuple[UnclearRequest, ...] = ()
    withdrawn: tuple[WithdrawnRequest, ...] = ()
    promises: tuple[Promise, ...] = ()
    facts: tuple[FactDraft, ...] = ()
    decisions: tuple[ItemDecision, ...] = ()


@dataclass(frozen=True)
class ReadingResult(Generic[T]):
    value: T
    trace: ReadingTrace


_PAIR = re.compile(r"(?<!\w)(\*{1,3}|_{1,3}|`+|~~)(?=\S)([^\n]{1,500}?)(?<=\S)\1(?!\w)")
_MAX_NESTING = 3  # `**_a_**` is two deep


def strip_markdown(text: str) -> str:
    """`a **bold** word` is `a bold word`; `snake_case` and `2*3*4` stay."""
    for _ in range(_MAX_NESTING):
        text = _PAIR.sub(r"\2", text)
    return text
