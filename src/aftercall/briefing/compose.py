"""Putting together what a call is told: the greeting, who is calling, the last calls, facts,
work, and a dropped call to pick up.

What the database knows is prepared before the phone rings (`prepare.py`); pages that people
edit are read when it does.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import TypeVar

from aftercall.briefing.render import trim
from aftercall.briefing.store import BriefingStore
from aftercall.clock import Clock
from aftercall.errors import AftercallError
from aftercall.journal.archive import Archive
from aftercall.journal.resume import ResumeState, ResumeStates
from aftercall.journal.store import CallStore
from aftercall.llm.rules.sentences import split_sentences
from aftercall.log import get_logger
from aftercall.memory.key import memory_key
from aftercall.memory.pins.board import PinBoard
from aftercall.memory.ranking import score_fact
from aftercall.memory.store import FactStore
from aftercall.memory.visibility import LEVELS, filter_releasable, gives_away, redact_turns
from aftercall.model.briefing import (
    Briefing,
    BriefingFact,
    BriefingPin,
    CallerMemory,
    KnownCaller,
    Persona,
    RecentCall,
    ResumedCall,
)
from aftercall.model.calls import LiveCall
from aftercall.model.followups import Trust
from aftercall.model.people import replace_old_name, split_party
from aftercall.postcall.store import StepStore
from aftercall.settings import Settings
from aftercall.who.register import CallerRegister
from aftercall.work.trust import TrustPolicy
from aftercall.work.view import FollowUpNews
from aftercall.workspace import files, greeting, identity_md, user_md
from aftercall.workspace.paths import Workspace, WorkspacePerson

MAX_FACT_CANDIDATES = 100
# one more when the same things are told in other words: what was prepared in the old ones is
# prepared again
FORMAT_VERSION = 3
T = TypeVar("T")

log = get_logger("briefing")


@dataclass
class BriefingParts:
    """What has been found so far for one call.

    A thread fills it; a call that cannot wait begins with what is in it.
    """

    party: str | None = None
    persona: identity_md.AgentIdentity = field(default_factory=identity_md.AgentIdentity)
    profile: user_md.UserProfile = field(default_factory=user_md.UserProfile)
    left_greeting: str | None = None
    resume_state: ResumeState | None = None
    pick_up: ResumedCall | None = None
    remembered: CallerMemory = field(default_factory=CallerMemory)
    missing: list[str] = field(default_factory=lambda: ["pages", "dropped call", "memory"])


@dataclass(frozen=True)
class Composer:
    settings: Settings
    calls: CallStore
    steps: StepStore
    archive: Archive
    resume: ResumeStates
    clock: Clock
    news: FollowUpNews | None = None
    facts: FactStore | None = None
    board: PinBoard | None = None
    prepared: BriefingStore | None = None
    register: CallerRegister | None = None

    @cached_property
    def policy(self) -> TrustPolicy:
        return TrustPolicy(self.settings)

    def preview(self, party: str | None, *, is_verified: bool = False) -> Briefing:
        """What this caller's call would be told if it rang now; a dropped call in the window is
        picked up. Nothing is used up.

        For a person at a number, what the call is told once they have said who they are.
        """
        number = split_party(party)[0] if party else None
        call = LiveCall(
            source="preview",
            sid="preview",
            agent_id=self.settings.agent_id,
            caller=number,
            started_at=self.clock.now(),
        )
        found = BriefingParts(party=party)
        self.gather(call, found, claims_greeting=False)
        return self.make_briefing(call, found, "verified" if is_verified else None)

    def recompose(
        self, call: LiveCall, party: str | None, trust: Trust, dropped: str | None = None
    ) -> Briefing:
        """In the middle of a call, when it turned out to be somebody else's.

        A dropped call of theirs is picked up then.
        """
        found = BriefingParts(party=party)
        self.gather(call, found, dropped=dropped)
        return self.make_briefing(call, found, trust)

    def gather(
        self,
        call: LiveCall,
        found: BriefingParts,
        *,
        claims_greeting: bool = True,
        dropped: str | None = None,
    ) -> None:
        """Find everything this call may know, the quickest first.

        One part's trouble costs that part and no other.

        `found` says whose it is: of a call that rings its number's owner, in the middle of one
        whoever it turned out to be. Then `dropped` is the call it may continue.
        """
        workspace = Workspace.from_settings(self.settings, call.agent_id)
        person = workspace.find_person(found.party)
        self._run_part("pages", found, lambda: self._read_pages(workspace, person, found))
        self._run_part("dropped call", found, lambda: self._find_dropped_call(call, found, dropped))
        self._run_part("memory", found, lambda: self._load_memory(call.agent_id, found))
        if claims_greeting and person and found.pick_up is None:
            self._run_part("greeting", found, lambda: self._claim_greeting(person, found))

    def make_briefing(
        self, call: LiveCall, found: BriefingParts, trust: Trust | None = None
    ) -> Briefing:
        """What was found as a briefing: what this caller may hear of it, and no longer than it
        may be.

        How far the caller is trusted is the call's to show, unless `trust` says so.
        """
        profile, known = found.profile, found.remembered
        left = None if found.pick_up else found.left_greeting
        briefing = Briefing(
            greeting=greeting.choose_greeting(left, profile, self.settings.receptionist.greeting),
            caller_name=profile.call_name or profile.name,
            recent=tuple(_with_present_name(call, profile) for call in known.recent),
            pick_up=found.pick_up,
            work=known.work,
            facts=known.facts,
            pins=known.pins,
            persona=Persona(found.persona.name, found.persona.creature, found.persona.vibe),
            caller=KnownCaller(
                profile.name, profile.pronouns, profile.timezone, profile.notes, profile.context
            ),
            at=call.started_at,
            party=found.party,
            dropped=found.resume_state.call_id if found.resume_state else None,
        )
        told = withhold_facts(
            briefing, trust or self.policy.trust(call, has_passcode=False), self.settings
        )
        return trim(told, self.settings.briefing.max_tokens)

    def load_remembered(self, agent_id: str, party: str) -> CallerMemory:
        """What the database has for this party's next call, read afresh; more than everybody
        may hear.
        """
        work = self.news.list_lines(agent_id, party) if self.news else ()
        return CallerMemory(
            self._recent(agent_id, party),
            work,
            self._facts(agent_id, party),
            self._pins(agent_id, party),
        )

    @property
    def settings_hash(self) -> str:
        """What a prepared briefing was composed under: under other settings it is of no use."""
        told, memory = self.settings.briefing, self.settings.memory
        parts = (
            FORMAT_VERSION,
            told.calls,
            told.facts,
            memory.scope,
            memory.agents,
            self.news is not None,
            self.facts is not None,
            self.board is not None,
        )
        return _hash(parts)

    def _run_part(self, name: str, found: BriefingParts, step: Callable[[], None]) -> None:
        try:
            step()
        except AftercallError as error:
            log.warning("a part of the briefing is missing", part=name, error=error.code)
        else:
            found.missing = [other for other in found.missing if other != name]

    def _read_pages(
        self, workspace: Workspace, person: WorkspacePerson | None, found: BriefingParts
    ) -> None:
        found.persona = identity_md.parse(files.read(workspace.identity))
        if person:
            found.profile = user_md.parse(files.read(person.user))
            found.left_greeting = greeting.peek_greeting(person, self.clock.now())

    def _find_dropped_call(self, call: LiveCall, found: BriefingParts, dropped: str | None) -> None:
        state = None if dropped else self.resume.peek(call)
        call_id = dropped or (state.call_id if state else None)
        found.pick_up = self._pick_up(call_id, found.party) if call_id else None
        found.resume_state = state

    def _load_memory(self, agent_id: str, found: BriefingParts) -> None:
        """What is prepared is the owner's; a guest's is read when they say who they are."""
        party = found.party
        if memory_key(self.settings, agent_id, party) is None or party is None:
            work = self.news.list_lines(agent_id, party) if self.news else ()
            found.remembered = CallerMemory(work=work)
            return
        is_prepared = self.prepared is not None and not split_party(party)[1]
        known = (
            self.prepared.read(agent_id, party, self.settings_hash)
            if is_prepared and self.prepared
            else None
        )
        found.remembered = known or self.load_remembered(agent_id, party)

    def _claim_greeting(self, person: WorkspacePerson, found: BriefingParts) -> None:
        """Of two calls at once, one gets it."""
        if found.left_greeting:
            found.left_greeting = greeting.claim_greeting(person, self.clock.now())

    def _recent(self, agent_id: str, party: str) -> tuple[RecentCall, ...]:
        """Where memory is shared, every caller's: each says whose call it was."""
        if self.settings.memory.scope == "none":
            return ()
        is_shared = self.settings.memory.scope == "shared"
        return tuple(
            self.steps.recent_summaries(
                agent_id, party, self.settings.briefing.calls, of_all=is_shared
            )
        )

    def _facts(self, agent_id: str, party: str) -> tuple[BriefingFact, ...]:
        """What matters most of what is believed of them at each level; what was told in
        confidence is not among it.
        """
        key = memory_key(self.settings, agent_id, party)
        if key is None or self.facts is None or not self.settings.briefing.facts:
            return ()
        today = self.clock.now().date()
        known = self.facts.list_recent(key, MAX_FACT_CANDIDATES)
        best = sorted(known, key=lambda fact: score_fact(fact, today), reverse=True)
        of_level = {
            level: [fact for fact in best if fact.visibility == level][
                : self.settings.briefing.facts
            ]
            for level in LEVELS
        }
        return tuple(
            BriefingFact(
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

    def _pins(self, agent_id: str, party: str) -> tuple[BriefingPin, ...]:
        """What they keep coming back to."""
        key = memory_key(self.settings, agent_id, party)
        return self.board.list_for_briefing(key) if key and self.board else ()

    def _pick_up(self, call_id: str, party: str | None) -> ResumedCall | None:
        """The call that this one continues, with the last words of its conversation; None if it
        was somebody else's,
        who spoke from the same phone.
        """
        try:
            gone = self.calls.get(call_id)
            spoken = (
                self.calls.find_last_spoken_leg(gone.live.conversation) if gone.is_silent else None
            ) or gone
            dropped, late = self.archive.read(str(spoken.archive_name))
        except AftercallError as error:
            log.warning("cannot read the dropped call", call=call_id, error=error.code)
            return None
        whole = dropped.model_copy(update={"turns": (*dropped.turns, *late)})
        theirs = self.register.resolve_party(whole) if self.register else whole
        if theirs.caller != party:
            return None
        confided = self.facts.list_confided_words(spoken.live.id) if self.facts else []
        return ResumedCall(
            call_id,
            gone.ended_at or theirs.ended_at,
            redact_turns(tuple(turn for turn in theirs.turns if turn.text), confided),
        )


def _with_present_name(call: RecentCall, profile: user_md.UserProfile) -> RecentCall:
    """What was written of a call before its caller's name was corrected tells of them by the
    name they have now.
    """
    if call.whose:  # another number's call, in a shared memory
        return call
    summary, context = (
        replace_old_name(text, call.name, profile.name, profile.call_name)
        for text in (call.summary, call.context)
    )
    return replace(call, summary=summary, context=context)


@lru_cache(maxsize=8)
def _hash(parts: tuple[object, ...]) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:16]


def withhold_facts(briefing: Briefing, trust: Trust, settings: Settings) -> Briefing:
    """The briefing without facts above the caller's trust, and without sentences that would
    give one of them away.
    """
    told = filter_releasable(briefing.facts, trust, settings.memory)
    withheld = [fact for fact in briefing.facts if fact not in told]
    name = briefing.spoken_name
    plain = f"Hey {name}!" if name else settings.receptionist.greeting
    return replace(
        briefing,
        greeting=plain if _gives_away(briefing.greeting, withheld) else briefing.greeting,
        recent=tuple(_redact_recent_call(call, withheld) for call in briefing.recent)
        if withheld
        else briefing.recent,
        work=tuple(line for line in briefing.work if not _gives_away(line, withheld)),
        pins=tuple(
            pin
            for pin in briefing.pins
            if not _gives_away(" ".join((pin.title, pin.status, *pin.open_items)), withheld)
        ),
        facts=tuple(told[: settings.briefing.facts]),
        caller=_redact_page(briefing.caller, withheld) if withheld else briefing.caller,
    )


def _redact_recent_call(call: RecentCall, withheld: list[BriefingFact]) -> RecentCall:
    return replace(
        call,
        summary=_redact_text(call.summary, withheld),
        context=_redact_text(call.context, withheld),
    )


def _redact_page(page: KnownCaller, withheld: list[BriefingFact]) -> KnownCaller:
    """What the owner's page says of them may tell the same."""
    return replace(
        page,
        notes=_redact_text(page.notes or "", withheld) or None,
        context=_redact_text(page.context or "", withheld) or None,
    )


def _redact_text(text: str, withheld: list[BriefingFact]) -> str:
    return " ".join(
        sentence for sentence in split_sentences(text) if not _gives_away(sentence, withheld)
    )


def _gives_away(text: str, withheld: Iterable[BriefingFact]) -> bool:
    return any(gives_away(text, fact.text) for fact in withheld)
