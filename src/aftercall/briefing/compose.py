"""Putting together what a call is told: the greeting, who is calling, the last calls, facts, work, and a dropped call to pick up.

What the database knows is prepared before the phone rings (`prepare.py`); pages that people edit are read when it does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import TypeVar

from aftercall.briefing.budget import trim
from aftercall.briefing.release import release
from aftercall.briefing.store import BriefingStore
from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.journal.archive import Archive
from aftercall.journal.resume import ResumeDesk
from aftercall.journal.store import CallStore, ResumeState
from aftercall.log import get_logger
from aftercall.memory.key import memory_key
from aftercall.memory.pins.board import Pinboard
from aftercall.memory.ranking import weigh_fact
from aftercall.memory.store import FactStore
from aftercall.memory.veil import veil_turns
from aftercall.memory.visibility import LEVELS
from aftercall.model.briefing import Acquaintance, Briefing, Persona, PickUp, RecentCall, Remembered, ToldFact, ToldPin
from aftercall.model.calls import LiveCall
from aftercall.model.followups import Trust
from aftercall.model.people import split_party
from aftercall.model.salutation import use_present_name
from aftercall.postcall.store import StepStore
from aftercall.settings import Settings
from aftercall.who.register import Register
from aftercall.work.policy import Policy
from aftercall.work.told import Teller
from aftercall.workspace import files, greeting, identity_md, user_md
from aftercall.workspace.paths import Person, Workspace

LOOKED_AT = 100
TOLD_AS = 3  # one more when the same things are told in other words: what was prepared in the old ones is prepared again
T = TypeVar("T")

log = get_logger("briefing")


@dataclass
class Gathering:
    """What has been found so far for one call. A thread fills it; a call that cannot wait begins with what is in it."""

    party: str | None = None
    persona: identity_md.AgentIdentity = field(default_factory=identity_md.AgentIdentity)
    profile: user_md.UserProfile = field(default_factory=user_md.UserProfile)
    left: str | None = None
    state: ResumeState | None = None
    pick_up: PickUp | None = None
    remembered: Remembered = field(default_factory=Remembered)
    missing: list[str] = field(default_factory=lambda: ["pages", "dropped call", "memory"])


@dataclass(frozen=True)
class Composer:
    settings: Settings
    calls: CallStore
    steps: StepStore
    archive: Archive
    resume: ResumeDesk
    clock: Clock
    teller: Teller | None = None
    facts: FactStore | None = None
    board: Pinboard | None = None
    prepared: BriefingStore | None = None
    register: Register | None = None

    @cached_property
    def policy(self) -> Policy:
        return Policy(self.settings)

    def preview(self, party: str | None, *, is_verified: bool = False) -> Briefing:
        """What this caller's call would be told if it rang now; a dropped call in the window is picked up. Nothing is used up.

        For a person at a number, what the call is told once they have said who they are.
        """
        number = split_party(party)[0] if party else None
        call = LiveCall(source="preview", sid="preview", agent_id=self.settings.agent_id, caller=number, started_at=self.clock.now())
        found = Gathering(party=party)
        self.gather(call, found, takes_greeting=False)
        return self.tell(call, found, "verified" if is_verified else None)

    def compose_anew(self, call: LiveCall, party: str | None, trust: Trust, dropped: str | None = None) -> Briefing:
        """In the middle of a call, when it turned out to be somebody else's. A dropped call of theirs is picked up then."""
        found = Gathering(party=party)
        self.gather(call, found, dropped=dropped)
        return self.tell(call, found, trust)

    def gather(self, call: LiveCall, found: Gathering, *, takes_greeting: bool = True, dropped: str | None = None) -> None:
        """Find everything this call may know, the quickest first. One part's trouble costs that part and no other.

        `found` says whose it is: of a call that rings its number's owner, in the middle of one whoever it turned out to be.
        Then `dropped` is the call it may continue.
        """
        workspace = Workspace.of(self.settings, call.agent_id)
        person = workspace.person(found.party)
        self._find("pages", found, lambda: self._read_pages(workspace, person, found))
        self._find("dropped call", found, lambda: self._look_back(call, found, dropped))
        self._find("memory", found, lambda: self._recall(call.agent_id, found))
        if takes_greeting and person and found.pick_up is None:
            self._find("greeting", found, lambda: self._take_greeting(person, found))

    def tell(self, call: LiveCall, found: Gathering, trust: Trust | None = None) -> Briefing:
        """What was found as a briefing: what this caller may hear of it, and no longer than it may be.

        How far the caller is trusted is the call's to show, unless `trust` says so.
        """
        profile, known = found.profile, found.remembered
        left = None if found.pick_up else found.left
        briefing = Briefing(
            greeting=greeting.choose(left, profile, self.settings.receptionist.greeting),
            caller_name=profile.call_name or profile.name,
            recent=tuple(_with_present_name(call, profile) for call in known.recent),
            pick_up=found.pick_up,
            work=known.work,
            facts=known.facts,
            pins=known.pins,
            persona=Persona(found.persona.name, found.persona.creature, found.persona.vibe),
            caller=Acquaintance(profile.name, profile.pronouns, profile.timezone, profile.notes, profile.context),
            at=call.started_at,
            party=found.party,
            dropped=found.state.call_id if found.state else None,
        )
        told = release(briefing, trust or self.policy.trust(call, has_passcode=False), self.settings)
        return trim(told, self.settings.briefing.max_tokens)

    def remember(self, agent_id: str, party: str) -> Remembered:
        """What the database has for this party's next call, read afresh; more than everybody may hear."""
        work = self.teller.tell(agent_id, party) if self.teller else ()
        return Remembered(self._recent(agent_id, party), work, self._facts(agent_id, party), self._pins(agent_id, party))

    @property
    def form(self) -> str:
        """What a prepared briefing was composed under: under other settings it is of no use."""
        told, memory = self.settings.briefing, self.settings.memory
        parts = (
            TOLD_AS,
            told.calls,
            told.facts,
            memory.scope,
            memory.agents,
            self.teller is not None,
            self.facts is not None,
            self.board is not None,
        )
        return _hash(parts)

    def _find(self, name: str, found: Gathering, step: Callable[[], None]) -> None:
        try:
            step()
        except AftercallError as error:
            log.warning("a part of the briefing is missing", part=name, error=error.code)
        else:
            found.missing = [other for other in found.missing if other != name]

    def _read_pages(self, workspace: Workspace, person: Person | None, found: Gathering) -> None:
        found.persona = identity_md.parse(files.read(workspace.identity))
        if person:
            found.profile = user_md.parse(files.read(person.user))
            found.left = greeting.look(person, self.clock.now())

    def _look_back(self, call: LiveCall, found: Gathering, dropped: str | None) -> None:
        state = None if dropped else self.resume.peek(call)
        call_id = dropped or (state.call_id if state else None)
        found.pick_up = self._pick_up(call_id, found.party) if call_id else None
        found.state = state

    def _recall(self, agent_id: str, found: Gathering) -> None:
        """What is prepared is the owner's; a guest's is read when they say who they are."""
        party = found.party
        if memory_key(self.settings, agent_id, party) is None or party is None:
            work = self.teller.tell(agent_id, party) if self.teller else ()
            found.remembered = Remembered(work=work)
            return
        is_prepared = self.prepared is not None and not split_party(party)[1]
        known = self.prepared.read(agent_id, party, self.form) if is_prepared and self.prepared else None
        found.remembered = known or self.remember(agent_id, party)

    def _take_greeting(self, person: Person, found: Gathering) -> None:
        """Of two calls at once, one gets it."""
        if found.left:
            found.left = greeting.take(person, self.clock.now())

    def _recent(self, agent_id: str, party: str) -> tuple[RecentCall, ...]:
        """Where memory is shared, every caller's: each says whose call it was."""
        if self.settings.memory.scope == "none":
            return ()
        is_shared = self.settings.memory.scope == "shared"
        return tuple(self.steps.recent_summaries(agent_id, party, self.settings.briefing.calls, of_all=is_shared))

    def _facts(self, agent_id: str, party: str) -> tuple[ToldFact, ...]:
        """What matters most of what is believed of them at each level; what was told in confidence is not among it."""
        key = memory_key(self.settings, agent_id, party)
        if key is None or self.facts is None or not self.settings.briefing.facts:
            return ()
        today = self.clock.now().date()
        known = self.facts.freshest(key, LOOKED_AT)
        best = sorted(known, key=lambda fact: weigh_fact(fact, today), reverse=True)
        of_level = {level: [fact for fact in best if fact.visibility == level][: self.settings.briefing.facts] for level in LEVELS}
        return tuple(
            ToldFact(
                fact.id,
                fact.content,
                fact.valid_from,
                fact.needs_confirmation,
                fact.visibility,
                fact.agent_id if fact.agent_id != agent_id else "",
            )
            for fact in best
            if fact in of_level[fact.visibility]
        )

    def _pins(self, agent_id: str, party: str) -> tuple[ToldPin, ...]:
        """What they keep coming back to."""
        key = memory_key(self.settings, agent_id, party)
        return self.board.told(key) if key and self.board else ()

    def _pick_up(self, call_id: str, party: str | None) -> PickUp | None:
        """The call that this one continues, with the last words of its conversation; None if it was somebody else's,
        who spoke from the same phone."""
        try:
            gone = self.calls.get(call_id)
            spoken = (self.calls.last_spoken_leg(gone.live.conversation) if gone.is_silent else None) or gone
            dropped, late = self.archive.read(str(spoken.archive_name))
        except AftercallError as error:
            log.warning("cannot read the dropped call", call=call_id, error=error.code)
            return None
        whole = dropped.model_copy(update={"turns": (*dropped.turns, *late)})
        theirs = self.register.as_party(whole) if self.register else whole
        if theirs.caller != party:
            return None
        confided = self.facts.confided(spoken.live.id) if self.facts else []
        return PickUp(call_id, gone.ended_at or theirs.ended_at, veil_turns(tuple(turn for turn in theirs.turns if turn.text), confided))


def _with_present_name(call: RecentCall, profile: user_md.UserProfile) -> RecentCall:
    """What was written of a call before its caller's name was corrected tells of them by the name they have now."""
    if call.whose:  # another number's call, in a shared memory
        return call
    summary, context = (use_present_name(text, call.name, profile.name, profile.call_name) for text in (call.summary, call.context))
    return replace(call, summary=summary, context=context)


@lru_cache(maxsize=8)
def _hash(parts: tuple[object, ...]) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:16]
