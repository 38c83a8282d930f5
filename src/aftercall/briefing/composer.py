"""Composes a briefing: gathers what is known, withholds what the caller may not hear, trims it.

Parts from the database come from a cache that is filled before the phone rings. Pages that people
edit are read when it rings.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256

from aftercall.briefing.render import FollowUpNews, trim
from aftercall.clock import Clock, is_done_within
from aftercall.db.briefing_cache import BriefingCache, StaleBriefing
from aftercall.errors import AftercallError
from aftercall.faults import fault_point
from aftercall.journal.archive import Archive
from aftercall.journal.recorder import PreparedBriefing, ResumeState, ResumeStates
from aftercall.journal.store import CallStore
from aftercall.journal.view import read_whole
from aftercall.log import get_logger
from aftercall.memory.fact_store import FactStore
from aftercall.memory.pins.board import PinBoard
from aftercall.memory.ranking import score_fact
from aftercall.memory.words import gives_away
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
from aftercall.model.facts import LEVELS, MemoryKey, is_releasable, memory_key
from aftercall.model.followups import Trust
from aftercall.model.people import replace_old_name, split_party
from aftercall.postcall.store import StepStore
from aftercall.settings import Settings
from aftercall.who.register import CallerRegister
from aftercall.who.trust import TrustPolicy
from aftercall.workspace import files, greeting, identity_md, user_md
from aftercall.workspace.paths import Workspace, WorkspacePerson

FILL_INTERVAL_S = 1.0
BATCH_SIZE = 100
MAX_FACT_CANDIDATES = 100
FORMAT_VERSION = (
    4  # count up when the same data is worded differently: the cache is filled again
)

log = get_logger("briefing")


@dataclass
class BriefingParts:
    """What has been found for one call so far.

    A thread fills it; a call that cannot wait starts with what is in it.
    """

    party: str | None = None
    persona: identity_md.AgentIdentity = field(
        default_factory=identity_md.AgentIdentity
    )
    profile: user_md.UserProfile = field(default_factory=user_md.UserProfile)
    left_greeting: str | None = None
    resume_state: ResumeState | None = None
    pick_up: ResumedCall | None = None
    remembered: CallerMemory = field(default_factory=CallerMemory)
    missing: list[str] = field(
        default_factory=lambda: ["pages", "dropped call", "memory"]
    )


@dataclass(frozen=True)
class Composer:
    """Puts together what an agent is told before a call.

    Only what this caller may hear is in it: scope and trust are applied here.
    """

    settings: Settings
    calls: CallStore
    steps: StepStore
    archive: Archive
    resume: ResumeStates
    clock: Clock
    news: FollowUpNews
    facts: FactStore
    board: PinBoard
    cache: BriefingCache
    register: CallerRegister

    @cached_property
    def policy(self) -> TrustPolicy:
        return TrustPolicy(self.settings)

    def preview(self, party: str | None, *, is_verified: bool = False) -> Briefing:
        """The briefing of a call from this party now. It uses up no greeting.

        For another person at a number: the briefing after they have said who they are.
        """
        call = LiveCall(
            source="preview",
            sid="preview",
            agent_id=self.settings.agent_id,
            caller=split_party(party)[0] if party else None,
            started_at=self.clock.now(),
        )
        found = BriefingParts(party=party)
        self.gather(call, found, claims_greeting=False)
        return self.make_briefing(call, found, "verified" if is_verified else None)

    def recompose(
        self,
        call: LiveCall,
        party: str | None,
        trust: Trust,
        dropped: str | None = None,
    ) -> Briefing:
        """During a call, for the party it turned out to be, with a dropped call of theirs."""
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
        """Fill `found` for its party, the fastest part first. A part that fails stays empty.

        `dropped` is the call that this one may continue, if it is known already.
        """
        workspace = Workspace.from_settings(self.settings, call.agent_id)
        person = workspace.find_person(found.party)
        self._run_part(
            "pages", found, lambda: self._read_pages(workspace, person, found)
        )
        self._run_part(
            "dropped call", found, lambda: self._find_dropped_call(call, found, dropped)
        )
        self._run_part("memory", found, lambda: self._read_memory(call.agent_id, found))
        if claims_greeting and person and found.pick_up is None:
            self._run_part(
                "greeting", found, lambda: self._claim_greeting(person, found)
            )

    def _run_part(
        self, name: str, found: BriefingParts, step: Callable[[], None]
    ) -> None:
        try:
            step()
        except AftercallError as error:
            log.warning(
                "a part of the briefing is missing", part=name, error=error.code
            )
        else:
            found.missing = [other for other in found.missing if other != name]

    def _read_pages(
        self, workspace: Workspace, person: WorkspacePerson | None, found: BriefingParts
    ) -> None:
        found.persona = identity_md.parse(files.read(workspace.identity))
        if person:
            found.profile = user_md.parse(files.read(person.user))
            found.left_greeting = greeting.peek_greeting(person, self.clock.now())

    def _find_dropped_call(
        self, call: LiveCall, found: BriefingParts, dropped: str | None
    ) -> None:
        state = None if dropped else self.resume.peek(call)
        call_id = dropped or (state.call_id if state else None)
        found.pick_up = (
            self._read_dropped_call(call_id, found.party) if call_id else None
        )
        found.resume_state = state

    def _read_dropped_call(self, call_id: str, party: str | None) -> ResumedCall | None:
        """The call that this one continues; None if another person spoke from the same phone."""
        try:
            dropped = self.calls.get(call_id)
            leg = dropped
            if dropped.is_silent:
                leg = (
                    self.calls.find_last_spoken_leg(dropped.live.conversation)
                    or dropped
                )
            whole = read_whole(self.archive, leg)
        except AftercallError as error:
            log.warning("cannot read the dropped call", call=call_id, error=error.code)
            return None
        resolved = self.register.resolve_party(whole)
        if resolved.caller != party:
            return None
        from aftercall.memory.visibility import redact_turns

        spoken = tuple(turn for turn in resolved.turns if turn.text)
        turns = redact_turns(spoken, self.facts.list_confided_words(leg.live.id))
        return ResumedCall(call_id, dropped.ended_at or resolved.ended_at, turns)

    def _read_memory(self, agent_id: str, found: BriefingParts) -> None:
        """The cache holds the owner of each number; other persons are read from the database."""
        party = found.party
        if party is None or memory_key(self.settings, agent_id, party) is None:
            found.remembered = CallerMemory(work=self.news.list_lines(agent_id, party))
            return
        is_owner = not split_party(party)[1]
        cached = (
            self.cache.read(agent_id, party, self.settings_hash) if is_owner else None
        )
        found.remembered = cached or self.load_remembered(agent_id, party)

    def _claim_greeting(self, person: WorkspacePerson, found: BriefingParts) -> None:
        """Of two calls at the same time, one gets it."""
        if found.left_greeting:
            found.left_greeting = greeting.claim_greeting(person, self.clock.now())

    def make_briefing(
        self, call: LiveCall, found: BriefingParts, trust: Trust | None = None
    ) -> Briefing:
        """What this caller may hear of the parts, no longer than the settings allow.

        Without `trust`, the call itself decides how far the caller is trusted.
        """
        profile = found.profile
        known = found.remembered
        left = None if found.pick_up else found.left_greeting
        briefing = Briefing(
            greeting=greeting.choose_greeting(
                left, profile, self.settings.receptionist.greeting
            ),
            caller_name=profile.call_name or profile.name,
            recent=tuple(_with_present_name(call, profile) for call in known.recent),
            pick_up=found.pick_up,
            work=known.work,
            facts=known.facts,
            pins=known.pins,
            persona=Persona(
                found.persona.name, found.persona.creature, found.persona.vibe
            ),
            caller=KnownCaller(
                profile.name,
                profile.pronouns,
                profile.timezone,
                profile.notes,
                profile.context,
            ),
            at=call.started_at,
            party=found.party,
            dropped=found.resume_state.call_id if found.resume_state else None,
        )
        trust = trust or self.policy.release_trust(call, has_passcode=False)
        released = withhold_facts(briefing, trust, self.settings)
        return trim(released, self.settings.briefing.max_tokens)

    def load_remembered(self, agent_id: str, party: str) -> CallerMemory:
        """This party's memory from the database; not everything in it may be told to a caller."""
        key = memory_key(self.settings, agent_id, party)
        return CallerMemory(
            recent=self._list_recent(agent_id, party),
            work=self.news.list_lines(agent_id, party),
            facts=self._list_facts(key) if key else (),
            pins=self.board.list_for_briefing(key) if key else (),
        )

    def _list_recent(self, agent_id: str, party: str) -> tuple[RecentCall, ...]:
        """A shared memory lists the calls of every caller, each with its number."""
        scope = self.settings.memory.scope
        count = self.settings.briefing.calls
        if scope == "none":
            return ()
        is_shared = scope == "shared"
        return tuple(
            self.steps.recent_summaries(agent_id, party, count, of_all=is_shared)
        )

    def _list_facts(self, key: MemoryKey) -> tuple[BriefingFact, ...]:
        """The best facts of each level, so that any caller hears as many as they may."""
        count = self.settings.briefing.facts
        if not count:
            return ()
        today = self.clock.now().date()
        known = self.facts.list_recent(key, MAX_FACT_CANDIDATES)
        left = dict.fromkeys(LEVELS, count)
        chosen = []
        for fact in sorted(
            known, key=lambda fact: score_fact(fact, today), reverse=True
        ):
            if not left[fact.visibility]:
                continue
            left[fact.visibility] -= 1
            told = BriefingFact(
                id=fact.id,
                text=fact.content,
                since=fact.valid_from,
                needs_confirmation=fact.needs_confirmation,
                visibility=fact.visibility,
                heard_by=fact.agent_id if fact.agent_id != key.agent_id else "",
                dispute=fact.dispute or "",
                is_doubtful=fact.doubt is not None,
            )
            chosen.append(told)
        return _put_disputes_together(chosen)

    @property
    def settings_hash(self) -> str:
        """Cached briefings of other settings are not used."""
        briefing = self.settings.briefing
        memory = self.settings.memory
        return _hash(
            (
                FORMAT_VERSION,
                briefing.calls,
                briefing.facts,
                memory.scope,
                memory.agents,
            )
        )


