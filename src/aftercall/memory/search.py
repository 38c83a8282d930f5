"""Searches a memory for facts, turns and summaries: parse, find candidates, rank, add context."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.memory.fact_store import FactStore
from aftercall.memory.postings import PassageReader, open_passages
from aftercall.memory.ranking import (
    MAX_QUERY_CHARS,
    WEIGHTS,
    QueryRanking,
    SearchQuery,
    Weights,
    parse_query,
)
from aftercall.memory.words import gives_away
from aftercall.model.facts import (
    LEVELS,
    SHARED_CALLER,
    Fact,
    MemoryKey,
    is_releasable,
    memory_key,
)
from aftercall.model.followups import Trust
from aftercall.model.passages import Passage, SearchHit, SearchScope, is_turn_number
from aftercall.settings import Settings

if TYPE_CHECKING:
    from aftercall.memory.embedding import Embedder

CONTEXT_TURNS = 1
MAX_RECALL_LINES = 5
MAX_RECALL_CANDIDATES = 20
MAX_LINE_CHARS = 300
MAX_SIMILAR = 20


class MemorySearch:
    """Search over what was said and what is known, within what a caller may hear."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        weights: Weights = WEIGHTS,
        embedder: "Embedder | None" = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._weights = weights
        self._embedder = embedder

    def find(
        self,
        text: str,
        scope: SearchScope,
        *,
        limit: int = 10,
        context: int = CONTEXT_TURNS,
        speaker_names: Mapping[str, str] | None = None,
    ) -> list[SearchHit]:
        """The best passages for any text, best first, with `context` turns before and after.

        `speaker_names` maps names to speakers: {"Bill": "caller"}.
        """
        query = parse_query(text, speaker_names)
        vector = self._embed(text)  # before the snapshot opens: an embedder may be slow
        with open_passages(self._database) as passages:
            best = self._rank(passages, query, vector, scope, limit)
            shown = passages.fetch_passages([n for _, n in best], scope)
            beside = {n: _list_neighbours(n, context) for n in shown}
            turns = SearchScope(scope.agent_id, scope.caller, ("turn",))
            numbers = set().union(*beside.values())
            near = passages.fetch_passages(numbers, turns) if numbers else {}
        return [
            SearchHit(
                passage=shown[n],
                score=score,
                before=tuple(near[at] for at in beside[n] if at < n and at in near),
                after=tuple(near[at] for at in beside[n] if at > n and at in near),
            )
            for score, n in best
        ]

    def _embed(self, text: str) -> bytes | None:
        if self._embedder is None:
            return None
        from aftercall.memory.embedding import embed_query

        return embed_query(self._embedder, text[:MAX_QUERY_CHARS])

    def _rank(
        self,
        passages: PassageReader,
        query: SearchQuery,
        vector: bytes | None,
        scope: SearchScope,
        limit: int,
    ) -> list[tuple[float, int]]:
        """The scores and numbers of the best passages."""
        postings = passages.find_postings(query.terms, query.phrases, scope)
        nearest: dict[int, float] = {}
        if vector and self._embedder:
            count = self._weights.nearest
            from aftercall.memory.embedding import find_nearest

            nearest = find_nearest(passages, self._embedder.name, vector, scope, count)
        today = self._clock.now().toordinal()
        ranking = QueryRanking(query, postings, today, self._weights, nearest)
        picked = ranking.pick_candidates(limit)
        signs = passages.fetch_signs(picked, scope, query.phrases)
        terms = passages.fetch_terms(ranking.list_paired(picked), scope)
        return ranking.rank(signs, terms)[:limit]


def _list_neighbours(n: int, context: int) -> list[int]:
    """The numbers of the turns around a turn; other passages have none."""
    if not is_turn_number(n):
        return []
    return [n + step for step in range(-context, context + 1) if step]


@dataclass(frozen=True)
class FactRecall:
    """What an agent on the phone may look up."""

    settings: Settings
    search: MemorySearch
    facts: FactStore

    def find(
        self, agent_id: str, party: str | None, trust: Trust, query: str
    ) -> list[str]:
        """A few short lines, best first, each with its day; none if the party has no memory."""
        scope = make_party_scope(self.settings, agent_id, party)
        if scope is None:
            return []
        found = self.search.find(query, scope, limit=MAX_RECALL_CANDIDATES, context=0)
        released = self._release([hit.passage for hit in found], trust)
        return [
            self._line(passage, agent_id, party)
            for passage in released[:MAX_RECALL_LINES]
        ]

    def _release(self, found: Sequence[Passage], trust: Trust) -> list[Passage]:
        """Leave out what is above the caller's trust, and texts that give such a fact away."""
        levels = [
            level
            for level in LEVELS
            if is_releasable(level, trust, self.settings.memory)
        ]
        allowed = [passage for passage in found if passage.visibility in levels]
        withheld = [
            level for level in LEVELS if level != "secret" and level not in levels
        ]
        call_ids = sorted({passage.call_id for passage in allowed if passage.call_id})
        if not call_ids or not withheld:
            return allowed
        said = self.facts.list_words_in_calls(call_ids, withheld)
        return [
            passage
            for passage in allowed
            if not any(gives_away(passage.text, words) for words in said)
        ]

    def _line(self, passage: Passage, agent_id: str, party: str | None) -> str:
        day = passage.at.astimezone(self.settings.zone)
        line = f"{day.day} {day:%B %Y}"
        if passage.agent_id != agent_id:
            line += f" (heard by {passage.agent_id})"
        if passage.caller not in (party, SHARED_CALLER, None):
            line += f" (call of {passage.caller})"
        speaker = f"{passage.speaker} said: " if passage.speaker else ""
        return f"{line}, {speaker}{passage.text[:MAX_LINE_CHARS]}"


def find_similar_facts(
    search: MemorySearch, store: FactStore, settings: Settings, fact: Fact
) -> list[Fact]:
    """Facts in the same memory or its group that share words or meaning with this one."""
    scope = make_key_scope(settings, fact.key.agent_id, fact.key)
    return find_facts(search, store, fact.content, scope, MAX_SIMILAR)


def find_facts(
    search: MemorySearch, store: FactStore, query: str, scope: SearchScope, limit: int
) -> list[Fact]:
    """Matching facts, best first."""
    hits = search.find(query, replace(scope, kinds=("fact",)), limit=limit, context=0)
    return [store.get(hit.passage.ref) for hit in hits if hit.passage.ref]


def make_party_scope(
    settings: Settings, agent_id: str, party: str | None
) -> SearchScope | None:
    """What a call of this party may search; None if the party has no memory."""
    key = memory_key(settings, agent_id, party)
    return make_key_scope(settings, agent_id, key) if key else None


def make_key_scope(
    settings: Settings, agent_id: str, key: MemoryKey | None
) -> SearchScope:
    """One memory, or every caller of the agent for its owner; with the facts of the group."""
    caller = None if key is None or key.caller == SHARED_CALLER else key.caller
    return SearchScope(
        agent_id, caller, group=settings.memory.list_others_in_group(agent_id)
    )


def make_search_scope(settings: Settings, party: str | None) -> SearchScope:
    """Everything the owner may search: of one party, or of all.

    With memory.scope `none` there is no memory, but the calls themselves can be searched.
    """
    if party is None:
        return make_key_scope(settings, settings.agent_id, None)
    agent_id = settings.agent_id
    return make_party_scope(settings, agent_id, party) or SearchScope(agent_id, party)
