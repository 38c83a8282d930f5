"""Putting together what a call is told: the greeting, who is calling, the last calls, facts, work, and a dropped call to pick up."""

from dataclasses import dataclass, replace
from functools import cached_property

from aftercall.briefing.release import release
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
from aftercall.model.briefing import Briefing, PickUp, RecentCall, ToldFact, ToldPin
from aftercall.model.calls import Call, LiveCall
from aftercall.model.followups import Trust
from aftercall.model.people import split_party
from aftercall.postcall.store import StepStore
from aftercall.settings import Settings
from aftercall.who.register import Register
from aftercall.work.policy import Policy
from aftercall.work.told import Teller
from aftercall.workspace import files, greeting, user_md
from aftercall.workspace.paths import Workspace

LOOKED_AT = 100

log = get_logger("briefing")


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
    register: Register | None = None

    @cached_property
    def policy(self) -> Policy:
        return Policy(self.settings)

    def compose(
        self, call: LiveCall, state: ResumeState | None = None, *, takes_greeting: bool = True, trust: Trust | None = None
    ) -> Briefing:
        """Everything this call may know. Without `takes_greeting` it is only a look: the greeting stays for the call.

        How far the caller is trusted is the call's to show, unless `trust` says so.
        """
        dropped = self._read_dropped(state.call_id, call.caller) if state else None
        briefing = self.compose_for(call, call.caller, dropped, takes_greeting=takes_greeting)
        told = release(briefing, trust or self.policy.trust(call, has_passcode=False), self.settings)
        return replace(told, dropped=state.call_id if state else None)

    def compose_anew(self, call: LiveCall, party: str | None, trust: Trust, dropped: str | None = None) -> Briefing:
        """In the middle of a call, when it turned out to be somebody else's. A dropped call of theirs is picked up then."""
        picked_up = self._read_dropped(dropped, party) if dropped else None
        return release(self.compose_for(call, party, picked_up, takes_greeting=True), trust, self.settings)

    def compose_for(self, call: LiveCall, party: str | None, dropped: Call | None, *, takes_greeting: bool) -> Briefing:
        """All of it, before the gate."""
        person = Workspace.of(self.settings, call.agent_id).person(party)
        profile = user_md.parse(files.read(person.user)) if person else user_md.UserProfile()
        said = tuple(turn for turn in dropped.turns if turn.text) if dropped else ()
        pick_up = PickUp(dropped.id, dropped.ended_at, veil_turns(said)) if dropped else None
        configured = self.settings.receptionist.greeting
        if pick_up:
            opening = greeting.choose(None, profile, configured)
        else:
            opening = greeting.greet(person, configured, self.clock, takes=takes_greeting)
        work = self.teller.tell(call.agent_id, party) if self.teller else ()
        name = profile.call_name or profile.name
        recent, facts = self._recent(call.agent_id, party), self._facts(call.agent_id, party)
        return Briefing(opening, name, recent, pick_up, work, facts, self._pins(call.agent_id, party), party)

    def preview(self, party: str | None, *, is_verified: bool = False) -> Briefing:
        """What this caller's call would be told if it rang now; a dropped call in the window is picked up.

        For a person at a number, what the call is told once they have said who they are.
        """
        number, person = split_party(party) if party else (None, "")
        call = LiveCall(source="preview", sid="preview", agent_id=self.settings.agent_id, caller=number, started_at=self.clock.now())
        trust = "verified" if is_verified else self.policy.trust(call, has_passcode=False)
        if person:
            return release(self.compose_for(call, party, None, takes_greeting=False), trust, self.settings)
        return self.compose(call, self.resume.peek(call), takes_greeting=False, trust=trust)

    def _recent(self, agent_id: str, party: str | None) -> tuple[RecentCall, ...]:
        if party is None or self.settings.memory.scope == "none":
            return ()
        return tuple(self.steps.recent_summaries(agent_id, party, self.settings.briefing.calls))

    def _facts(self, agent_id: str, party: str | None) -> tuple[ToldFact, ...]:
        """What matters most of what is believed of them at each level; what was told in confidence is not among it."""
        key = memory_key(self.settings, agent_id, party)
        if key is None or self.facts is None or not self.settings.briefing.facts:
            return ()
        today = self.clock.now().date()
        known = self.facts.freshest(key, LOOKED_AT)
        best = sorted(known, key=lambda fact: weigh_fact(fact, today), reverse=True)
        of_level = {level: [fact for fact in best if fact.visibility == level][: self.settings.briefing.facts] for level in LEVELS}
        return tuple(
            ToldFact(fact.id, fact.content, fact.valid_from, fact.needs_confirmation, fact.visibility)
            for fact in best
            if fact in of_level[fact.visibility]
        )

    def _pins(self, agent_id: str, party: str | None) -> tuple[ToldPin, ...]:
        """What they keep coming back to."""
        key = memory_key(self.settings, agent_id, party)
        return self.board.told(key) if key and self.board else ()

    def _read_dropped(self, call_id: str, party: str | None) -> Call | None:
        """The call that this one continues; None if it was somebody else's, who spoke from the same phone."""
        try:
            dropped, late = self.archive.read(str(self.calls.get(call_id).archive_name))
        except AftercallError as error:
            log.warning("cannot read the dropped call", call=call_id, error=error.code)
            return None
        whole = dropped.model_copy(update={"turns": (*dropped.turns, *late)})
        theirs = self.register.as_party(whole) if self.register else whole
        return theirs if theirs.caller == party else None
