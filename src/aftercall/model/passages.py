"""What can be searched: a passage (one turn, one summary, one fact), where to look, and what
was found.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from aftercall.model.reading import Visibility

Kind = Literal["turn", "summary", "fact"]


@dataclass(frozen=True, slots=True)
class Passage:
    """One thing that can be found.

    `around` holds words said near a fact; a turn's neighbours are passages themselves.
    """

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
    """Which passages may be found.

    Without a caller: those of every caller of the agent, for the owner's eyes only.

    `since` and `before` bound when it was said. With `as_of`, what held on that instant is
    searched, retired facts included.
    """

    agent_id: str
    caller: str | None
    kinds: tuple[Kind, ...] = ()
    categories: tuple[str, ...] = ()
    visibilities: tuple[str, ...] = ()
    since: datetime | None = None
    before: datetime | None = None
    as_of: datetime | None = None
    group: tuple[str, ...] = ()
    """Other agents whose `shared` facts may be found, too."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A passage that was found, how well it fits, and the turns beside it."""

    passage: Passage
    score: float
    before: tuple[Passage, ...] = ()
    after: tuple[Passage, ...] = ()


class MatchSigns(NamedTuple):
    """What ranking looks at beside the words, and the rest of the row behind it: light, because
    a search looks at many.
    """

    n: int
    day: int
    marks: int
    kind: Kind
    speaker: str
    category: str
    mentions: int
    seq: int
    call_id: str | None
    ref: str | None
    agent_id: str
    caller: str | None
    visibility: Visibility
    at: datetime | str
    until: datetime | str | None
    text: str

    def to_passage(self) -> Passage:
        """Only what was found is made whole: SQLite keeps instants as text, and reading them
        takes time.
        """
        return Passage(
            kind=self.kind,
            agent_id=self.agent_id,
            caller=self.caller,
            call_id=self.call_id,
            text=self.text,
            at=datetime.fromisoformat(self.at) if isinstance(self.at, str) else self.at,
            seq=self.seq,
            ref=self.ref,
            speaker=self.speaker,
            category=self.category,
            visibility=self.visibility,
            until=datetime.fromisoformat(self.until) if isinstance(self.until, str) else self.until,
            mentions=self.mentions,
        )
