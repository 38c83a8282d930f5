"""Ranks passages. docs/reference/search.md describes it in words.

    score = (words + call + day) * speaker * time * question * category * recency * frequency

The weights were chosen with bench/locomo on five conversations; a small change of one changes the
recall by less than 0.01.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice

from aftercall.memory.query import SearchQuery
from aftercall.memory.words import to_term, to_terms
from aftercall.model.facts import Fact, Gist
from aftercall.model.passages import MatchSigns

QUESTION, TIME = 1, 2


@dataclass(frozen=True)
class Weights:
    pool_size: int = 40
    """How many of the best by words alone are ranked further."""
    reach: tuple[tuple[int, float], ...] = (
        (-2, 0.35),
        (2, 0.45),
        (-1, 0.45),
        (1, 0.8),
        (0, 1.0),
    )
    """A word counts for its turn and, less, for the neighbours: an answer repeats little of its
    question. In ascending order, so that the greatest value of a turn is written last.
    """
    call: float = 0.6
    """What a call with many matches adds to each of its turns."""
    min_passages: int = 1_000
    min_calls: int = 30
    """The assumed size of a memory for the rarity of a word: counting costs more than it gains."""
    meaning: float = 0.5
    """For nearness in meaning, if an embedder is configured."""
    days: float = 0.8
    named_speaker: float = 1.6
    tells_time: float = 1.4
    """For a passage that names a time, if the query asks when."""
    is_question: float = 0.85
    recent_share: float = 0.15
    """The share of its score that an old fact loses. Turns lose nothing."""
    half_life_days: float = 60
    repetition: float = 0.08
    """What each doubling of a fact's mentions adds, up to `max_mentions`."""
    max_mentions: int = 16


WEIGHTS = Weights()
CATEGORY_WEIGHTS: Mapping[str, float] = {
    "correction": 1.15,
    "decision": 1.1,
    "preference": 1.1,
    "action_item": 1.05,
    "person": 1.05,
    "routine": 0.95,
    "emotional": 0.95,
}

_TIME_WORDS = """
yesterday today tonight tomorrow last next ago week weekend month year day since recently just soon
monday tuesday wednesday thursday friday saturday sunday morning evening summer winter spring fall
january february march april may june july august september october november december
"""
_TIME_TERMS = frozenset(map(to_term, _TIME_WORDS.split()))


def compute_marks(text: str, terms: str) -> int:
    """Flags that are stored with a passage: whether it asks, and whether it names a time."""
    question = QUESTION if text.rstrip().endswith("?") else 0
    time = 0 if _TIME_TERMS.isdisjoint(terms.split()) else TIME
    return question | time


def score_words(
    postings: Sequence[Sequence[int]],
    page_bits: int,
    weights: Weights = WEIGHTS,
    min_results: int = 0,
) -> dict[int, float]:
    """Scores by words and by the calls they are in, for the best `pool_size` or `min_results`.

    A query of one term always gets `min_results` passages that hold it, if there are so many.

    `postings` lists for each term the numbers of the passages that hold it. A number is a page and
    a place of `page_bits` on it; adjacent numbers on an odd page are neighbouring turns.
    """
    size = max(weights.min_passages, 2 * max(map(len, postings), default=0))
    words: dict[int, float] = {}
    calls: dict[int, float] = {}
    for found in filter(None, postings):
        rarity = _rarity(len(found), size)
        turns = [n for n in found if n >> page_bits & 1]
        reached = dict.fromkeys(found, rarity) if len(turns) < len(found) else {}
        for step, weight in weights.reach:
            value = rarity * weight
            for n in turns:
                reached[n + step] = value
        for n, value in reached.items():
            words[n] = words.get(n, 0.0) + value
        pages = Counter([n >> page_bits for n in found])
        rarity = _rarity(len(pages), max(weights.min_calls, len(pages)))
        for page, count in pages.items():
            calls[page] = calls.get(page, 0.0) + rarity * count / (count + 1)
    scored = _fuse(words, calls, page_bits, weights.call) if words else {}
    ranked = sorted(scored, key=scored.__getitem__, reverse=True)
    kept = ranked[: max(weights.pool_size, min_results)]
    if len(postings) == 1:
        holding = set(postings[0])
        kept += islice((n for n in ranked if n in holding), min_results)
    return {n: scored[n] for n in kept}


def _fuse(
    words: Mapping[int, float], calls: Mapping[int, float], page_bits: int, share: float
) -> dict[int, float]:
    """The sum of both scores, each relative to its best."""
    word_unit = 1 / max(words.values())
    call_unit = share / max(calls.values())
    of_call = {page: value * call_unit for page, value in calls.items()}
    # A neighbour may be off the page of its call; there is no passage there to fetch.
    return {
        n: value * word_unit + of_call.get(n >> page_bits, 0.0)
        for n, value in words.items()
    }


def _rarity(count: int, size: int) -> float:
    return math.log(1 + (size - count + 0.5) / (count + 0.5))


def score_passage(
    query: SearchQuery,
    score: float,
    signs: MatchSigns,
    today: int,
    weights: Weights = WEIGHTS,
) -> float:
    """The final score of a passage whose words scored `score`; `today` is a day's ordinal."""
    if query.days:
        said = date.fromordinal(signs.day)
        score += weights.days * max(day.closeness(said) for day in query.days)
    if signs.speaker in query.speakers:
        score *= weights.named_speaker
    if query.asks_when and signs.marks & TIME:
        score *= weights.tells_time
    if signs.marks & QUESTION:
        score *= weights.is_question
    if signs.kind == "turn":
        return score
    age_days = today - signs.day
    return score * _score_history(signs.category, age_days, signs.mentions, weights)


def has_query_term(query: SearchQuery, signs: MatchSigns) -> bool:
    """Whether the passage itself holds a term of the query."""
    return not set(query.terms).isdisjoint(to_terms(signs.text).split())


def score_fact(fact: Fact | Gist, today: date, weights: Weights = WEIGHTS) -> float:
    """The weight of a fact without a query."""
    age_days = (today - fact.last_seen_at.date()).days
    return _score_history(fact.category, age_days, fact.occurrence_count, weights)


def _score_history(
    category: str, age_days: int, mentions: int, weights: Weights
) -> float:
    """Category, recency and frequency."""
    faded = 1 - math.pow(0.5, max(0, age_days) / weights.half_life_days)
    recency = 1 - weights.recent_share * faded
    counted = min(max(mentions, 1), weights.max_mentions)
    frequency = 1 + weights.repetition * math.log2(counted)
    return CATEGORY_WEIGHTS.get(category, 1.0) * recency * frequency
