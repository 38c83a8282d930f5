"""Searches a memory for facts, turns and summaries: parse, find candidates, rank, add context."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.memory.embedding import Embedder, embed_query, find_nearest
from aftercall.memory.fact_store import FactStore
from aftercall.memory.passage_store import PAGE_BITS
from aftercall.memory.postings import PassageReader, open_passages
from aftercall.memory.query import MAX_QUERY_CHARS, SearchQuery, parse_query
from aftercall.memory.ranking import (
    WEIGHTS,
    Weights,
    has_query_term,
    score_passage,
    score_words,
)
from aftercall.memory.visibility import LEVELS, gives_away, is_releasable, memory_key
from aftercall.model.facts import SHARED_CALLER, Fact, MemoryKey
from aftercall.model.followups import Trust
from aftercall.model.passages import MatchSigns, Passage, SearchHit, SearchScope
from aftercall.settings import Settings

CONTEXT_TURNS = 1
MAX_RECALL_LINES = 5
MAX_RECALL_CANDIDATES = 20
MAX_LINE_CHARS = 300


class MemorySearch:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        weights: Weights = WEIGHTS,
        embedder: Embedder | None = None,
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
            postings = passages.find_postings(query.terms, query.phrases, scope)
            scores = score_words(postings, PAGE_BITS, self._weights, limit)
            near = self._add_nearest(passages, scores, vector, scope)
            if not scores:
                return []
            candidates = passages.fetch(scores, scope, query.phrases)
            best = self._rank(query, scores, near, candidates)[:limit]
            turns = _fetch_neighbours(
                passages, [signs for _, signs in best], scope, context
            )
        return [
            SearchHit(
                passage=signs.to_passage(),
                score=score,
                before=_pick(turns, range(signs.n - context, signs.n), signs),
                after=_pick(turns, range(signs.n + 1, signs.n + context + 1), signs),
            )
            for score, signs in best
        ]

    def _embed(self, text: str) -> bytes | None:
        return (
            embed_query(self._embedder, text[:MAX_QUERY_CHARS])
            if self._embedder
            else None
        )

    def _add_nearest(
        self,
        passages: PassageReader,
        scores: dict[int, float],
        vector: bytes | None,
        scope: SearchScope,
    ) -> set[int]:
        """Raise the scores of passages near in meaning; returns their numbers."""
        if vector is None or self._embedder is None:
            return set()
        count = self._weights.pool_size
        near = find_nearest(passages, self._embedder.name, vector, scope, count)
        for n, cosine in near.items():
            scores[n] = scores.get(n, 0.0) + self._weights.meaning * cosine
        return set(near)

    def _rank(
        self,
        query: SearchQuery,
        scores: Mapping[int, float],
        near: set[int],
        candidates: Sequence[MatchSigns],
    ) -> list[tuple[float, MatchSigns]]:
        """Best first. For a single word, passages that hold it come before their neighbours."""
        is_one_word = len(query.terms) == 1
        today = self._clock.now().toordinal()
        ranked = []
        for signs in candidates:
            is_hit = not is_one_word or signs.n in near or has_query_term(query, signs)
            score = score_passage(query, scores[signs.n], signs, today, self._weights)
            ranked.append((is_hit, score, signs))
        ranked.sort(reverse=True)
        return [(score, signs) for _, score, signs in ranked]


def _fetch_neighbours(
    passages: PassageReader,
    found: Sequence[MatchSigns],
    scope: SearchScope,
    context: int,
) -> dict[int, MatchSigns]:
    """The turns around the turns that were found, by number."""
    steps = [*range(-context, 0), *range(1, context + 1)]
    numbers = {
        signs.n + step for signs in found if signs.kind == "turn" for step in steps
    }
    if not numbers:
        return {}
    turns = SearchScope(scope.agent_id, scope.caller, ("turn",))
    return {signs.n: signs for signs in passages.fetch(numbers, turns)}


def _pick(
    turns: Mapping[int, MatchSigns], numbers: range, signs: MatchSigns
) -> tuple[Passage, ...]:
    if signs.kind != "turn":  # only the numbers of turns are neighbours
        return ()
    return tuple(turns[n].to_passage() for n in numbers if n in turns)


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