def _put_disputes_together(facts: list[BriefingFact]) -> tuple[BriefingFact, ...]:
    """Facts of a dispute stand where its best one stands, newest first."""
    disputes: dict[str, list[BriefingFact]] = {}
    for fact in facts:
        disputes.setdefault(fact.dispute or fact.id, []).append(fact)
    return tuple(
        fact
        for members in disputes.values()
        for fact in sorted(members, key=lambda one: one.since, reverse=True)
    )


def _with_present_name(call: RecentCall, profile: user_md.UserProfile) -> RecentCall:
    """A summary written before the caller's name was corrected gets the present name."""
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
    """Remove facts above the caller's trust, and every sentence that gives one of them away."""
    levels = [level for level in LEVELS if is_releasable(level, trust, settings.memory)]
    released = [fact for fact in briefing.facts if fact.visibility in levels]
    withheld = [fact for fact in briefing.facts if fact.visibility not in levels]
    briefing = replace(briefing, facts=tuple(released[: settings.briefing.facts]))
    if not withheld:
        return briefing
    name = briefing.spoken_name
    plain_greeting = f"Hey {name}!" if name else settings.receptionist.greeting
    gives_greeting_away = _gives_away(briefing.greeting, withheld)
    return replace(
        briefing,
        greeting=plain_greeting if gives_greeting_away else briefing.greeting,
        recent=tuple(_redact_recent_call(call, withheld) for call in briefing.recent),
        work=tuple(line for line in briefing.work if not _gives_away(line, withheld)),
        pins=tuple(
            pin for pin in briefing.pins if not _gives_away(_pin_text(pin), withheld)
        ),
        caller=_redact_page(briefing.caller, withheld),
        pick_up=_redact_dropped_call(briefing.pick_up, withheld),
    )


