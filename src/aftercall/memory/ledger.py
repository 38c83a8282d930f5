"""The ledger decides what a call's facts change in one memory: new, said again, or an update.

It starts from an outline of every fact, fetches whole facts only to compare them, and collects the
changes; `fact_rows` writes them. Facts of one attribute form a chain in time. A call that is read
late adds its facts to the past of the chain.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from aftercall.errors import NotFound, RefusedInput, SecretUnreadable
from aftercall.ids import new_id
from aftercall.memory.claims import Claim, read_claim, read_secret_claim
from aftercall.memory.dedupe import best, compare, contradicts, is_related
from aftercall.memory.handles import CandidateIndex
from aftercall.memory.vault import Vault
from aftercall.memory.visibility import LEVELS
from aftercall.model.facts import Fact, MemoryKey, Occurrence
from aftercall.model.reading import FactDraft, ReadingTrace, Visibility

if TYPE_CHECKING:
    from aftercall.db.corrections import Correction

RecordOutcome = Literal["new", "update", "again"]
DOUBTED_FACT_KEY = (
    "doubts"  # in metadata: the fact that a badly heard one would replace
)
CORRECTED_BY_KEY = "corrected_by"  # in metadata: the correction that counts
RETIRED_BY_KEY = "retired_by"  # in metadata: the fact that had retired a restored one
CONFIRM_BELOW_CONFIDENCE = 0.7  # a fact that was heard worse is read back to the caller


@dataclass(frozen=True)
class Evidence:
    """The turns that one draft rests on."""

    first_turn: int
    last_turn: int
    at: datetime
    context: str
    transcript_confidence: float
    is_confirmed: bool


@dataclass(frozen=True)
class AcceptedDraft:
    """A draft that may enter memory."""

    draft: FactDraft
    evidence: Evidence
    visibility: Visibility
    context: str
    claim: Claim
    correction_id: str | None = None

    @property
    def confidence(self) -> float:
        """Never higher than the confidence with which the words were heard."""
        return min(self.draft.confidence, self.evidence.transcript_confidence)

    @property
    def needs_confirmation(self) -> bool:
        return (
            self.evidence.transcript_confidence < CONFIRM_BELOW_CONFIDENCE
            and not self.evidence.is_confirmed
        )


class FactOutline(NamedTuple):
    """The columns of a known fact that tell whether it must be compared."""

    id: str
    content: str
    visibility: str
    is_active: bool
    identity: str
    matching: str | None


class FactLedger:
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
        self.facts: dict[str, Fact] = {}
        self.created: list[str] = []
        self.changed: set[str] = set()
        self.retired: list[str] = []
        self.made_secret: list[str] = []
        self.restored: list[str] = []
        self.occurrences: list[Occurrence] = []
        self._fetch_facts = fetch
        self._vault = vault
        self._known: set[str] = set()
        self._claims: dict[str, Claim | None] = {}
        # Facts of this call have a separate index, so that a claim is looked up only once among
        # the known ones.
        self._candidates = CandidateIndex()
        self._new_candidates = CandidateIndex()
        self._found: dict[int, tuple[Claim, set[str]]] = {}
        self._by_identity: dict[str, str] = {}
        self._retired_by_identity: dict[str, set[str]] = defaultdict(set)
        for outline in outlines:
            self._index_outline(outline, self._candidates)

    def prefetch(self, drafts: Iterable[AcceptedDraft]) -> None:
        """Fetch at once the facts that the drafts are compared with or name."""
        wanted: set[str] = set()
        for found in drafts:
            wanted |= self._find_known(found.claim)
            named = (found.draft.duplicate_of, found.draft.supersedes)
            wanted.update(fact_id for fact_id in named if fact_id in self._known)
        self._fetch(wanted)

    def record(
        self, found: AcceptedDraft, call_id: str, trace: ReadingTrace
    ) -> RecordOutcome:
        """Record one draft; the same draft of the same call again changes nothing."""
        verdict, known = self._decide(found)
        if verdict == "same" and known is not None:
            self._record_again(known, found, call_id, trace)
            return "again"
        if verdict == "update" and known is not None:
            self._replace(known, found, call_id, trace)
            return "update"
        self._add(found, call_id, trace)
        return "new"

    def restore(self, fact_id: str) -> Fact:
        """Undo a retirement: both facts are active and no longer linked."""
        fact = self._find(fact_id)
        if fact is None:
            raise NotFound(f"there is no fact {fact_id}")
        if fact.is_active:
            raise RefusedInput("fact", f"{fact_id} is not retired")
        if twin := self._by_identity.get(fact.identity):
            raise RefusedInput("fact", f"{fact_id} is active again already, as {twin}")
        by = fact.superseded_by
        successor = self._find(by)
        if successor and successor.supersedes == fact_id:
            self._change(successor.id, supersedes=None)
        self._change(
            fact_id,
            is_active=True,
            valid_until=None,
            superseded_by=None,
            metadata=fact.metadata | {RETIRED_BY_KEY: by},
        )
        self._by_identity[fact.identity] = fact_id
        self.restored.append(fact_id)
        return self.facts[fact_id]

    def _decide(self, found: AcceptedDraft) -> tuple[str, str | None]:
        if by_id := self._decide_by_id(found.draft, found.claim):
            return by_id
        identity = hash_identity(found.claim, self._vault)
        if known := self._by_identity.get(identity):
            return "same", known
        near = list(
            self._list_near(found.claim, self._retired_by_identity.get(identity, set()))
        )
        active = [
            (fact_id, claim) for fact_id, claim in near if self.facts[fact_id].is_active
        ]
        verdict, known = best(found.claim, active, found.draft.category)
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
            fact = self._find(named)
            known = self._get_claim(fact.id) if fact and fact.is_active else None
            if fact is None or known is None:
                continue
            if claim.identity == known.identity:
                return "same", fact.id
            if wanted == "same" and not contradicts(claim, known):
                return "same", fact.id
            if wanted == "update" and is_related(claim, known):
                return "update", fact.id
        return None

    def _find_past_twin(
        self, found: AcceptedDraft, near: list[tuple[str, Claim]]
    ) -> str | None:
        """A retired fact that says the same and was valid when this was said."""
        for fact_id, claim in near:
            fact = self.facts[fact_id]
            if (
                fact.is_active
                or fact.valid_until is None
                or found.evidence.at >= fact.valid_until
            ):
                continue
            if compare(found.claim, claim, found.draft.category) == "same":
                return fact_id
        return None

    def _list_near(self, claim: Claim, past: set[str]) -> Iterator[tuple[str, Claim]]:
        """Facts that may be the same or replaced; `past` are retired ones of the same identity."""
        ids = self._find_known(claim) | self._new_candidates.find(claim) | past
        self._fetch(ids)
        for fact_id in sorted(ids):
            if (known := self._get_claim(fact_id)) is not None:
                yield fact_id, known

    def _find_known(self, claim: Claim) -> set[str]:
        if id(claim) not in self._found:
            self._found[id(claim)] = claim, self._candidates.find(claim)
        return self._found[id(claim)][1]

    def _get_claim(self, fact_id: str) -> Claim | None:
        if fact_id not in self._claims:
            self._claims[fact_id] = _parse_claim(self.facts[fact_id], self._vault)
        return self._claims[fact_id]

    def _find(self, fact_id: str | None) -> Fact | None:
        if fact_id is None or fact_id not in self._known:
            return None
        return self._fetch_one(fact_id)

    def _fetch_one(self, fact_id: str) -> Fact:
        self._fetch((fact_id,))
        return self.facts[fact_id]

    def _fetch(self, fact_ids: Iterable[str]) -> None:
        if missing := [fact_id for fact_id in fact_ids if fact_id not in self.facts]:
            self.facts.update((fact.id, fact) for fact in self._fetch_facts(missing))

    def _record_again(
        self, fact_id: str, found: AcceptedDraft, call_id: str, trace: ReadingTrace
    ) -> None:
        fact = self._fetch_one(fact_id)
        at = found.evidence.at
        visibility = max(fact.visibility, found.visibility, key=LEVELS.index)
        if visibility == "secret" and not fact.is_secret:
            self.made_secret.append(fact_id)
        claim = self._get_claim(fact_id)
        matching = (
            hash_matching(claim, visibility, self._vault) if claim else fact.matching
        )
        is_clear = not found.needs_confirmation
        self._change(
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
        sentiment = self._choose_repeat_sentiment(fact, found)
        self._add_occurrence(fact_id, found, call_id, trace, sentiment)
        if is_clear and fact.is_active:
            self._settle_doubt(fact_id, at)

    def _settle_doubt(self, fact_id: str, at: datetime) -> None:
        """A badly heard update was heard well now: it replaces the doubted fact if it is later."""
        fact = self.facts[fact_id]
        doubted = self._find(fact.metadata.get(DOUBTED_FACT_KEY))
        if doubted is None or not doubted.is_active or at < doubted.valid_from:
            return
        since = fact.valid_from if fact.valid_from >= doubted.valid_from else at
        # Both facts may have a past by now: the two chains become one.
        past = [*self._list_chain(fact.supersedes), *self._list_chain(doubted.id)]
        past.sort(key=lambda one: one.valid_from)
        self._retire(doubted.id, fact_id, since)
        settled = {
            name: value
            for name, value in fact.metadata.items()
            if name != DOUBTED_FACT_KEY
        }
        self._change(fact_id, valid_from=since, metadata=settled)
        for earlier, later in pairwise([*(one.id for one in past), fact_id]):
            self._change(
                earlier, superseded_by=later, valid_until=self.facts[later].valid_from
            )
            self._change(later, supersedes=earlier)

    def _list_chain(self, fact_id: str | None) -> list[Fact]:
        """The chain from its first fact to this one."""
        chain: list[Fact] = []
        while (fact := self._find(fact_id)) and fact not in chain:
            chain.insert(0, fact)
            fact_id = fact.supersedes
        return chain

    def _choose_repeat_sentiment(self, fact: Fact, found: AcceptedDraft) -> str:
        """A fact from the briefing was brought up by the agent: the caller confirmed it."""
        if fact.id in self.briefed_fact_ids:
            return "confirmation"
        return _choose_sentiment(
            found, "said" if fact.occurrence_count < 2 else "repeated"
        )

    def _replace(
        self, known: str, found: AcceptedDraft, call_id: str, trace: ReadingTrace
    ) -> None:
        old = self._fetch_one(known)
        manner = _choose_sentiment(
            found, "correction" if found.claim.corrects else "update"
        )
        if found.evidence.at < old.valid_from:
            self._insert_before(old, found, call_id, trace, manner)
        elif found.needs_confirmation and not old.needs_confirmation:
            self._add(found, call_id, trace, manner, metadata={DOUBTED_FACT_KEY: known})
        else:
            new = self._add(found, call_id, trace, manner, supersedes=known)
            self._retire(known, new, found.evidence.at)

    def _insert_before(
        self,
        later: Fact,
        found: AcceptedDraft,
        call_id: str,
        trace: ReadingTrace,
        manner: str,
    ) -> None:
        """Insert a fact that was said before the present one into the past of its chain."""
        seen = {later.id}
        while (
            (before := self._find(later.supersedes))
            and before.id not in seen
            and before.valid_from > found.evidence.at
        ):
            later = before
            seen.add(later.id)
        earlier = later.supersedes
        new = self._add(
            found,
            call_id,
            trace,
            manner,
            supersedes=earlier,
            superseded_by=later.id,
            valid_until=later.valid_from,
        )
        self._change(later.id, supersedes=new)
        if self._find(earlier) is not None:
            self._change(str(earlier), superseded_by=new, valid_until=found.evidence.at)

    def _retire(self, fact_id: str, by: str, at: datetime) -> None:
        identity = self.facts[fact_id].identity
        self._by_identity.pop(identity, None)
        self._retired_by_identity[identity].add(fact_id)
        self._change(
            fact_id,
            is_active=False,
            valid_until=max(at, self.facts[fact_id].valid_from),
            superseded_by=by,
        )
        self.retired.append(fact_id)

    def _add(
        self,
        found: AcceptedDraft,
        call_id: str,
        trace: ReadingTrace,
        manner: str = "",
        **links: object,
    ) -> str:
        at, draft = found.evidence.at, found.draft
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
            identity=hash_identity(found.claim, self._vault),
            matching=hash_matching(found.claim, found.visibility, self._vault),
            reader=trace.reader,
            prompt_hash=trace.prompt,
        )
        if links:
            fact = replace(fact, **links)  # type: ignore[arg-type]
        if found.correction_id:
            corrected = {CORRECTED_BY_KEY: found.correction_id}
            fact = replace(fact, metadata=fact.metadata | corrected)
        self.created.append(fact.id)
        self._track(fact, found.claim)
        sentiment = _choose_sentiment(found, manner or "said")
        self._add_occurrence(fact.id, found, call_id, trace, sentiment)
        return fact.id

    def _add_occurrence(
        self,
        fact_id: str,
        found: AcceptedDraft,
        call_id: str,
        trace: ReadingTrace,
        sentiment: str,
    ) -> None:
        ground = found.evidence
        self.occurrences.append(
            Occurrence(
                id=new_id(),
                fact_id=fact_id,
                call_id=call_id,
                at=ground.at,
                first_turn=ground.first_turn,
                last_turn=ground.last_turn,
                words=found.draft.words,
                context=found.context,
                sentiment=sentiment,
                confidence=found.confidence,
                reader=trace.reader,
                prompt_hash=trace.prompt,
            )
        )

    def _index_outline(self, known: FactOutline, candidates: CandidateIndex) -> None:
        """The words of a secret are sealed: it is opened for every comparison."""
        self._known.add(known.id)
        if known.is_active:
            self._by_identity[known.identity] = known.id
        else:
            self._retired_by_identity[known.identity].add(known.id)
        if known.visibility == "secret":
            candidates.add_secret(known.id)
        else:
            candidates.add(known.id, known.content, known.matching)

    def _track(self, fact: Fact, claim: Claim) -> None:
        self.facts[fact.id] = fact
        self._claims[fact.id] = claim
        outline = FactOutline(*(getattr(fact, name) for name in FactOutline._fields))
        self._index_outline(outline, self._new_candidates)

    def _change(self, fact_id: str, **values: object) -> None:
        self.facts[fact_id] = replace(self.facts[fact_id], **values)  # type: ignore[arg-type]
        self.changed.add(fact_id)


def _parse_claim(fact: Fact, vault: Vault) -> Claim | None:
    if not fact.is_secret:
        return read_claim(fact.content)
    try:
        return read_secret_claim(vault.open(fact.content))
    except SecretUnreadable:
        # sealed with another key: it stays and is compared with nothing
        return None


def hash_identity(claim: Claim, vault: Vault) -> str:
    """Always a keyed hash, so that a fact keeps it when it becomes secret."""
    return vault.hash("identity", claim.identity)


def hash_matching(claim: Claim, visibility: Visibility, vault: Vault) -> str | None:
    """A keyed hash for a secret, else plain text."""
    if claim.matching and visibility == "secret":
        return vault.hash("matching", claim.matching)
    return claim.matching


def _choose_sentiment(found: AcceptedDraft, otherwise: str) -> str:
    """What happened to the fact if anything did, else the mood in which it was said."""
    if found.evidence.is_confirmed:
        return "confirmation"
    if otherwise in ("correction", "update"):
        return otherwise
    if otherwise == "repeated" and found.draft.sentiment == "negative":
        return "frustration"
    return found.draft.sentiment
