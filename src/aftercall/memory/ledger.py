"""The ledger decides what a call's facts change in one memory: new, said again, an update, or
disputed.

It starts from an outline of every fact, fetches whole facts only to compare them, and collects the
changes; `fact_rows` writes them. Facts of one attribute form a chain in time. A call that is read
late adds its facts to the past of the chain. Facts in one dispute all hold until it is settled.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from aftercall.encryption import Vault
from aftercall.errors import RefusedInput
from aftercall.ids import new_id
from aftercall.memory.candidates import FactOutline, KnownFacts
from aftercall.memory.claims import Claim
from aftercall.memory.dedupe import (
    compare,
    contradicts,
    find_best,
    hangs_on,
    list_hanging_words,
    speak_of_two,
)
from aftercall.memory.evidence import AcceptedDraft
from aftercall.model.facts import LEVELS, Fact, MemoryKey, Occurrence
from aftercall.model.reading import FactDraft, ReadingTrace, Visibility

if TYPE_CHECKING:
    from aftercall.db.corrections import Correction

RecordOutcome = Literal["new", "update", "again"]
# a change of these is told to programs elsewhere
TOLD_FIELDS = ("content", "visibility", "is_active", "superseded_by", "dispute")
CORRECTED_BY_KEY = "corrected_by"  # in metadata: the correction that counts


class FactLedger:
    """One caller's facts while one call is read into them.

    Every draft ends as new, said again, an update or a dispute. Nothing is written here:
    `fact_rows.py` writes what changed, in one transaction.
    """

    def __init__(
        self,
        key: MemoryKey,
        outlines: Iterable[FactOutline],
        fetch: Callable[[Collection[str]], Iterable[Fact]],
        vault: Vault,
    ) -> None:
        """`outlines` are of every fact in the memory; `fetch` reads whole facts by their ids."""
        self.key = key
        self.briefed_fact_ids: frozenset[str] = frozenset()
        self.corrections: list[list[Correction]] = []
        self.decisions: list[Correction] = []
        self.created: list[str] = []
        self.changed: set[str] = set()
        self.retired: list[str] = []
        self.reindexed: set[str] = set()
        self.told: set[str] = set()
        self.dropped: list[str] = []
        self.occurrences: list[Occurrence] = []
        self.vault = vault
        self.known = KnownFacts(outlines, fetch, vault.open)
        self._said_again: set[str] = set()
        self._call_id = ""
        self._trace = ReadingTrace("")

    @property
    def facts(self) -> dict[str, Fact]:
        """The facts that were fetched or made, by id."""
        return self.known.facts

    def prefetch(self, drafts: Iterable[AcceptedDraft]) -> None:
        """Fetch at once the facts that the drafts are compared with or name."""
        wanted: set[str] = set()
        for found in drafts:
            wanted |= self.known.find_candidates(found.claim)
            named = (found.draft.duplicate_of, found.draft.supersedes)
            wanted.update(fact_id for fact_id in named if fact_id)
        self.known.fetch(wanted)

    def record(
        self, found: AcceptedDraft, call_id: str, trace: ReadingTrace
    ) -> RecordOutcome:
        """Record one draft; the same draft of the same call again changes nothing."""
        self._call_id = call_id
        self._trace = trace
        verdict, known = self._decide(found)
        if verdict == "same" and known is not None:
            self._record_again(known, found)
            return "again"
        if verdict == "update" and known is not None:
            self._replace(known, found)
            return "update"
        new = self._add(found)
        if verdict == "disputed" and known is not None:
            self.dispute(known, new)
        return "new"

    def settle_by_caller(self) -> None:
        """After a call whose briefing asked: what the caller said again holds."""
        for members in [set(members) for members in self.known.disputes.values()]:
            said = members & self._said_again
            if not said or members.isdisjoint(self.briefed_fact_ids):
                continue
            if len(said) == 1:
                self.settle(said.pop())
            else:
                self._end_dispute(members)

    def settle(self, fact_id: str, *, keep_all: bool = False) -> Fact:
        """This fact holds, and the others of its dispute do not; or all of them hold.

        An earlier one held until this one began. A later one never held.
        """
        fact = self.known.require(fact_id)
        if fact.dispute is None or not fact.is_active:
            raise RefusedInput("fact", f"{fact_id} is not disputed")
        others = self.known.list_disputed(fact) - {fact_id}
        self.known.fetch(others)
        self._end_dispute({fact_id, *others})
        if not keep_all:
            earlier = [
                one for one in others if self.facts[one].valid_from <= fact.valid_from
            ]
            for one in others.difference(earlier):
                self.retire(one, fact_id, fact.valid_from, never_true=True)
            self._join_chains(earlier, fact_id)
        return self.facts[fact_id]

    def restore(self, fact_id: str) -> Fact:
        """Undo a retirement: both facts are active and no longer linked."""
        fact = self.known.require(fact_id)
        if fact.is_active:
            raise RefusedInput("fact", f"{fact_id} is not retired")
        if twin := self.known.by_identity.get(fact.identity):
            raise RefusedInput("fact", f"{fact_id} is active again already, as {twin}")
        successor = self.known.find(fact.superseded_by)
        if successor and successor.supersedes == fact_id:
            since = successor.first_seen_at if fact.never_true else successor.valid_from
            self.change(successor.id, supersedes=None, valid_from=since)
        self.reactivate(fact)
        return self.facts[fact_id]

    def reactivate(self, fact: Fact) -> None:
        """It holds again, and so does what hangs on it."""
        self.change(
            fact.id,
            is_active=True,
            valid_until=None,
            superseded_by=None,
            never_true=False,
        )
        for one in [one for one in self._list_dependents(fact) if one.doubt == fact.id]:
            self.change(one.id, doubt=None)
        self.known.by_identity[fact.identity] = fact.id
        self.reindexed.add(fact.id)

    def _decide(self, found: AcceptedDraft) -> tuple[str, str | None]:
        if by_id := self._decide_by_id(found.draft, found.claim):
            return by_id
        identity = hash_identity(found.claim, self.vault)
        if known := self.known.by_identity.get(identity):
            return "same", known
        near = self.known.list_near(found.claim, identity)
        active = [
            (fact_id, claim) for fact_id, claim in near if self.facts[fact_id].is_active
        ]
        verdict, known = find_best(found.claim, active, found.draft.category)
        if verdict != "same" and (past := self._find_past_twin(found, near)):
            return "same", past
        return verdict, known

    def _decide_by_id(self, draft: FactDraft, claim: Claim) -> tuple[str, str] | None:
        """A reader's ids count only for active facts of this memory that can be compared.

        The number of shared words does not matter: "phone before email" replaces "email before
        phone".
        """
        for named, wanted in (
            (draft.duplicate_of, "same"),
            (draft.supersedes, "update"),
        ):
            fact = self.known.find(named)
            known = self.known.get_claim(fact.id) if fact and fact.is_active else None
            if fact is None or known is None:
                continue
            if claim.identity == known.identity:
                return "same", fact.id
            if wanted == "same" and not contradicts(claim, known):
                return "same", fact.id
            if wanted == "update" and not speak_of_two(claim, known):
                return "update", fact.id
        return None

    def _find_past_twin(
        self, found: AcceptedDraft, near: list[tuple[str, Claim]]
    ) -> str | None:
        """A retired fact that says the same and was valid when this was said."""
        for fact_id, claim in near:
            fact = self.facts[fact_id]
            until = fact.valid_until
            if fact.is_active or until is None or found.evidence.at >= until:
                continue
            if compare(found.claim, claim, found.draft.category) == "same":
                return fact_id
        return None

    def _record_again(self, fact_id: str, found: AcceptedDraft) -> None:
        """A fact that is said again gets surer, and no less private."""
        fact = self.known.get(fact_id)
        at = found.evidence.at
        visibility = max(fact.visibility, found.visibility, key=LEVELS.index)
        matching = fact.matching
        if visibility == "secret" and not fact.is_secret:
            self.reindexed.add(fact_id)
            matching = hash_matching(matching, visibility, self.vault)
        is_clear = not found.needs_confirmation
        self.change(
            fact_id,
            visibility=visibility,
            matching=matching,
            confidence=max(fact.confidence, found.confidence),
            needs_confirmation=fact.needs_confirmation and not is_clear,
            first_seen_at=min(fact.first_seen_at, at),
            last_seen_at=max(fact.last_seen_at, at),
            valid_from=at
            if fact.supersedes is None and at < fact.valid_from
            else fact.valid_from,
        )
        # A fact from the briefing was brought up by the agent: the caller confirmed it.
        sentiment = "confirmation"
        if fact_id not in self.briefed_fact_ids:
            manner = "said" if fact.occurrence_count < 2 else "repeated"
            sentiment = _choose_sentiment(found, manner)
        self._add_occurrence(fact_id, found, sentiment)
        if fact.dispute is None or not fact.is_active:
            return
        if at > fact.first_seen_at:  # a call that is read again says nothing again
            self._said_again.add(fact_id)
        if fact.needs_confirmation and is_clear:
            self._settle_heard(fact_id, at)

    def _settle_heard(self, fact_id: str, at: datetime) -> None:
        """A badly heard update was heard well now: it replaces what was said before."""
        members = self.known.disputes[str(self.facts[fact_id].dispute)]
        self.known.fetch(members)
        others = members - {fact_id}
        last = max((self.facts[one].valid_from for one in others), default=at)
        if at < last:
            return
        if self.facts[fact_id].valid_from < last:
            self.change(fact_id, valid_from=at)
        self.settle(fact_id)

    def dispute(self, known: str, new: str) -> None:
        """Both hold until somebody settles which of them does."""
        dispute = self.known.get(known).dispute or known
        for fact_id in (known, new):
            self.known.disputes[dispute].add(fact_id)
            self.change(fact_id, dispute=dispute)

    def _end_dispute(self, members: Iterable[str]) -> None:
        self.known.fetch(members)
        for fact_id in members:
            self.known.disputes[str(self.facts[fact_id].dispute)].discard(fact_id)
            self.change(fact_id, dispute=None)

    def _pass_dispute(self, fact: Fact, by: str) -> None:
        """What replaces a disputed fact takes its part in the dispute."""
        members = self.known.disputes[str(fact.dispute)]
        self._end_dispute({fact.id})
        if len(members) == 1 and by in members:
            self._end_dispute({by})
        elif members:
            self.dispute(min(members), by)

    def _join_chains(self, earlier: Iterable[str], holds: str) -> None:
        """Retire the earlier facts. They and this one may have a past each: it becomes one."""
        past = {one.id: one for one in self._list_chain(self.facts[holds].supersedes)}
        for fact_id in earlier:
            past |= {one.id: one for one in self._list_chain(fact_id)}
            self.retire(fact_id, holds, self.facts[holds].valid_from)
        ordered = sorted(past.values(), key=lambda one: (one.valid_from, one.id))
        for before, after in pairwise([*(one.id for one in ordered), holds]):
            until = self.facts[after].valid_from
            self.change(before, superseded_by=after, valid_until=until)
            self.change(after, supersedes=before)

    def _list_chain(self, fact_id: str | None) -> list[Fact]:
        """The chain from its first fact to this one."""
        chain: list[Fact] = []
        while (fact := self.known.find(fact_id)) and fact not in chain:
            chain.insert(0, fact)
            fact_id = fact.supersedes
        return chain

    def _replace(self, known: str, found: AcceptedDraft) -> None:
        old = self.known.get(known)
        at = found.evidence.at
        identity = hash_identity(found.claim, self.vault)
        if twin := self.known.by_identity.get(identity):
            # A model names what a fact that is known already replaces.
            self._record_again(twin, found)
            if (
                self.facts[known].is_active
                and old.valid_from <= self.facts[twin].valid_from
            ):
                self._join_chains([known], twin)
            return
        manner = _choose_sentiment(
            found, "correction" if found.claim.corrects else "update"
        )
        if at < old.valid_from:
            self._insert_before(old, found, manner)
        elif found.needs_confirmation and not old.needs_confirmation:
            self.dispute(known, self._add(found, manner))
        elif found.claim.is_correction:
            # It never was as it had been said: what is said now held from the beginning.
            new = self._add(found, manner, supersedes=known, valid_from=old.valid_from)
            self.retire(known, new, old.valid_from, never_true=True)
        else:
            new = self._add(found, manner, supersedes=known)
            self.retire(known, new, at)

    def _insert_before(self, later: Fact, found: AcceptedDraft, manner: str) -> None:
        """Insert a fact that was said before the present one into the past of its chain."""
        seen = {later.id}
        while (
            (before := self.known.find(later.supersedes))
            and before.id not in seen
            and before.valid_from > found.evidence.at
        ):
            later = before
            seen.add(later.id)
        earlier = later.supersedes
        new = self._add(
            found,
            manner,
            supersedes=earlier,
            superseded_by=later.id,
            valid_until=later.valid_from,
        )
        self.change(later.id, supersedes=new)
        if self.known.find(earlier) is not None:
            self.change(str(earlier), superseded_by=new, valid_until=found.evidence.at)

    def retire(
        self, fact_id: str, by: str | None, at: datetime, *, never_true: bool = False
    ) -> None:
        """It held until then; without `by`, nothing replaces it."""
        fact = self.facts[fact_id]
        self.known.by_identity.pop(fact.identity, None)
        self.known.retired_by_identity[fact.identity].add(fact_id)
        if fact.dispute and by:
            self._pass_dispute(fact, by)
        self.change(
            fact_id,
            is_active=False,
            valid_until=fact.valid_from if never_true else max(at, fact.valid_from),
            superseded_by=by,
            never_true=never_true,
        )
        self.retired.append(fact_id)
        for one in self._list_dependents(fact):
            if one.is_active and one.id != by and one.doubt is None:
                self.change(one.id, doubt=fact_id)

    def _list_dependents(self, fact: Fact) -> list[Fact]:
        """Facts that hang on this one: they name its value, or speak of what follows from it."""
        claim = self.known.get_claim(fact.id)
        if fact.is_secret or claim is None:
            return []
        found = {
            fact_id
            for words in list_hanging_words(claim)
            for fact_id, other in self.known.list_mentions(words)
            if hangs_on(other, claim)
        }
        return [self.facts[fact_id] for fact_id in sorted(found - {fact.id})]

    def _add(self, found: AcceptedDraft, manner: str = "", **links: object) -> str:
        at = found.evidence.at
        draft = found.draft
        fact = Fact(
            id=new_id(),
            key=self.key,
            category=draft.category,
            content=draft.text,
            summary=draft.summary,
            visibility=found.visibility,
            confidence=found.confidence,
            needs_confirmation=found.needs_confirmation,
            first_seen_at=at,
            last_seen_at=at,
            valid_from=at,
            valid_until=None,
            occurrence_count=0,
            supersedes=None,
            superseded_by=None,
            is_active="superseded_by" not in links,
            identity=hash_identity(found.claim, self.vault),
            matching=hash_matching(found.claim.matching, found.visibility, self.vault),
            reader=self._trace.reader,
            prompt_hash=self._trace.prompt,
        )
        if links:
            fact = replace(fact, **links)  # type: ignore[arg-type]
        if found.correction_id:
            corrected = {CORRECTED_BY_KEY: found.correction_id}
            fact = replace(fact, metadata=fact.metadata | corrected)
        self.created.append(fact.id)
        self.known.add(fact, found.claim)
        sentiment = _choose_sentiment(found, manner or "said")
        self._add_occurrence(fact.id, found, sentiment)
        return fact.id

    def _add_occurrence(
        self, fact_id: str, found: AcceptedDraft, sentiment: str
    ) -> None:
        ground = found.evidence
        self.occurrences.append(
            Occurrence(
                id=new_id(),
                fact_id=fact_id,
                call_id=self._call_id,
                at=ground.at,
                first_turn=ground.first_turn,
                last_turn=ground.last_turn,
                words=found.draft.words,
                context=found.context,
                sentiment=sentiment,
                confidence=found.confidence,
                reader=self._trace.reader,
                prompt_hash=self._trace.prompt,
            )
        )

    def change(self, fact_id: str, **values: object) -> None:
        before = self.known.get(fact_id)
        after = self.facts[fact_id] = replace(before, **values)  # type: ignore[arg-type]
        self.changed.add(fact_id)
        if any(getattr(before, name) != getattr(after, name) for name in TOLD_FIELDS):
            self.told.add(fact_id)


def hash_identity(claim: Claim, vault: Vault) -> str:
    """Always a keyed hash, so that a fact keeps it when it becomes secret."""
    return vault.hash("identity", claim.identity)


def hash_matching(
    matching: str | None, visibility: Visibility, vault: Vault
) -> str | None:
    """A keyed hash for a secret, else plain text."""
    if matching and visibility == "secret":
        return vault.hash("matching", matching)
    return matching


def _choose_sentiment(found: AcceptedDraft, otherwise: str) -> str:
    """What happened to the fact if anything did, else the mood in which it was said."""
    if found.evidence.is_confirmed:
        return "confirmation"
    if otherwise in ("correction", "update"):
        return otherwise
    if otherwise == "repeated" and found.draft.sentiment == "negative":
        return "frustration"
    return found.draft.sentiment