def _pin_text(pin: BriefingPin) -> str:
    return " ".join((pin.title, pin.status, *pin.open_items))


def _redact_recent_call(call: RecentCall, withheld: list[BriefingFact]) -> RecentCall:
    summary, context = (
        _redact_text(text, withheld) for text in (call.summary, call.context)
    )
    return replace(call, summary=summary, context=context)


def _redact_dropped_call(
    dropped: ResumedCall | None, withheld: list[BriefingFact]
) -> ResumedCall | None:
    """Who rings within the reconnect window has not shown to be who rang before."""
    if dropped is None:
        return None
    turns = [turn for turn in dropped.turns if not _gives_away(turn.text, withheld)]
    return replace(dropped, turns=tuple(turns))


def _redact_page(page: KnownCaller, withheld: list[BriefingFact]) -> KnownCaller:
    """The owner's page may repeat a withheld fact."""
    notes, context = (
        _redact_text(text or "", withheld) for text in (page.notes, page.context)
    )
    return replace(page, notes=notes or None, context=context or None)


def _redact_text(text: str, withheld: list[BriefingFact]) -> str:
    from aftercall.english.clauses import split_sentences

    sentences = split_sentences(text)
    return " ".join(
        sentence for sentence in sentences if not _gives_away(sentence, withheld)
    )


