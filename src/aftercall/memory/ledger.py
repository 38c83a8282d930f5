"""One caller's memory while a call's facts are noted in it: what is new, what takes whose
place, what was said again.

No I/O of its own. It is given an outline of every fact of the memory and fetches those whole
that it looks at closely; afterwards it knows which rows must change, and writing them is the
store's work. Facts of one attribute form a chain in time. A call that is read late finds its
place in the past of the chain.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Literal, NamedTuple, Protocol

from aftercall.errors import NotFound, RefusedInput
from aftercall.ids import new_id
from aftercall.memory.claims import Claim
from aftercall.memory.dedupe import best, compare, contradicts, is_related
from aftercall.memory.evidence import AcceptedDraft
from aftercall.memory.handles import CandidateIndex
from aftercall.memory.visibility import max_visibility
from aftercall.model.facts import Fact, MemoryKey, Occurrence
from aftercall.model.reading import FactDraft, ReadingTrace

RecordOutcome = Literal["new", "update", "again"]
DOUBTED_FACT_KEY = (
    "doubts"  # in metadata: the fact that this one would replace, had it been heard better
)
RETIRED_BY_KEY = "retired_by"  # in metadata: who had retired a fact that was restored


@dataclass(frozen=True)
class FactFingerprint:
    """How a fact is recognised: keyed hashes where it is secret."""

    identity: str
    matching: str | None


class FactOutline(NamedTuple):
    """As much of a known fact as it takes to tell whether it must be looked at."""

    id: str
    content: str
    visibility: str
    is_active: bool
    identity: str
    matching: str | None


class FactSource(Protocol):
    """Who keeps the facts of a memory."""

    def list_outlines(self) -> Iterable[FactOutline]: ...

    def fetch(self, fact_ids: Collection[str]) -> Iterable[Fact]: ...

    def parse_claim(self, fact: Fact) -> Claim | None:
        """Take a fact apart; None where it cannot be read."""
        ...

    def make_fingerprint(self, claim: Claim, is_secret: bool) -> FactFingerprint: ...


class FactLedger:
    def __init__(self, key: MemoryKey, keeper: FactSource) -> None:
        self.key = key
        self.briefed_fact_ids: frozenset[str] = frozenset()
        self.facts: dict[str, Fact] = {}
        self.created: list[str] = []
        self.changed: set[str] = set()
        self.retired: list[str] = []
        self.made_secret: list[str] = []
        self.restored: list[str] = []
        self.occurrences: list[Occurrence] = []
        self._source = keeper
        self._last_fingerprint: tuple[AcceptedDraft, FactFingerprint] | None = None
        self._known: set[str] = set()
        self._claims: dict[str, Claim | None] = {}
        self._candidates = CandidateIndex()
        # of what this call adds: few, so that those of the known facts are looked through once
        # a claim
        self._new_candidates = CandidateIndex()
        self._found: dict[int, tuple[Claim, set[str]]] = {}
        self._by_identity: dict[str, str] = {}
        self._retired_by_identity: dict[str, set[str]] = defaultdict(set)
        for known in keeper.list_outlines():
            self._index_outline(known, self._candidates)

    def prefetch(self, claims: Iterable[Claim], named: Iterable[str | None] = ()) -> None:
        """Fetch together what these claims will be compared with, and what a reader named."""
        wanted = {fact_id for claim in claims for fact_id in self._find_known(claim)}
        self._fetch({*wanted, *(fact_id for fact_id in named if fact_id in self._known)})

    def record(self, found: AcceptedDraft, call_id: str, trace: ReadingTrace) -> RecordOutcome:
        """Take one draft in; the same draft of the same call again changes nothing."""
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
        """Undo a retirement: both facts stand, and neither takes the other's place again by
        itself.
        """
        fact = self._find(fact_id)
        if fact is None:
            raise NotFound(f"there is no fact {fact_id}")
        if fact.is_active:
            raise RefusedInput("fact", f"{fact_id} is not retired")
        if twin := self._by_identity.get(fact.identity):
            raise RefusedInput("fact", f"{fact_id} is believed again already, as {twin}")
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
        identity = self._get_fingerprint(found).identity
        if known := self._by_identity.get(identity):
            return "same", known
        near = list(self._near(found.claim, self._retired_by_identity.get(identity, set())))
        active = [(fact_id, claim) for fact_id, claim in near if self.facts[fact_id].is_active]
        verdict, known = best(found.claim, active, found.draft.category)
        if verdict != "same" and (past := self._believed_then(found, near)):
            return "same", past
        return verdict, known

    def _decide_by_id(self, draft: FactDraft, claim: Claim) -> tuple[str, str] | None:
        """A reader's ids count only for active facts of this memory, and only if the two may
        speak of the same one.

        How many words they share does not decide: "phone before email" replaces "email before
        phone".
        """
        for named, wanted in ((draft.duplicate_of, "same"), (draft.supersedes, "update")):
            fact = self._find(named)
            if fact is None or not fact.is_active or (known := self._claim(fact.id)) is None:
                continue
            if claim.identity == known.identity or (
                wanted == "same" and not contradicts(claim, known)
            ):
                return "same", fact.id
            if wanted == "update" and is_related(claim, known):
                return "update", fact.id
        return None

    def _believed_then(self, found: AcceptedDraft, near: list[tuple[str, Claim]]) -> str | None:
        """A retired fact that says the same and was believed when this was said."""
        for fact_id, claim in near:
            fact = self.facts[fact_id]
            is_past = (
                not fact.is_active
                and fact.valid_until is not None
                and found.evidence.at < fact.valid_until
            )
            if is_past and compare(found.claim, claim, found.draft.category) == "same":
                return fact_id
        return None

    def _near(self, claim: Claim, past: set[str]) -> Iterator[tuple[str, Claim]]:
        """Others cannot be the same, nor replaced. `past` are those that said the very same."""
        ids = self._find_known(claim) | self._new_candidates.find(claim) | past
        self._fetch(ids)
        for fact_id in sorted(ids):
            if (known := self._claim(fact_id)) is not None:
                yield fact_id, known

    def _find_known(self, claim: Claim) -> set[str]:
        if id(claim) not in self._found:
            self._found[id(claim)] = claim, self._candidates.find(claim)
        return self._found[id(claim)][1]

    def _claim(self, fact_id: str) -> Claim | None:
        if fact_id not in self._claims:
            self._claims[fact_id] = self._source.parse_claim(self.facts[fact_id])
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
            self.facts.update((fact.id, fact) for fact in self._source.fetch(missing))

    def _record_again(
        self, fact_id: str, found: AcceptedDraft, call_id: str, trace: ReadingTrace
    ) -> None:
        fact = self._fetch_one(fact_id)
        at = found.evidence.at
        visibility = max_visibility(fact.visibility, found.visibility)
        if visibility == "secret" and not fact.is_secret:
            self.made_secret.append(fact_id)
        claim = self._claim(fact_id)
        matching = (
            self._source.make_fingerprint(claim, visibility == "secret").matching
            if claim
            else fact.matching
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
            valid_from=at if fact.supersedes is None and at < fact.valid_from else fact.valid_from,
        )
        self._add_occurrence(
            fact_id, found, call_id, trace, self._choose_repeat_sentiment(fact, found)
        )
        if is_clear and fact.is_active:
            self._settle_doubt(fact_id, at)

    def _settle_doubt(self, fact_id: str, at: datetime) -> None:
        """What was badly heard has been heard well: it takes its place, if it was said after
        what it replaces.
        """
        fact = self.facts[fact_id]
        doubted = self._find(fact.metadata.get(DOUBTED_FACT_KEY))
        if doubted is None or not doubted.is_active or at < doubted.valid_from:
            return
        since = fact.valid_from if fact.valid_from >= doubted.valid_from else at
        past = sorted(
            [*self._up_to(fact.supersedes), *self._up_to(doubted.id)],
            key=lambda one: one.valid_from,
        )
        self._retire(doubted.id, fact_id, since)
        settled = {name: value for name, value in fact.metadata.items() if name != DOUBTED_FACT_KEY}
        self._change(fact_id, valid_from=since, metadata=settled)
        for earlier, later in pairwise(
            [*(one.id for one in past), fact_id]
        ):  # either may have a past of its own by now: they become one
            self._change(earlier, superseded_by=later, valid_until=self.facts[later].valid_from)
            self._change(later, supersedes=earlier)

    def _up_to(self, fact_id: str | None) -> list[Fact]:
        """A chain from its beginning to this fact."""
        chain: list[Fact] = []
        while (fact := self._find(fact_id)) and fact not in chain:
            chain.insert(0, fact)
            fact_id = fact.supersedes
        return chain

    def _choose_repeat_sentiment(self, fact: Fact, found: AcceptedDraft) -> str:
        """A fact that the agent had been told of was brought up by it: said again, it is
        confirmed, not repeated.
        """
        if fact.id in self.briefed_fact_ids:
            return "confirmation"
        return _choose_sentiment(found, "said" if fact.occurrence_count < 2 else "repeated")

    def _replace(self, known: str, found: AcceptedDraft, call_id: str, trace: ReadingTrace) -> None:
        old = self._fetch_one(known)
        manner = _choose_sentiment(found, "correction" if found.claim.corrects else "update")
        if found.evidence.at < old.valid_from:
            self._insert_before(old, found, call_id, trace, manner)
        elif found.needs_confirmation and not old.needs_confirmation:
            self._add(found, call_id, trace, manner, metadata={DOUBTED_FACT_KEY: known})
        else:
            new = self._add(found, call_id, trace, manner, supersedes=known)
            self._retire(known, new, found.evidence.at)

    def _insert_before(
        self, later: Fact, found: AcceptedDraft, call_id: str, trace: ReadingTrace, manner: str
    ) -> None:
        """Said before the present fact began: it belongs into the past, between its neighbours
        in time.
        """
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
        at, draft, marks = found.evidence.at, found.draft, self._get_fingerprint(found)
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
            identity=marks.identity,
            matching=marks.matching,
            reader=trace.reader,
            prompt_hash=trace.prompt,
        )
        if links:
            fact = replace(fact, **links)  # type: ignore[arg-type]
        self.created.append(fact.id)
        self._track(fact, found.claim)
        self._add_occurrence(
            fact.id, found, call_id, trace, _choose_sentiment(found, manner or "said")
        )
        return fact.id

    def _add_occurrence(
        self, fact_id: str, found: AcceptedDraft, call_id: str, trace: ReadingTrace, sentiment: str
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

    def _index_outline(self, known: FactOutline, handles: CandidateIndex) -> None:
        """A secret's words are sealed: it is opened for each comparison."""
        self._known.add(known.id)
        if known.is_active:
            self._by_identity[known.identity] = known.id
        else:
            self._retired_by_identity[known.identity].add(known.id)
        if known.visibility == "secret":
            handles.add_secret(known.id)
        else:
            handles.add(known.id, known.content, known.matching)

    def _track(self, fact: Fact, claim: Claim) -> None:
        self.facts[fact.id] = fact
        self._claims[fact.id] = claim
        self._index_outline(
            FactOutline(
                fact.id, fact.content, fact.visibility, fact.is_active, fact.identity, fact.matching
            ),
            self._new_candidates,
        )

    def _change(self, fact_id: str, **values: object) -> None:
        self.facts[fact_id] = replace(self.facts[fact_id], **values)  # type: ignore[arg-type]
        self.changed.add(fact_id)

    def _get_fingerprint(self, found: AcceptedDraft) -> FactFingerprint:
        """Of the draft at hand they are asked twice."""
        if self._last_fingerprint is None or self._last_fingerprint[0] is not found:
            self._last_fingerprint = (
                found,
                self._source.make_fingerprint(found.claim, found.visibility == "secret"),
            )
        return self._last_fingerprint[1]


def _choose_sentiment(found: AcceptedDraft, otherwise: str) -> str:
    """How it was said: what happened to the fact if anything did, else the mood of it."""
    if found.evidence.is_confirmed:
        return "confirmation"
    if otherwise in ("correction", "update"):
        return otherwise
    if otherwise == "repeated" and found.draft.sentiment == "negative":
        return "frustration"
    return found.draft.sentiment
