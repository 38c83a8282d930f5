"""Searching a caller's memory: facts, turns and summaries, with the turns beside them."""

from collections.abc import Mapping

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.memory.passages.store import PAGE_BITS, fetch, fetch_signs, find_postings
from aftercall.memory.query import parse_query
from aftercall.memory.ranking import Signs, score_words, weigh
from aftercall.model.passages import Hit, Passage, Where

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
            pool = [Signs(*row) for row in fetch_signs(connection, scores, where)]
            if query.phrases:
                pool = [signs for signs in pool if all(f" {phrase} " in f" {signs.terms} " for phrase in query.phrases)]
            weighed = sorted(((weigh(query, scores[signs.n], signs, today), signs.n) for signs in pool), reverse=True)[:limit]
            near = {n + step for _, n in weighed for step in range(-context, context + 1)}
            found = fetch(connection, near) if near else {}
        return [_hit(found, n, score, context) for score, n in weighed if n in found]


def _hit(found: Mapping[int, Passage], n: int, score: float, context: int) -> Hit:
    passage = found[n]
    if passage.kind != "turn":
        return Hit(passage, score)
    before = [found[n - step] for step in range(context, 0, -1) if n - step in found]
    after = [found[n + step] for step in range(1, context + 1) if n + step in found]
    return Hit(passage, score, tuple(before), tuple(after))
