"""What a call is told before it begins."""

from dataclasses import dataclass, field
from datetime import datetime

from aftercall.model.people import spoken_name
from aftercall.model.reading import Visibility
from aftercall.model.turns import Turn


@dataclass(frozen=True)
class ResumedCall:
    """The dropped call that this one continues."""

    call_id: str
    ended_at: datetime
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class RecentCall:
    at: datetime
    summary: str
    context: str = ""
    """Where its own summary says that the next call should begin."""
    name: str | None = None
    """What its caller was called then; they may have another name by now."""
    whose: str = ""
    """The other number it came from, where memory is shared; empty for the caller's own call."""


@dataclass(frozen=True)
class BriefingFact:
    """A fact as the agent is told of it: since when it holds, and whether it was heard too
    badly to rely on. Never a secret.
    """

    id: str
    text: str
    since: datetime
    needs_confirmation: bool = False
    visibility: Visibility = "shared"
    heard_by: str = ""
    """The other agent of the group that was told it; empty for the agent's own."""


@dataclass(frozen=True)
class BriefingPin:
    """A topic that the caller keeps coming back to: how it stands, and what is still to be done."""

    id: str
    title: str
    status: str
    open_items: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallerMemory:
    """What the database has for a caller's next call: all that is prepared before the phone
    rings.
    """

    recent: tuple[RecentCall, ...] = ()
    work: tuple[str, ...] = ()
    facts: tuple[BriefingFact, ...] = ()
    pins: tuple[BriefingPin, ...] = ()


@dataclass(frozen=True)
class Persona:
    """Who the agent is, as the owner's page has it."""

    name: str | None = None
    creature: str | None = None
    vibe: str | None = None


@dataclass(frozen=True)
class KnownCaller:
    """What the owner's page says of the caller, besides what to call them."""

    name: str | None = None
    pronouns: str | None = None
    timezone: str | None = None
    notes: str | None = None
    context: str | None = None


@dataclass(frozen=True)
class Briefing:
    """Data for the agent, never instructions: much of it was said by callers."""

    greeting: str
    caller_name: str | None = None
    recent: tuple[RecentCall, ...] = ()
    pick_up: ResumedCall | None = None
    work: tuple[str, ...] = ()
    facts: tuple[BriefingFact, ...] = ()
    pins: tuple[BriefingPin, ...] = ()
    party: str | None = field(default=None, compare=False)
    """Whose memory it was made of; None where nobody is remembered."""
    dropped: str | None = field(default=None, compare=False)
    """The call that this one may continue, whoever's it was."""
    persona: Persona = Persona()
    caller: KnownCaller = KnownCaller()
    at: datetime | None = None
    """When the call rang."""

    @property
    def spoken_name(self) -> str | None:
        return spoken_name(
            self.caller.name, self.caller_name if self.caller_name != self.caller.name else None
        )

    @property
    def first_words(self) -> str:
        """What the caller hears first: a fresh greeting, or that they may go on where they were."""
        if self.pick_up is None:
            return self.greeting
        return f"Welcome back{f', {self.spoken_name}' if self.spoken_name else ''}. Please go on."
