"""What can be searched: passages (a turn, a summary, a fact), scopes, hits, and documents."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import BaseModel, ConfigDict, Field

from aftercall.model.json_fields import Json
from aftercall.model.reading import Visibility

Kind = Literal["turn", "summary", "fact"]
PAGE_BITS = 15
"""A passage's number is a page and a place of so many bits: a call has 20,000 turns at most."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One thing that can be found. `around` holds words said near a fact."""

    kind: Kind
    agent_id: str
    caller: str | None
    call_id: str | None
    text: str
    at: datetime
    seq: int = 0
    ref: str | None = None
    speaker: str = ""
    category: str = ""
    visibility: Visibility = "shared"
    around: str = ""
    until: datetime | None = None
    mentions: int = 1


@dataclass(frozen=True, slots=True)
class SearchScope:
    """Which passages may be found. Without a caller: those of all callers, for the owner only.

    `since` and `before` bound when it was said. `as_of` searches what held at that instant,
    retired facts included.
    """

    agent_id: str
    caller: str | None
    kinds: tuple[Kind, ...] = ()
    categories: tuple[str, ...] = ()
    visibilities: tuple[str, ...] = ()
    since: datetime | None = None
    before: datetime | None = None
    as_of: datetime | None = None
    group: tuple[str, ...] = ()  # other agents whose `shared` facts may be found


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A found passage, its score, and the turns around it."""

    passage: Passage
    score: float
    before: tuple[Passage, ...] = ()
    after: tuple[Passage, ...] = ()


class MatchSigns(NamedTuple):
    """What ranking uses of a passage besides its words. Light: a search reads many."""

    n: int
    day: int
    marks: int
    kind: Kind
    speaker: str
    category: str
    mentions: int


def is_turn_number(n: int) -> bool:
    """Turns are on odd pages, where adjacent numbers are neighbours."""
    return bool(n >> PAGE_BITS & 1)


MAX_CONTENT_CHARS = 1_000_000
MAX_TITLE_CHARS = 500
NEXT_CALL_HEADING = "### Context for Next Call"
_ID_NAMESPACE = uuid5(NAMESPACE_URL, "aftercall:documents")


class Document(BaseModel):
    """A page of text in memory, made of a call or sent by a client."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    id: str
    title: str = Field(max_length=MAX_TITLE_CHARS)
    content: str = Field(max_length=MAX_CONTENT_CHARS)
    source: str = "api"
    tags: tuple[str, ...] = ()
    metadata: Json = Field(default_factory=dict)
    namespace: str = ""
    agent_id: str = "main"
    caller: str | None = None
    call_id: str | None = None
    made_at: datetime
    changed_at: datetime


def make_document_id(*names: str) -> str:
    """The same names give the same id, so a document sent twice is one."""
    return str(uuid5(_ID_NAMESPACE, "\n".join(names)))


def is_document_id(text: str) -> bool:
    """Canonical UUIDs only, because an id becomes part of a path."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def parse_next_call_context(content: str) -> str:
    """The context for the next call in a page; the last section of that name counts."""
    _, heading, below = f"\n{content}".rpartition(f"\n{NEXT_CALL_HEADING}\n")
    section = below.partition("\n#")[0]
    return " ".join(section.split()) if heading else ""
