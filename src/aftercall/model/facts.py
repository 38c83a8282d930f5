"""What memory holds: facts, each time they were said, and what came of looking for them in a
call.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from aftercall.model.reading import Category, Visibility

SHARED_CALLER = "*"


class MemoryKey(NamedTuple):
    """Whose memory: an agent's, of one caller, or of all of them (`*`) where memory is shared."""

    agent_id: str
    caller: str


@dataclass(frozen=True)
class Fact:
    """Something durable that was said.

    `identity` is the same for two wordings of one thing, `matching` names
    subject and attribute where they are plain; both are keyed hashes where the fact is secret.
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
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def is_secret(self) -> bool:
        return self.visibility == "secret"


@dataclass(frozen=True)
class Gist:
    """As much of a fact as choosing and telling it takes."""

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


@dataclass(frozen=True)
class Occurrence:
    """One time that a fact was said: the call, the turns, the words themselves and what stood
    around them.
    """

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
    """What came of looking for facts in one call; `reason` says why nobody looked, `error` why
    looking failed.
    """

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
