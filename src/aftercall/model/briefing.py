"""What the agent knows before a call begins."""

from dataclasses import dataclass, field
from datetime import datetime

from aftercall.model.calls import Turn
from aftercall.model.people import spoken_name
from aftercall.model.reading import Visibility


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
    context: str = ""  # where the next call should continue
    name: str | None = None  # the caller's name at the time
    whose: str = (
        ""  # the other number it came from if memory is shared; empty for the caller's
    )


@dataclass(frozen=True)
class BriefingFact:
    """A fact for the agent. Never a secret."""

    id: str
    text: str
    since: datetime
    needs_confirmation: bool = False
    visibility: Visibility = "shared"
    heard_by: str = ""  # the other agent of the group that heard it
    dispute: str = ""  # shared by facts of which only one may hold
    is_doubtful: bool = False  # it hangs on a fact that no longer holds


@dataclass(frozen=True)
class BriefingPin:
    """A topic that the caller keeps coming back to."""

    id: str
    title: str
    status: str
    open_items: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallerMemory:
    """What the database holds for a caller's next call, prepared before the phone rings."""

    recent: tuple[RecentCall, ...] = ()
    work: tuple[str, ...] = ()
    facts: tuple[BriefingFact, ...] = ()
    pins: tuple[BriefingPin, ...] = ()


@dataclass(frozen=True)
class Persona:
    """Who the agent is, from IDENTITY.md."""

    name: str | None = None
    creature: str | None = None
    vibe: str | None = None


@dataclass(frozen=True)
class KnownCaller:
    """What USER.md says of the caller, besides what to call them."""

    name: str | None = None
    pronouns: str | None = None
    timezone: str | None = None
    notes: str | None = None
    context: str | None = None


@dataclass(frozen=True)
class Briefing:
    """Data for the agent, never instructions: callers said much of it."""

    greeting: str
    caller_name: str | None = None
    recent: tuple[RecentCall, ...] = ()
    pick_up: ResumedCall | None = None
    work: tuple[str, ...] = ()
    facts: tuple[BriefingFact, ...] = ()
    pins: tuple[BriefingPin, ...] = ()
    party: str | None = field(default=None, compare=False)  # whose memory it holds
    dropped: str | None = field(default=None, compare=False)  # the call it may continue
    persona: Persona = Persona()
    caller: KnownCaller = KnownCaller()
    at: datetime | None = None  # when the call rang

    @property
    def spoken_name(self) -> str | None:
        call_name = self.caller_name if self.caller_name != self.caller.name else None
        return spoken_name(self.caller.name, call_name)

    @property
    def first_words(self) -> str:
        """What the caller hears first: the greeting, or an invitation to go on."""
        if self.pick_up is None:
            return self.greeting
        name = f", {self.spoken_name}" if self.spoken_name else ""
        return f"Welcome back{name}. Please go on."
