"""Ranks passages. docs/reference/search.md describes it in words.

    score = (words + call + pairs + day) * speaker * time * question
            * category * recency * frequency

Few weights, each with a reason that holds for any conversation. They were chosen on two kinds of
conversation that differ in everything: small talk in short turns, and long messages about work.
"""

import calendar
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from itertools import islice, pairwise

from aftercall.memory.words import STOP_WORDS, split_words, to_term
from aftercall.model.facts import Fact, Gist
from aftercall.model.passages import PAGE_BITS, MatchSigns

MAX_QUERY_CHARS = 10_000
MAX_QUERY_TERMS = 32
MAX_PHRASES = 4

_PHRASE = re.compile(r'"([^"]{1,500})"|“([^“”]{1,500})”')
_WHEN = re.compile(
    r"\s*(?:when|how long|(?:what|which) (?:day|date|month|year|time|week))\b"
)
_MONTH_NAMES = (
    "january february march april may june "
    "july august september october november december"
)
_MONTHS = _MONTH_NAMES.split()
_NAMED = re.compile(
    rf"(?:\b(?P<first>[0-3]?\d)(?:st|nd|rd|th)?(?: of)? )?\b(?P<month>{'|'.join(_MONTHS)})\b"
    r"(?: (?P<second>[0-3]?\d)(?:st|nd|rd|th)?\b(?!\d))?(?:,? (?P<year>20\d\d)\b)?"
)
_ISO = re.compile(r"\b(?P<year>20\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b")
_YEAR = re.compile(r"\b(20\d\d)\b")
_HINT = re.compile(rf"20\d\d|{'|'.join(_MONTHS)}")
_FIRST_PERSON = frozenset({"i", "me", "my", "mine", "myself", "we", "our", "ours"})
_AMBIGUOUS = ("may", "march")
_LEAD_IN = re.compile(
    r"\b(?:in|of|during|by|until|till|since|last|this|early|mid|late) $"
)

SAME_DAY = 1.0
DAYS_AFTER = 0.7
SAME_MONTH = 0.6
SAME_MONTH_OF_A_DAY = 0.3
MONTH_AFTER = 0.3
SAME_YEAR = 0.2
_DAY_WINDOW = timedelta(days=10)  # people speak of a day for some days after it
_MONTH_WINDOW = timedelta(days=15)


@dataclass(frozen=True, slots=True)
class Day:
    """A year, a month (of any year if `year` is None), or a single day."""

    year: int | None
    month: int | None
    day: int | None

    def closeness(self, other: date) -> float:
        """1 on the day itself; less in the days after it, when people speak of it; 0 far away."""
        if self.month is None:
            return SAME_YEAR if other.year == self.year else 0.0
        year = self.year or other.year
        is_same_month = (other.year, other.month) == (year, self.month)
        if self.day is None:
            if is_same_month:
                return SAME_MONTH
            after = other - date(year, self.month, 28)
            return MONTH_AFTER if timedelta(0) < after <= _MONTH_WINDOW else 0.0
        last_day = calendar.monthrange(year, self.month)[1]
        after = other - date(year, self.month, min(self.day, last_day))
        if after == timedelta(0):
            return SAME_DAY
        if timedelta(0) < after <= _DAY_WINDOW:
            return DAYS_AFTER
        return SAME_MONTH_OF_A_DAY if is_same_month else 0.0


def find_days(text: str) -> tuple[list[Day], str]:
    """The days named in a lower-case text, and the text without them."""
    if not _HINT.search(text):
        return [], text
    days: list[Day] = []

    def collect(match: re.Match[str]) -> str:
        day = _parse_day(match)
        if day is None:
            return match.group()
        days.append(day)
        return " "

    rest = _NAMED.sub(collect, _ISO.sub(collect, text))
    if days:
        return days, rest
    years = [Day(int(year), None, None) for year in _YEAR.findall(rest)]
    return years, _YEAR.sub(" ", rest)


