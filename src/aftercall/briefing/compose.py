"""Putting together what a call is told: the greeting, who is calling, the last calls, facts, work, and a dropped call to pick up."""

from dataclasses import dataclass

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
from aftercall.model.briefing import Briefing, PickUp, RecentCall, ToldFact, ToldPin
from aftercall.model.calls import LiveCall
from aftercall.postcall.store import StepStore
from aftercall.settings import Settings
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

    def compose(self, call: LiveCall, state: ResumeState | None = None, *, takes_greeting: bool = True) -> Briefing:
        """Everything this call may know. Without `takes_greeting` it is only a look: the greeting stays for the call."""
        person = Workspace.of(self.settings, call.agent_id).person(call.caller)
        profile = user_md.parse(files.read(person.user)) if person else user_md.UserProfile()
        pick_up = self._pick_up(state) if state else None
        configured = self.settings.receptionist.greeting
        if pick_up:
            opening = greeting.choose(None, profile, configured)
        else:
            opening = greeting.greet(person, configured, self.clock, takes=takes_greeting)
        work = self.teller.tell(call.agent_id, call.caller) if self.teller else ()
        return Briefing(opening, profile.call_name or profile.name, self._recent(call), pick_up, work, self._facts(call), self._pins(call))

    def preview(self, caller: str | None) -> Briefing:
        """What this caller's call would be told if it rang now; a dropped call in the window is picked up."""
        call = LiveCall(source="preview", sid="preview", agent_id=self.settings.agent_id, caller=caller, started_at=self.clock.now())
        return self.compose(call, self.resume.peek(call), takes_greeting=False)

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
