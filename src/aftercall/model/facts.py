"""What memory holds: facts and their occurrences, extractions, and pinned topics."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from aftercall.errors import RefusedInput
from aftercall.model.json_fields import Json
from aftercall.model.people import normalise_party
from aftercall.model.reading import Category, Visibility

if TYPE_CHECKING:
    from aftercall.model.followups import Trust
    from aftercall.settings import Settings
    from aftercall.settings.sections import MemorySettings

SHARED_CALLER = "*"
LEVELS: tuple[Visibility, ...] = ("shared", "private", "secret")


FactState = Literal["active", "disputed", "doubtful", "superseded", "wrong"]


class MemoryKey(NamedTuple):
    """The memory of an agent for one caller, or for all of them (`*`) if memory is shared."""

    agent_id: str
    caller: str


def memory_key(
    settings: "Settings", agent_id: str, party: str | None
) -> MemoryKey | None:
    """The memory that a call of this party opens; every part of the program asks here.

    None for scope `none` and for withheld numbers. A party is a number, which stands for its owner,
    or another person at a number (`+15550100#anna`) with a separate memory.
    """
    try:
        known = normalise_party(party)
    except ValueError as error:
        raise RefusedInput("caller", str(error)) from None
    if known is None or settings.memory.scope == "none":
        return None
    return MemoryKey(
        agent_id, SHARED_CALLER if settings.memory.scope == "shared" else known
    )


def is_releasable(
    level: Visibility, trust: "Trust", settings: "MemorySettings"
) -> bool:
    """Whether a fact of this level may be told to a caller; a secret never may.

    Briefings and lookups both decide by this.
    """
    if level == "secret":
        return False
    return trust == "verified" or LEVELS.index(level) <= LEVELS.index(settings.release)


@dataclass(frozen=True)
class Fact:
    """Something durable that was said.

    `identity` is the same for two wordings of one thing; `matching` names subject and attribute
    if they are clear. Both are keyed hashes if the fact is secret.
    """

    id: str
    key: MemoryKey
    category: Category
    content: str
    summary: str
    visibility: Visibility
    confidence: float
    needs_confirmation: bool
    first_seen_at: datetime
    last_seen_at: datetime
    valid_from: datetime
    valid_until: datetime | None
    occurrence_count: int
    supersedes: str | None
    superseded_by: str | None
    is_active: bool
    identity: str
    matching: str | None
    reader: str
    prompt_hash: str | None
    dispute: str | None = None
    """The first fact of the dispute that this fact is part of."""
    doubt: str | None = None
    """A retired fact that this one hangs on: it may no longer hold either."""
    never_true: bool = False
    """Retired because it was wrong from the beginning, not because it changed."""
    metadata: Json = field(default_factory=dict)

    @property
    def is_secret(self) -> bool:
        return self.visibility == "secret"

    @property
    def state(self) -> FactState:
        if self.is_active:
            if self.dispute:
                return "disputed"
            return "doubtful" if self.doubt else "active"
        return "wrong" if self.never_true else "superseded"


@dataclass(frozen=True)
class Gist:
    """The part of a fact that a briefing needs."""

    id: str
    agent_id: str
    content: str
    category: Category
    valid_from: datetime
    last_seen_at: datetime
    occurrence_count: int
    needs_confirmation: bool
    visibility: Visibility
    identity: str
    matching: str | None
    dispute: str | None
    doubt: str | None


@dataclass(frozen=True)
class Occurrence:
    """One time that a fact was said: the call, the turns, the words and their context."""

    id: str
    fact_id: str
    call_id: str
    at: datetime
    first_turn: int
    last_turn: int
    words: str
    context: str
    sentiment: str
    confidence: float
    reader: str
    prompt_hash: str | None = None


@dataclass(frozen=True)
class Extraction:
    """The result of searching one call for facts: `reason` if skipped, `error` if failed."""

    call_id: str
    extracted_at: datetime
    reader: str
    prompt_hash: str | None = None
    facts_extracted: int = 0
    facts_updated: int = 0
    facts_deduplicated: int = 0
    facts_refused: int = 0
    facts_dropped: int = 0
    reason: str = ""
    error: str | None = None


PinState = Literal["pinned", "unpinned"]


@dataclass(frozen=True)
class Sentence:
    """Words of the caller that name things: single terms and runs of words."""

    text: str = field(repr=False)
    terms: tuple[str, ...] = field(repr=False)
    runs: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class SpokenTopic:
    """What one call was about."""

    call_id: str
    conversation: str
    at: datetime
    terms: frozenset[str] = field(repr=False)
    central: frozenset[str] = field(repr=False)
    settled: frozenset[str] = field(repr=False)
    said: tuple[Sentence, ...] = field(repr=False)


@dataclass(frozen=True)
class PinMention:
    """One call of a pin's history, in the caller's words."""

    call_id: str
    conversation: str
    at: datetime
    words: str = field(repr=False)


@dataclass(frozen=True)
class Pin:
    """A pinned topic. People may set note, title and state; the program sets the rest."""

    id: str
    key: MemoryKey = field(repr=False)
    terms: tuple[str, ...] = field(repr=False)
    title: str = field(repr=False)
    state: PinState
    reason: str
    history: tuple[PinMention, ...] = field(repr=False)
    since: datetime
    last_at: datetime
    changed_at: datetime
    is_titled_by_hand: bool = False
    is_decided_by_hand: bool = False
    note: str | None = field(default=None, repr=False)

    @property
    def anchor(self) -> str:
        return self.terms[0]


@dataclass(frozen=True)
class PinItem:
    """A request or a promise that belongs to a pin."""

    id: str
    title: str = field(repr=False)
    state: str
    due: str | None
    changed_at: datetime
    terms: frozenset[str] = field(default=frozenset(), repr=False)
    standing: str = ""  # the state as people see it, if that is another word


@dataclass(frozen=True)
class PinPage:
    """A pin with its status and items. Never holds a secret."""

    pin: Pin
    about: str = field(repr=False)
    status: str = field(repr=False)
    open_items: tuple[PinItem, ...]
    done_items: tuple[PinItem, ...]