def _parse_day(match: re.Match[str]) -> Day | None:
    found = match.groupdict()
    year = int(found["year"]) if found["year"] else None
    if "day" in found:
        month = int(found["month"])
        day = int(found["day"])
        return Day(year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None
    number = found["first"] or found["second"]
    if found["month"] in _AMBIGUOUS and not number and year is None:
        before = match.string[: match.start("month")]
        if not _LEAD_IN.search(before):
            return None
    month = _MONTHS.index(found["month"]) + 1
    is_day = number is not None and 1 <= int(number) <= 31
    return Day(year, month, int(number) if is_day else None)


@dataclass(frozen=True, slots=True)
class SearchQuery:
    terms: tuple[str, ...]
    """Each once."""
    phrases: tuple[str, ...] = ()
    """Terms that must be adjacent in every passage found."""
    days: tuple[Day, ...] = ()
    speakers: frozenset[str] = frozenset()
    """The speakers that the query names; the caller, if it says "I" or "my" and names nobody."""
    asks_when: bool = False
    is_lookup: bool = False
    """A single word: who looks a word up wants the passages that hold it."""


def parse_query(
    text: str, speaker_names: Mapping[str, str] | None = None
) -> SearchQuery:
    """`speaker_names` maps names to speakers ({"Bill": "caller"}).

    Turns of a named speaker rank higher; the name itself is not searched for.
    """
    lowered = text[:MAX_QUERY_CHARS].lower()
    days, rest = find_days(lowered)
    words = split_words(rest)
    speakers: dict[str, str] = {}
    for name, speaker in (speaker_names or {}).items():
        speakers |= dict.fromkeys(split_words(name), speaker)
    terms = _pick_terms(
        word for word in words if word not in STOP_WORDS and word not in speakers
    )
    if not terms:  # only stop words, names or days: search for those
        terms = _pick_terms(words) or _pick_terms(split_words(lowered))
    named = {speakers[word] for word in words if word in speakers}
    if not named and not _FIRST_PERSON.isdisjoint(words):
        named = {"caller"}
    return SearchQuery(
        terms=terms,
        phrases=tuple(_find_phrases(lowered))[:MAX_PHRASES],
        days=tuple(days),
        speakers=frozenset(named),
        asks_when=_WHEN.match(lowered) is not None,
        is_lookup=len(words) == 1 and not days,
    )


def _pick_terms(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(to_term, words)))[:MAX_QUERY_TERMS]


def _find_phrases(text: str) -> Iterator[str]:
    if text.rstrip().endswith(
        "?"
    ):  # there quotes name a title; an answer may not repeat it
        return
    for match in _PHRASE.finditer(text):
        if terms := [to_term(word) for word in split_words(match[1] or match[2])]:
            yield " ".join(terms)


QUESTION = 1
TIME = 2
LENGTH_SHIFT = 2


@dataclass(frozen=True)
class Weights:
    pool_size: int = 120
    """How many of the best by words alone are ranked further."""
    whole: int = 40
    """So many words stand alone. A longer passage holds a word more often by chance, so the word
    counts less; and it needs its neighbours less.
    """
    dilution: float = 0.6
    """How much less a word counts in a longer passage."""
    answered: float = 1.0
    """A word of a question counts in full for the turn after it, which answers it."""
    reach: tuple[tuple[int, float], ...] = ((1, 0.8), (-1, 0.5), (2, 0.4), (-2, 0.3))
    """A word counts for its turn and, less, for the neighbours: an answer repeats little of its
    question.
    """
    telling: float = 0.3
    """Only words with this share of the rarity of the rarest one count for neighbours."""
    call: float = 0.6
    """What a call that holds all the words somewhere adds to each of its turns."""
    pair: float = 0.7
    """For two words of the query side by side, as a share of their own weight."""
    min_passages: int = 1_000
    min_calls: int = 30
    """The assumed size of a memory for the rarity of a word: counting costs more than it gains."""
    meaning: float = 0.3
    """For the passage nearest in meaning, if an embedder is configured."""
    unheard: float = 2.0
    """How much more meaning counts where no passage holds the words of the query."""
    nearest: int = 40
    """How many passages near in meaning are ranked."""
    days: float = 0.8
    speaker: float = 1.6
    """For the speaker who is named, and for the caller if the query says "I" or "my"."""
    tells_time: float = 1.4
    """For a passage that names a time, if the query asks when."""
    is_question: float = 0.9
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
    """Stored with a passage: whether it asks, whether it names a time, and its length in words."""
    words = terms.split()
    question = QUESTION if text.rstrip().endswith("?") else 0
    time = 0 if _TIME_TERMS.isdisjoint(words) else TIME
    return question | time | len(words) << LENGTH_SHIFT


