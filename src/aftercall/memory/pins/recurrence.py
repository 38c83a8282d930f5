"""Which topics come back: counted by conversations, so that saying a word twenty times in one
call counts once.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from aftercall.memory.pins.topics import is_weak, iter_terms
from aftercall.model.facts import SpokenTopic

MIN_SHARED_CONVERSATIONS = 2  # conversations in which two terms share a sentence, to be one topic
MAX_TOPIC_TERMS = 6
MAX_NAME_WORDS = 6  # words of a topic that a reader named
MIN_OTHER_CALLERS = 2
COMMON_CALLERS_DIVISOR = 10
_ARTICLE = re.compile(r"^(?:the|an?|my|our|his|her|their) ", re.I)


@dataclass(frozen=True)
class Topic:
    """Terms that come back together, the one it hangs on first; the end of the conversation
    that made it one.
    """

    terms: tuple[str, ...]
    since: datetime


def find_common_terms(others: Iterable[tuple[str, frozenset[str]]]) -> frozenset[str]:
    """Terms that other callers use as well, told from a sample of their calls: a tenth of them,
    and two at least.
    """
    callers: dict[str, set[str]] = defaultdict(set)
    for caller, terms in others:
        callers[caller] |= terms
    counts = Counter(term for terms in callers.values() for term in terms)
    return frozenset(
        term
        for term, count in counts.items()
        if count >= max(MIN_OTHER_CALLERS, len(callers) / COMMON_CALLERS_DIVISOR)
    )


def find_topics(
    spoken: Sequence[SpokenTopic],
    min_conversations: int,
    window: timedelta | None,
    common: frozenset[str],
) -> list[Topic]:
    """Topics of at least so many conversations within the window, central in half of them;
    oldest first.
    """
    if min_conversations < 1:
        return []
    recent = [
        call
        for call in spoken
        if window is None or call.at >= max(each.at for each in spoken) - window
    ]
    held, central = (
        _conversations(recent, lambda call: call.terms),
        _conversations(recent, lambda call: call.central),
    )
    strong = {
        term
        for term, where in held.items()
        if len(where) >= min_conversations
        and len(central.get(term, ())) * 2 >= min_conversations
        and term not in common
        and not is_weak(term)
    }
    groups = [
        _in_order(group, held, recent)
        for group in _join(strong, recent, min(MIN_SHARED_CONVERSATIONS, min_conversations))
    ]
    topics = [Topic(group, _since(held[group[0]], recent, min_conversations)) for group in groups]
    return sorted(topics, key=lambda topic: (topic.since, topic.terms))


def _conversations(
    spoken: Iterable[SpokenTopic], terms: Callable[[SpokenTopic], frozenset[str]]
) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for call in spoken:
        for term in terms(call):
            found[term].add(call.conversation)
    return found


def _join(strong: set[str], spoken: Sequence[SpokenTopic], least: int) -> list[set[str]]:
    """Terms that share sentences in several conversations are one topic."""
    shared: dict[tuple[str, str], set[str]] = defaultdict(set)
    for call in spoken:
        for sentence in call.said:
            present = sorted(strong & set(sentence.terms))
            for number, first in enumerate(present):
                for second in present[number + 1 :]:
                    shared[first, second].add(call.conversation)
    groups = {term: {term} for term in strong}
    for (first, second), where in sorted(shared.items()):
        if len(where) >= least and groups[first] is not groups[second]:
            groups[first] |= groups[second]
            for term in groups[second]:
                groups[term] = groups[first]
    return list({id(group): group for group in groups.values()}.values())


def _in_order(
    group: set[str], held: dict[str, set[str]], spoken: Sequence[SpokenTopic]
) -> tuple[str, ...]:
    """By conversations, then by how early it was named; the first is the anchor and stays the
    same when more calls come.
    """
    first: dict[str, int] = {}
    for number, term in enumerate(
        term for call in spoken for sentence in call.said for term in sentence.terms
    ):
        first.setdefault(term, number)
    return tuple(
        sorted(group, key=lambda term: (-len(held[term]), first.get(term, 0), term))[
            :MAX_TOPIC_TERMS
        ]
    )


def name_topic(
    group: tuple[str, ...], spoken: Sequence[SpokenTopic], named: Sequence[str] = ()
) -> str:
    """What a reader called it, if short; else the words that most often stand together around
    the anchor.
    """
    own = set(group)
    for title in reversed(named):
        terms = set(iter_terms(title))
        if group[0] in terms and len(title.split()) <= MAX_NAME_WORDS:
            return _capital(" ".join(title.split()))
    seen: dict[str, set[str]] = defaultdict(set)
    for call in spoken:
        for run in (run for sentence in call.said for run in sentence.runs):
            if own & set(iter_terms(run)):
                seen[run].add(call.conversation)
    if not seen:
        return _capital(group[0])

    def fitness(run: str) -> tuple[bool, int, int, int, str]:
        terms = set(iter_terms(run))
        return (
            len(seen[run]) >= MIN_SHARED_CONVERSATIONS,
            len(own & terms),
            -len(terms - own),
            len(seen[run]),
            run,
        )

    return _capital(max(seen, key=fitness))


def _since(where: set[str], spoken: Sequence[SpokenTopic], least: int) -> datetime:
    ends: dict[str, datetime] = {}
    for call in spoken:
        if call.conversation in where:
            ends.setdefault(call.conversation, call.at)
    return sorted(ends.values())[least - 1]


def _capital(title: str) -> str:
    title = _ARTICLE.sub("", title)
    return title[:1].upper() + title[1:]
