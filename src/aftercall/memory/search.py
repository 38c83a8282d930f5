"""Searching a caller's memory: facts, turns and summaries, with the turns beside them."""

from collections.abc import Mapping

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.memory.embedding import Embedder, embed_query, find_near
from aftercall.memory.passages.store import PAGE_BITS, Look, fetch, find_postings, look_into
from aftercall.memory.query import LONGEST_QUERY, parse_query
from aftercall.memory.ranking import WEIGHTS, Weights, holds_term, score_words, weigh
from aftercall.model.passages import Hit, Passage, Signs, Where

CONTEXT = 1


class Search:
    def __init__(self, database: Database, clock: Clock, weights: Weights = WEIGHTS, embedder: Embedder | None = None) -> None:
        self._database = database
        self._clock = clock
        self._weights = weights
        self._embedder = embedder

    def find(
        self, text: str, where: Where, *, limit: int = 10, context: int = CONTEXT, voices: Mapping[str, str] | None = None
    ) -> list[Hit]:
        """The best passages for any text, best first. `voices` tells whose name is whose, {"Bill": "caller"}."""
        query = parse_query(text, voices)
        is_one_word = len(query.terms) == 1  # then what holds it comes before mere neighbours
        today = self._clock.now().toordinal()
        wanted = self._embed(text)
        with look_into(self._database) as look:
            postings = find_postings(look, query.terms, query.phrases, where)
            scores = score_words(postings, PAGE_BITS, self._weights, limit)
            near = self._add_meaning(look, scores, wanted, where) if wanted else set()
            if not scores:
                return []
            pool = fetch(look, scores, where, query.phrases)
            weighed = [
                (
                    not is_one_word or signs.n in near or holds_term(query, signs),
                    weigh(query, scores[signs.n], signs, today, self._weights),
                    signs,
                )
                for signs in pool
            ]
            best = sorted(weighed, reverse=True)[:limit]
            places = {place for *_, signs in best for place in _beside(signs, context)}
            beside = {signs.n: signs for signs in fetch(look, places, Where(where.agent_id, where.caller, ("turn",)))} if places else {}
        return [Hit(signs.to_passage(), score, *_context(signs, beside, context)) for _, score, signs in best]

    def _embed(self, text: str) -> tuple[str, bytes] | None:
        """Before the database is looked into: an embedder may take its time."""
        if self._embedder is None:
            return None
        vector = embed_query(self._embedder, text[:LONGEST_QUERY])
        return (self._embedder.name, vector) if vector else None

    def _add_meaning(self, look: Look, scores: dict[int, float], wanted: tuple[str, bytes], where: Where) -> set[int]:
        """Which passages are near in meaning; their scores grow."""
        near = find_near(look, *wanted, where, self._weights.pool)
        for n, cosine in near.items():
            scores[n] = scores.get(n, 0.0) + self._weights.meaning * cosine
        return set(near)


def _beside(signs: Signs, context: int) -> list[int]:
    """The turns of a call stand side by side; nothing else has neighbours."""
    return [signs.n + step for step in range(-context, context + 1) if step] if signs.kind == "turn" else []


def _context(signs: Signs, beside: Mapping[int, Signs], context: int) -> tuple[tuple[Passage, ...], tuple[Passage, ...]]:
    near = [beside[place] for place in _beside(signs, context) if place in beside]
    before = tuple(turn.to_passage() for turn in near if turn.n < signs.n)
    return before, tuple(turn.to_passage() for turn in near if turn.n > signs.n)
