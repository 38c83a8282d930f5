"""Searching a caller's memory: facts, turns and summaries, with the turns beside them."""

from collections.abc import Mapping

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.memory.passages.store import PAGE_BITS, fetch, fetch_signs, find_postings
from aftercall.memory.query import parse_query
from aftercall.memory.ranking import score_words, weigh
from aftercall.model.passages import Hit, Kind, Passage, Where

CONTEXT = 1


class Search:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def find(
        self, text: str, where: Where, *, limit: int = 10, context: int = CONTEXT, voices: Mapping[str, str] | None = None
    ) -> list[Hit]:
        """The best passages for any text, best first. `voices` tells whose name is whose, {"Bill": "caller"}."""
        query = parse_query(text, voices)
        today = self._clock.now().toordinal()
        with self._database.read() as connection:
            scores = score_words(find_postings(connection, query.terms, query.phrases, where), PAGE_BITS)
            if not scores:
                return []
            pool = fetch_signs(connection, scores, query.phrases, where)
            best = sorted([(weigh(query, scores[signs.n], signs, today), signs.n, signs.kind) for signs in pool], reverse=True)[:limit]
            found = fetch(connection, {place for _, n, kind in best for place in _beside(n, kind, context)})
        return [_hit(found, score, n, kind, context) for score, n, kind in best]


def _beside(n: int, kind: Kind, context: int) -> range:
    """The turns of a call stand side by side; nothing else has neighbours."""
    return range(n - context, n + context + 1) if kind == "turn" else range(n, n + 1)


def _hit(found: Mapping[int, Passage], score: float, n: int, kind: Kind, context: int) -> Hit:
    places = _beside(n, kind, context)
    before = tuple(found[place] for place in places if place < n and place in found)
    after = tuple(found[place] for place in places if place > n and place in found)
    return Hit(found[n], score, before, after)
