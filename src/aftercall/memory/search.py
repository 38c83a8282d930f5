"""Searching a caller's memory: facts, turns and summaries, with the turns beside them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.memory.embedding import Embedder, embed_query, find_nearest
from aftercall.memory.key import memory_key
from aftercall.memory.passage_store import (
    PAGE_BITS,
    PassageSnapshot,
    fetch_passages,
    find_postings,
    open_snapshot,
)
from aftercall.memory.query import MAX_QUERY_CHARS, parse_query
from aftercall.memory.ranking import WEIGHTS, Weights, has_query_term, score_passage, score_words
from aftercall.memory.store import FactStore
from aftercall.memory.visibility import LEVELS, filter_releasable, gives_away, is_releasable
from aftercall.model.facts import SHARED_CALLER, Fact, MemoryKey
from aftercall.model.followups import Trust
from aftercall.model.passages import MatchSigns, Passage, SearchHit, SearchScope
from aftercall.settings import Settings

CONTEXT_TURNS = 1


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
        """The best passages for any text, best first.

        `voices` tells whose name is whose, {"Bill": "caller"}.
        """
        query = parse_query(text, speaker_names)
        is_one_word = len(query.terms) == 1  # then what holds it comes before mere neighbours
        today = self._clock.now().toordinal()
        wanted = self._embed(text)
        with open_snapshot(self._database) as look:
            postings = find_postings(look, query.terms, query.phrases, scope)
            scores = score_words(postings, PAGE_BITS, self._weights, limit)
            near = self._add_meaning(look, scores, wanted, scope) if wanted else set()
            if not scores:
                return []
            pool = fetch_passages(look, scores, scope, query.phrases)
            weighed = [
                (
                    not is_one_word or signs.n in near or has_query_term(query, signs),
                    score_passage(query, scores[signs.n], signs, today, self._weights),
                    signs,
                )
                for signs in pool
            ]
            best = sorted(weighed, reverse=True)[:limit]
            places = {place for *_, signs in best for place in _beside(signs, context)}
            beside = (
                {
                    signs.n: signs
                    for signs in fetch_passages(
                        look, places, SearchScope(scope.agent_id, scope.caller, ("turn",))
                    )
                }
                if places
                else {}
            )
        return [
            SearchHit(signs.to_passage(), score, *_context(signs, beside, context))
            for _, score, signs in best
        ]

    def _embed(self, text: str) -> tuple[str, bytes] | None:
        """Before the database is looked into: an embedder may take its time."""
        if self._embedder is None:
            return None
        vector = embed_query(self._embedder, text[:MAX_QUERY_CHARS])
        return (self._embedder.name, vector) if vector else None

    def _add_meaning(
        self,
        look: PassageSnapshot,
        scores: dict[int, float],
        wanted: tuple[str, bytes],
        where: SearchScope,
    ) -> set[int]:
        """Which passages are near in meaning; their scores grow."""
        near = find_nearest(look, *wanted, where, self._weights.pool_size)
        for n, cosine in near.items():
            scores[n] = scores.get(n, 0.0) + self._weights.meaning * cosine
        return set(near)


def _beside(signs: MatchSigns, context: int) -> list[int]:
    """The turns of a call stand side by side; nothing else has neighbours."""
    return (
        [signs.n + step for step in range(-context, context + 1) if step]
        if signs.kind == "turn"
        else []
    )


def _context(
    signs: MatchSigns, beside: Mapping[int, MatchSigns], context: int
) -> tuple[tuple[Passage, ...], tuple[Passage, ...]]:
    near = [beside[place] for place in _beside(signs, context) if place in beside]
    before = tuple(turn.to_passage() for turn in near if turn.n < signs.n)
    return before, tuple(turn.to_passage() for turn in near if turn.n > signs.n)


MAX_RECALL_LINES = 5
MAX_RECALL_CANDIDATES = 20
MAX_LINE_CHARS = 300


@dataclass(frozen=True)
class FactRecall:
    settings: Settings
    search: MemorySearch
    facts: FactStore

    def find(self, agent_id: str, party: str | None, trust: Trust, query: str) -> list[str]:
        """A few short lines, best first, each with its day.

        Nobody is remembered: nothing is found.
        """
        where = make_party_scope(self.settings, agent_id, party)
        if where is None:
            return []
        found = self.search.find(query, where, limit=MAX_RECALL_CANDIDATES, context=0)
        return [
            self._line(hit, agent_id, party)
            for hit in self._release(found, trust)[:MAX_RECALL_LINES]
        ]

    def _release(self, found: list[SearchHit], trust: Trust) -> list[SearchHit]:
        """What this caller may hear: nothing above their trust, nor a turn or summary that
        gives such a fact away.
        """
        allowed = {
            id(passage)
            for passage in filter_releasable(
                (hit.passage for hit in found), trust, self.settings.memory
            )
        }
        kept = [hit for hit in found if id(hit.passage) in allowed]
        said_in = {hit.passage.call_id for hit in kept if hit.passage.call_id}
        levels = [
            level
            for level in LEVELS
            if level != "secret" and not is_releasable(level, trust, self.settings.memory)
        ]
        withheld = (
            self.facts.list_words_in_calls(sorted(said_in), levels) if said_in and levels else []
        )
        return [
            hit for hit in kept if not any(gives_away(hit.passage.text, told) for told in withheld)
        ]

    def _line(self, hit: SearchHit, agent_id: str, party: str | None) -> str:
        passage = hit.passage
        day = passage.at.astimezone(self.settings.zone)
        other_agent = f" (heard by {passage.agent_id})" if passage.agent_id != agent_id else ""
        other_call = (
            f" (call of {passage.caller})"
            if passage.caller not in (party, SHARED_CALLER, None)
            else ""
        )
        who = f"{passage.speaker} said: " if passage.speaker else ""
        return (
            f"{day.day} {day:%B %Y}{other_agent}{other_call}, {who}{passage.text[:MAX_LINE_CHARS]}"
        )


def find_facts(
    search: MemorySearch, store: FactStore, query: str, scope: SearchScope, limit: int
) -> list[Fact]:
    """Facts that fit, best first, as the ledger has them."""
    hits = search.find(query, replace(scope, kinds=("fact",)), limit=limit, context=0)
    return [store.get(hit.passage.ref) for hit in hits if hit.passage.ref]


def make_party_scope(settings: Settings, agent_id: str, party: str | None) -> SearchScope | None:
    """What a call of this party may search; None where nobody is remembered."""
    key = memory_key(settings, agent_id, party)
    return make_key_scope(settings, agent_id, key) if key else None


def make_key_scope(settings: Settings, agent_id: str, key: MemoryKey | None) -> SearchScope:
    """What is searched of one memory, or, for the owner, of every caller of the agent; with the
    facts of the agent's group.
    """
    caller = None if key is None or key.caller == SHARED_CALLER else key.caller
    return SearchScope(agent_id, caller, group=settings.memory.list_others_in_group(agent_id))
