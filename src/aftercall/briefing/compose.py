"""Putting together what a call is told: the greeting, who is calling, the last calls, facts, work, and a dropped call to pick up.

What the database knows is prepared before the phone rings (`prepare.py`); pages that people edit are read when it does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import TypeVar

from aftercall.briefing.budget import trim
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
from aftercall.model.briefing import Acquaintance, Briefing, Persona, PickUp, RecentCall, Remembered, ToldFact, ToldPin
from aftercall.model.calls import LiveCall
from aftercall.postcall.store import StepStore
from aftercall.settings import Settings
from aftercall.work.told import Teller
from aftercall.workspace import files, greeting, identity_md, user_md
from aftercall.workspace.paths import Person, Workspace

LOOKED_AT = 100
T = TypeVar("T")

log = get_logger("briefing")


@dataclass
class Gathering:
    """What has been found so far for one call. A thread fills it; a call that cannot wait begins with what is in it."""

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

    def preview(self, caller: str | None) -> Briefing:
        """What this caller's call would be told if it rang now; a dropped call in the window is picked up. Nothing is used up."""
        call = LiveCall(source="preview", sid="preview", agent_id=self.settings.agent_id, caller=caller, started_at=self.clock.now())
        found = Gathering()
        self.gather(call, found, takes_greeting=False)
        return self.tell(call, found)

    def gather(self, call: LiveCall, found: Gathering, *, takes_greeting: bool = True) -> None:
        """Find everything this call may know, the quickest first. One part's trouble costs that part and no other."""
        workspace = Workspace.of(self.settings, call.agent_id)
        person = workspace.person(call.caller)
        self._find("pages", found, lambda: self._read_pages(workspace, person, found))
        self._find("dropped call", found, lambda: self._look_back(call, found))
        self._find("memory", found, lambda: self._recall(call, found))
        if takes_greeting and person and found.pick_up is None:
            self._find("greeting", found, lambda: self._take_greeting(person, found))

    def tell(self, call: LiveCall, found: Gathering) -> Briefing:
        """What was found as a briefing, no longer than it may be."""
        profile, known = found.profile, found.remembered
        left = None if found.pick_up else found.left
        briefing = Briefing(
            greeting=greeting.choose(left, profile, self.settings.receptionist.greeting),
            caller_name=profile.call_name or profile.name,
            recent=known.recent,
            pick_up=found.pick_up,
            work=known.work,
            facts=known.facts,
            pins=known.pins,
            persona=Persona(found.persona.name, found.persona.creature, found.persona.vibe),
            caller=Acquaintance(profile.name, profile.pronouns, profile.timezone, profile.notes, profile.context),
            at=call.started_at,
        )
        return trim(briefing, self.settings.briefing.max_tokens)

    def remember(self, agent_id: str, caller: str) -> Remembered:
        """What the database has for this caller's next call, read afresh."""
        call = LiveCall(source="preview", sid="preview", agent_id=agent_id, caller=caller, started_at=self.clock.now())
        work = self.teller.tell(agent_id, caller) if self.teller else ()
        return Remembered(self._recent(call), work, self._facts(call), self._pins(call))

    @property
    def form(self) -> str:
        """What a prepared briefing was composed under: under other settings it is of no use."""
        told, scope = self.settings.briefing, self.settings.memory.scope
        parts = (told.calls, told.facts, scope, self.teller is not None, self.facts is not None, self.board is not None)
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

    def _look_back(self, call: LiveCall, found: Gathering) -> None:
        state = self.resume.peek(call)
        found.pick_up = self._pick_up(state) if state else None
        found.state = state

    def _recall(self, call: LiveCall, found: Gathering) -> None:
        if memory_key(self.settings, call.agent_id, call.caller) is None or call.caller is None:
            work = self.teller.tell(call.agent_id, call.caller) if self.teller else ()
            found.remembered = Remembered(work=work)
            return
        known = self.prepared.read(call.agent_id, call.caller, self.form) if self.prepared else None
        found.remembered = known or self.remember(call.agent_id, call.caller)

    def _take_greeting(self, person: Person, found: Gathering) -> None:
        """Of two calls at once, one gets it."""
        if found.left:
            found.left = greeting.take(person, self.clock.now())

    def _recent(self, call: LiveCall) -> tuple[RecentCall, ...]:
        if call.caller is None or self.settings.memory.scope == "none":
            return ()
        return tuple(self.steps.recent_summaries(call.agent_id, call.caller, self.settings.briefing.calls))

    def _facts(self, call: LiveCall) -> tuple[ToldFact, ...]:
        """What matters most of what is believed of this caller; what was told in confidence is not among it."""
        key = memory_key(self.settings, call.agent_id, call.caller)
        if key is None or self.facts is None or not self.settings.briefing.facts:
            return ()
        today = self.clock.now().date()
        known = self.facts.freshest(key, LOOKED_AT)
        best = sorted(known, key=lambda fact: weigh_fact(fact, today), reverse=True)[: self.settings.briefing.facts]
        return tuple(ToldFact(fact.id, fact.content, fact.valid_from, fact.needs_confirmation) for fact in best)

    def _pins(self, call: LiveCall) -> tuple[ToldPin, ...]:
        """What this caller keeps coming back to."""
        key = memory_key(self.settings, call.agent_id, call.caller)
        return self.board.told(key) if key and self.board else ()

    def _pick_up(self, state: ResumeState) -> PickUp | None:
        try:
            dropped, late = self.archive.read(str(self.calls.get(state.call_id).archive_name))
        except AftercallError as error:
            log.warning("cannot read the dropped call", call=state.call_id, error=error.code)
            return None
        confided = self.facts.confided(state.call_id) if self.facts else []
        return PickUp(state.call_id, state.ended_at, veil_turns((*dropped.turns, *late), confided))


@lru_cache(maxsize=8)
def _hash(parts: tuple[object, ...]) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:16]
