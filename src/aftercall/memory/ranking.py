"""How passages are ranked: every weight, in one place. docs/reference/search.md tells it in words.

    score = (words + call + day named) * speaker * time told * question * category * recency *
    frequency

Chosen with bench/locomo on five conversations; near each weight the recall changes by less than
a hundredth.
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
    """Every number that ranking depends on."""

    pool_size: int = 40
    """How many of the best by words alone are looked at closely."""
    reach: tuple[tuple[int, float], ...] = ((-2, 0.35), (2, 0.45), (-1, 0.45), (1, 0.8), (0, 1.0))
    """A word counts for the turn that holds it and, less, for its neighbours: an answer repeats
    little of its question.
    Written from the least to the greatest: where several reasons count, the best one does.
    """
    call: float = 0.6
    """A call that is about the matter lifts all its turns."""
    min_passages: int = 1_000
    min_calls: int = 30
    """How large a memory is taken to be when a word's rarity is told; the true size would cost
    a count and changes little.
    """
    meaning: float = 0.5
    """For nearness in meaning, where an embedder is configured: a third of what words and call
    can give together.
    """
    days: float = 0.8
    named_speaker: float = 1.6
    tells_time: float = 1.4
    """For a query that asks when."""
    is_question: float = 0.85
    recent_share: float = 0.15
    """What a fact has to lose by growing old. What was said stays said: turns lose nothing."""
    half_life_days: float = 60
    repetition: float = 0.08
    """What each doubling of a fact's mentions adds, up to most_mentions."""
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

_TIME_WORDS = frozenset(
    map(
        to_term,
        [
            "yesterday",
            "today",
            "tonight",
            "tomorrow",
            "last",
            "next",
            "ago",
            "week",
            "weekend",
            "month",
            "year",
            "day",
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
            "january",
            "february",
            "march",
            "april",
            "may",
            "june",
            "july",
            "august",
            "september",
            "october",
            "november",
            "december",
            "since",
            "recently",
            "just",
            "soon",
            "morning",
            "evening",
            "summer",
            "winter",
            "spring",
            "fall",
        ],
    )
)


def compute_marks(text: str, terms: str) -> int:
    """What is told once, when a passage is kept: whether it asks, and whether it tells of time."""
    is_question = QUESTION if text.rstrip().endswith("?") else 0
    return is_question if _TIME_WORDS.isdisjoint(terms.split()) else is_question | TIME


def score_words(
    postings: Sequence[Sequence[int]],
    page_bits: int,
    weights: Weights = WEIGHTS,
    min_results: int = 0,
) -> dict[int, float]:
    """The best by words, and by the calls they stand in: as many as the pool holds, or as are
    wanted.

    Where one word is asked for, as many as are wanted of those that hold it are always among them.

    `postings` has for each term of the query the passages that hold it. A passage's number is a
    page, the batch it came in, and a place of `page_bits` on it; on odd pages passages side by
    side are neighbours.
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
    """Words and calls, each against its best."""
    most = 1 / max(words.values())
    lift = share / max(calls.values())
    lifts = {page: value * lift for page, value in calls.items()}
    # A reach may step off the page of a call; there is no passage there, and nothing is fetched.
    return {n: value * most + lifts.get(n >> page_bits, 0.0) for n, value in words.items()}


def _rarity(count: int, size: int) -> float:
    return math.log(1 + (size - count + 0.5) / (count + 0.5))


def score_passage(
    query: SearchQuery, score: float, signs: MatchSigns, today: int, weights: Weights = WEIGHTS
) -> float:
    """The final score of a passage whose words scored `score`; `today` is counted in days like
    `signs.day`.
    """
    if query.days:
        said = date.fromordinal(signs.day)
        score += weights.days * max(day.closeness(said) for day in query.days)
    if signs.speaker in query.speakers:
        score *= weights.named_speaker
    if query.asks_when and signs.marks & TIME:
        score *= weights.tells_time
    if signs.marks & QUESTION:
        score *= weights.is_question
    return score if signs.kind == "turn" else score * _score_fact_signs(signs, today, weights)


def has_query_term(query: SearchQuery, signs: MatchSigns) -> bool:
    """Whether the passage itself holds a word that was asked for."""
    return not set(query.terms).isdisjoint(to_terms(signs.text).split())


def _score_fact_signs(signs: MatchSigns, today: int, weights: Weights) -> float:
    """Category, recency and frequency."""
    age = max(0, today - signs.day)
    recency: float = 1 - weights.recent_share * (1 - math.pow(0.5, age / weights.half_life_days))
    frequency = 1 + weights.repetition * math.log2(
        min(max(signs.mentions, 1), weights.max_mentions)
    )
    return CATEGORY_WEIGHTS.get(signs.category, 1.0) * recency * frequency


def score_fact(fact: Fact | Gist, today: date, weights: Weights = WEIGHTS) -> float:
    """How much a fact matters when nothing was asked: by category, by age and by how often it
    was said.
    """
    age = max(0, (today - fact.last_seen_at.date()).days)
    recency: float = 1 - weights.recent_share * (1 - 0.5 ** (age / weights.half_life_days))
    frequency = 1 + weights.repetition * math.log2(
        min(max(fact.occurrence_count, 1), weights.max_mentions)
    )
    return CATEGORY_WEIGHTS.get(fact.category, 1.0) * recency * frequency