class QueryRanking:
    """Ranks the passages that hold terms of one query, and the turns beside them.

    `postings` has for each term the numbers of the passages that hold it, with their marks. A
    number is a page and a place on it; adjacent numbers on an odd page are neighbouring turns.
    """

    def __init__(
        self,
        query: SearchQuery,
        postings: Sequence[Mapping[int, int]],
        today: int,
        weights: Weights = WEIGHTS,
        nearest: Mapping[int, float] | None = None,
    ) -> None:
        """`today` is a day's ordinal; `nearest` has cosines of passages near in meaning."""
        self._query = query
        self._weights = weights
        self._today = today
        self._words: dict[int, float] = {}
        self._calls: dict[int, float] = {}
        self._marks: dict[int, int] = {}
        for found in postings:
            self._marks.update(found)
        longest = (
            weights.whole + 1 << LENGTH_SHIFT
        ) - 1  # the marks of what stands alone
        self._needs = {
            n: _need(marks >> LENGTH_SHIFT, weights.whole)
            for n, marks in self._marks.items()
            if marks > longest
        }
        (after, _), *others = weights.reach
        self._reaches = weights.reach, ((after, weights.answered), *others)
        size = max(weights.min_passages, 2 * max(map(len, postings), default=0))
        rarities = [_rarity(len(found), size) for found in postings]
        self._telling = weights.telling * max(rarities, default=0.0)
        for found, rarity in zip(postings, rarities, strict=True):
            self._add_term(found, rarity)
        self._word_unit = 1 / max(self._words.values(), default=1.0)
        self._call_unit = weights.call / max(self._calls.values(), default=1.0)
        self._near = self._weigh_meaning(nearest or {}, sum(rarities))
        weighed = zip(query.terms, rarities, postings, strict=False)
        self._pairs = [
            (
                f" {first} {second} ",
                weights.pair * (rarity + other) / 2,
                here.keys() & there.keys(),
            )
            for (first, rarity, here), (second, other, there) in pairwise(weighed)
        ]

    def _add_term(self, found: Mapping[int, int], rarity: float) -> None:
        """Add what a term gives to the passages that hold it, to their neighbours and calls."""
        whole = self._weights.whole
        dilution = self._weights.dilution
        held = dict.fromkeys(found, rarity)
        for n in found.keys() & self._needs.keys():
            held[n] *= _concentration(found[n] >> LENGTH_SHIFT, whole, dilution)
        reached: dict[int, float] = {}
        for n, value in held.items() if rarity >= self._telling else ():
            if n >> PAGE_BITS & 1:
                for step, weight in self._reaches[found[n] & QUESTION]:
                    share = value * weight
                    if share > reached.get(n + step, 0.0):
                        reached[n + step] = share
        words = self._words
        needs = self._needs
        for n, value in reached.items():
            if n in needs:
                value *= needs[n]
            if value > held.get(n, 0.0):
                held[n] = value
        for n, value in held.items():
            words[n] = words.get(n, 0.0) + value
        self._add_to_calls(found)

    def _add_to_calls(self, found: Mapping[int, int]) -> None:
        pages = Counter([n >> PAGE_BITS for n in found])
        rarity = _rarity(len(pages), max(self._weights.min_calls, len(pages)))
        for page, count in pages.items():
            gained = rarity * count / (count + 1)
            self._calls[page] = self._calls.get(page, 0.0) + gained

    def _weigh_meaning(
        self, nearest: Mapping[int, float], query_weight: float
    ) -> dict[int, float]:
        """What nearness in meaning adds: the more, the less of the query the best passage holds.

        Cosines of one model lie close together: what counts is the way from the least to the best.
        """
        if not nearest:
            return {}
        held = max(self._words.values(), default=0.0) / (query_weight or 1.0)
        missing = 1 - min(1.0, held)
        trust = self._weights.meaning * (1 + self._weights.unheard * missing)
        is_cut_off = len(nearest) >= self._weights.nearest
        least = min(nearest.values()) if is_cut_off else 0.0
        unit = trust / ((max(nearest.values()) - least) or 1.0)
        return {n: unit * (cosine - least) for n, cosine in nearest.items()}

    def pick_candidates(self, limit: int) -> Iterable[int]:
        """The best by words and call; for a look-up, also `limit` passages that hold the word."""
        calls = self._calls
        word_unit = self._word_unit
        call_unit = self._call_unit
        # A neighbour may be off the page of its call; there is no passage there to fetch.
        scores = self._near | {
            n: value * word_unit + calls.get(n >> PAGE_BITS, 0.0) * call_unit
            for n, value in self._words.items()
        }
        ranked = sorted(scores, key=scores.__getitem__, reverse=True)
        picked = ranked[: max(self._weights.pool_size, limit)]
        if self._query.is_lookup:
            picked += islice((n for n in ranked if n in self._marks), limit)
        return dict.fromkeys([*picked, *self._near])

    def list_paired(self, numbers: Iterable[int]) -> list[int]:
        """Those of the passages that hold two words which stand side by side in the query."""
        both = set[int]().union(*(held for _, _, held in self._pairs))
        return [n for n in numbers if n in both]

    def rank(
        self, candidates: Iterable[MatchSigns], terms: Mapping[int, str]
    ) -> list[tuple[float, int]]:
        """Best first. In a look-up, passages that hold the word come before their neighbours.

        `terms` has the words of the paired passages, in their order.
        """
        ranked = [
            (self.score(signs, terms.get(signs[0], "")), signs[0])
            for signs in candidates
        ]
        ranked.sort(reverse=True)
        if self._query.is_lookup:
            holding = self._marks.keys() | self._near.keys()
            ranked.sort(key=lambda pair: pair[1] not in holding)
        return ranked

    def score(self, signs: MatchSigns, terms: str = "") -> float:
        weights = self._weights
        query = self._query
        n, day, marks, kind, speaker, category, mentions = signs
        words = self._words.get(n, 0.0)
        if n not in self._marks:  # a neighbour, whose length was not known
            words *= _need(marks >> LENGTH_SHIFT, weights.whole)
        if terms:
            pairs = self._score_pairs(n, f" {terms} ")
            length = marks >> LENGTH_SHIFT
            words += pairs * _concentration(length, weights.whole, weights.dilution)
        score = words * self._word_unit
        score += self._calls.get(n >> PAGE_BITS, 0.0) * self._call_unit
        score += self._near.get(n, 0.0)
        if query.days:
            said = date.fromordinal(day)
            score += weights.days * max(named.closeness(said) for named in query.days)
        if speaker in query.speakers:
            score *= weights.speaker
        if query.asks_when and marks & TIME:
            score *= weights.tells_time
        if marks & QUESTION:
            score *= weights.is_question
        if kind == "turn":
            return score
        age_days = self._today - day
        return score * _score_history(category, age_days, mentions, weights)

    def _score_pairs(self, n: int, padded: str) -> float:
        return sum(
            value for pair, value, held in self._pairs if n in held and pair in padded
        )


@lru_cache(maxsize=4_096)
def _concentration(length: int, whole: int, dilution: float) -> float:
    """What a word counts in a passage: 1 up to `whole` words, then less with each doubling."""
    return 1 / (1 + dilution * math.log(max(1.0, length / whole)))


def _need(length: int, whole: int) -> float:
    """How much a passage needs its neighbours to be understood: a long one stands alone."""
    return 1.0 if length <= whole else whole / length


def _rarity(count: int, size: int) -> float:
    return math.log(1 + (size - count + 0.5) / (count + 0.5))


def score_fact(fact: Fact | Gist, today: date) -> float:
    """The weight of a fact without a query."""
    age_days = (today - fact.last_seen_at.date()).days
    return _score_history(fact.category, age_days, fact.occurrence_count, WEIGHTS)


def _score_history(
    category: str, age_days: int, mentions: int, weights: Weights
) -> float:
    """Category, recency and frequency."""
    faded = 1 - math.pow(0.5, max(0, age_days) / weights.half_life_days)
    recency = 1 - weights.recent_share * faded
    counted = min(max(mentions, 1), weights.max_mentions)
    frequency = 1 + weights.repetition * math.log2(counted)
    return CATEGORY_WEIGHTS.get(category, 1.0) * recency * frequency