def _gives_away(text: str, withheld: Iterable[BriefingFact]) -> bool:
    return any(gives_away(text, fact.text) for fact in withheld)


async def brief_ring(
    composer: Composer, call: LiveCall, clock: Clock
) -> PreparedBriefing:
    """The briefing of a ringing call, and the call it picks up if any.

    A part that is not ready at the timeout is left out; the caller does not wait.
    """
    found = BriefingParts(party=call.caller)
    gathering = asyncio.create_task(asyncio.to_thread(composer.gather, call, found))
    gathering.add_done_callback(lambda task: _log_failure(task, call))
    timeout_s = composer.settings.briefing.timeout_ms / 1000
    if not await is_done_within(clock, timeout_s, gathering):
        log.warning(
            "the call starts without parts of its briefing",
            call=call.id,
            missing=found.missing,
        )
    state = found.resume_state
    return state, composer.make_briefing(call, found)


def _log_failure(gathering: "asyncio.Task[None]", call: LiveCall) -> None:
    if not gathering.cancelled() and (error := gathering.exception()):
        log.error("the briefing failed", call=call.id, error=type(error).__name__)


def fill_cache(composer: Composer) -> int:
    """Compose the stale briefings; returns how many. One that fails does not stop the others."""
    filled = 0
    for stale in composer.cache.list_stale(BATCH_SIZE):
        try:
            filled += fill_briefing(composer, stale)
        except AftercallError as error:
            log.warning("a briefing could not be composed", error=error.code)
    return filled


def fill_briefing(composer: Composer, stale: StaleBriefing) -> bool:
    """False if its sources changed meanwhile: it is stale again then."""
    rests_on_all = composer.settings.memory.scope == "shared"
    if stale.rests_on_all != rests_on_all:
        stale = composer.cache.start(
            stale.agent_id, stale.caller, rests_on_all=rests_on_all
        )
    remembered = composer.load_remembered(stale.agent_id, stale.caller)
    fault_point("briefing.before_keep")
    return composer.cache.save(
        stale, composer.settings_hash, remembered, composer.clock.now()
    )
