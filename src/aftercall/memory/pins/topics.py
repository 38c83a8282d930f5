"""Finds topics without a model: the things that a call is about, and which of them come back.

A thing is a word in the position of a name that is not everyday talk. Secrets are removed first: a
sentence that holds one, or that memory would keep secret, is skipped. Topics are counted by
conversations: a word said twenty times in one call counts once.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import combinations

from aftercall.english.clauses import split_sentences
from aftercall.english.language import detect_language
from aftercall.english.words import clear_caches
from aftercall.memory.pins.everyday import (
    OPENERS,
    TOPIC_PREPOSITIONS,
    list_empty_terms,
    list_weak_terms,
)
from aftercall.memory.visibility import (
    REDACTION_CHAR,
    find_sensitive_topics,
    get_level,
    redact_turns,
)
from aftercall.memory.words import MAX_KEPT_WORDS, split_words, to_term
from aftercall.model.calls import Call
from aftercall.model.facts import Sentence, SpokenTopic
from aftercall.settings.sections import MemorySettings

MAX_SENTENCE_CHARS = 240
MAX_RUN_WORDS = 3
MAX_SENTENCES = 60
MIN_TERM_LETTERS = 3
MIN_SHARED_CONVERSATIONS = 2  # in which two terms share a sentence, to be one topic
MAX_TOPIC_TERMS = 6
MAX_NAME_WORDS = 6
MIN_OTHER_CALLERS = 2
COMMON_CALLERS_DIVISOR = 10
_ARTICLE = re.compile(r"^(?:the|an?|my|our|his|her|their) ", re.I)
_OWNER = re.compile(r"['’]s?$")
_CLAUSES = re.compile(r"(?<=[,;:])\s|\b(?:but|and|so)\b")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[.,;:!?…—–-]")
_SETTLED = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|got|it['’]?s|that['’]?s|all|now|finally|both"
    "|everything['’]?s?|['’]s|['’]ve|['’]re|"
    r"\w+['’]s)(?: (?:all|now|finally|been|just|already|completely|totally|fully|officially"
    "|at last))* "
    "(?:sorted|settled|solved|resolved|fixed|repaired|finished|completed|complete|closed|done"
    "|dealt with|taken care of|wrapped up|sold|"
    r"paid off|over and done|off the table|called off|gone through|arrived safely|"
    r"working (?:again|now|fine|perfectly)|back to normal|all set)\b"
    r"|\b(?:went|gone|came) through\b|\bworks (?:again|now|fine|perfectly)\b"
    r"|\b(?:i|we|they|he|she)(?:['’]ve| have)? (?:finally |just |already )?(?:sorted|settled"
    "|solved|resolved|fixed|finished|completed|"
    r"closed|sold|signed off) (?:it|that|this|the|my|our|on)\b",
    re.I,
)
_OVER = re.compile(
    r"\bno longer (?:a problem|an issue|needed|relevant|necessary|matters|interested|need)\b"
    r"|\byou can (?:close|drop|forget(?: about)?|cross|tick|strike|take) (?:it|that|this|the"
    r"|my|our)\b"
    r"|\bnothing (?:more|else|left) to (?:do|be done)\b",
    re.I,
)
# Denied, wished, asked, conditional or in the future: not settled.
_NOT_YET = re.compile(
    r"\b(?:not|never|isn['’]?t|aren['’]?t|wasn['’]?t|hasn['’]?t|haven['’]?t|won['’]?t"
    "|can['’]?t|until|till|unless|if|when|once|whether|want|"
    "wants|wanted|need|needs|would|could|can|should|must|please|hope|hopefully|hoping|to be"
    "|get|getting|still|almost|nearly|half|yet|will|"
    r"going to|gonna|soon|tomorrow|next|before|supposed|thought|said|says|promised|instead)\b",
    re.I,
)


@dataclass(frozen=True)
class _Word:
    """`term` is empty for a word that cannot be part of a name."""

    text: str
    term: str
    is_capital: bool


def read_topics(
    call: Call,
    settings: MemorySettings,
    *,
    named: Sequence[str] = (),
    own_names: Iterable[str] = (),
    confided: Sequence[str] = (),
) -> SpokenTopic:
    """`named` are topics from a reader, `own_names` the names of caller and agent, `confided` the
    words of this call that memory keeps secret.
    """
    try:
        return _read_topics(call, settings, named, own_names, confided)
    finally:
        clear_caches()


def _read_topics(
    call: Call,
    settings: MemorySettings,
    named: Sequence[str],
    own_names: Iterable[str],
    confided: Sequence[str],
) -> SpokenTopic:
    turns = redact_turns(call.turns, confided)
    by_caller = [turn for turn in turns if turn.speaker == "caller"]
    by_agent = [turn.text for turn in turns if turn.speaker == "agent"]
    titles = [title for title in named if not is_confidential(title, settings)]
    topics = _TopicCollector(
        own_terms=frozenset(iter_terms(" ".join(own_names))),
        titles=frozenset(iter_terms(" ".join(titles))),
        is_english=detect_language(turn.text for turn in by_caller) == "en",
    )
    for turn in by_caller:
        for sentence in split_sentences(turn.text):
            if REDACTION_CHAR not in sentence and not is_confidential(
                sentence, settings
            ):
                topics.add_sentence(sentence, turn.seq)
    return SpokenTopic(
        call_id=call.id,
        conversation=call.conversation,
        at=call.ended_at,
        terms=frozenset(topics.counts),
        central=topics.find_central(frozenset(iter_terms(" ".join(by_agent)))),
        settled=frozenset(topics.settled),
        said=tuple(topics.said[:MAX_SENTENCES]),
    )


@dataclass
class _TopicCollector:
    """The topics of a call so far."""

    own_terms: frozenset[str]
    titles: frozenset[str]
    is_english: bool
    said: list[Sentence] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    things: dict[str, int] = field(default_factory=dict)
    framed: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)

    def add_sentence(self, text: str, seq: int) -> None:
        words = self._split_words(text)
        found = [word.term for word in words if word.term]
        terms = tuple(dict.fromkeys(found))
        self.counts.update(found)
        runs = []
        for run, is_framed in _find_runs(words):
            runs.append(" ".join(word.text for word in run))
            for word in run:
                self.things.setdefault(word.term, seq)
                if is_framed or word.is_capital:
                    self.framed.add(word.term)
        for term in self.titles & set(terms):
            self.things.setdefault(term, seq)
        if terms:
            self.said.append(Sentence(text[:MAX_SENTENCE_CHARS], terms, tuple(runs)))
        for clause in find_settled_clauses(text):
            # "It's done" refers to what was named before.
            last = self.said[-1].terms if self.said else ()
            self.settled |= set(iter_terms(clause)) or set(terms) or set(last)

    def _split_words(self, text: str) -> list[_Word]:
        """In another language only the reader's titles are terms."""
        words = []
        for found in _WORD.findall(text):
            word = _strip_owner(found)
            term = _to_topic_term(word)
            if term in self.own_terms:
                term = ""
            if self.is_english or not term or term in self.titles:
                words.append(_Word(word, term, found[:1].isupper()))
        return words

    def find_central(self, echoed: frozenset[str]) -> frozenset[str]:
        """Things that were said twice, repeated by the agent, announced, or named first."""
        first = min(self.things.values(), default=0)
        emphasised = self.framed | self.titles | echoed
        return frozenset(
            term
            for term, seq in self.things.items()
            if self.counts[term] > 1 or term in emphasised or seq == first
        )


def is_confidential(text: str, settings: MemorySettings) -> bool:
    """Whether memory would keep a fact with these words secret."""
    topics = find_sensitive_topics(text)
    if any(get_level(topic, settings) == "secret" for topic in topics):
        return True
    words = set(split_words(text))
    return any(
        set(split_words(secret)) <= words for secret in settings.secret_words if secret
    )


def iter_terms(text: str) -> Iterator[str]:
    """Terms that could name a thing, in order."""
    for found in _WORD.findall(text):
        if term := _to_topic_term(_strip_owner(found)):
            yield term


def is_weak(term: str) -> bool:
    """Whether the word is no topic alone."""
    return term in list_weak_terms()


def _strip_owner(word: str) -> str:
    return word if word.isalpha() else _OWNER.sub("", word)


@lru_cache(maxsize=MAX_KEPT_WORDS)
def _to_topic_term(word: str) -> str:
    """Empty for everyday words, numbers, contractions and other alphabets."""
    folded = "".join(split_words(word)) if "'" not in word and "’" not in word else ""
    if len(folded) < MIN_TERM_LETTERS or not (folded.isascii() and folded.isalpha()):
        return ""
    term = to_term(folded)
    return "" if term in list_empty_terms() else term


def _find_runs(words: Sequence[_Word]) -> Iterator[tuple[tuple[_Word, ...], bool]]:
    """Adjacent words that name one thing, and whether "about" or the like stands before them."""
    at = 0
    while at < len(words):
        run = _read_run(words, at)
        if not run:
            at += 1
            continue
        before = [word.text.lower() for word in words[max(0, at - MAX_RUN_WORDS) : at]]
        if before and before[-1] in OPENERS:
            yield run, not TOPIC_PREPOSITIONS.isdisjoint(before[-2:])
        elif before and _is_within_sentence(before[-1]) and run[0].is_capital:
            yield tuple(word for word in run if word.is_capital), False
        at += len(run)


def _read_run(words: Sequence[_Word], at: int) -> tuple[_Word, ...]:
    end = at
    while end < len(words) and words[end].term and end - at < MAX_RUN_WORDS:
        end += 1
    return tuple(words[at:end])


def _is_within_sentence(before: str) -> bool:
    """Only there does a capital mark a name."""
    return before[:1].isalpha() or before == ","


def find_settled_clauses(sentence: str) -> list[str]:
    """The clauses that say that something is settled."""
    if "?" in sentence:
        return []
    clauses = _CLAUSES.split(sentence)
    return [
        clause
        for clause in clauses
        if _OVER.search(clause)
        or (_SETTLED.search(clause) and not _NOT_YET.search(clause))
    ]


@dataclass(frozen=True)
class Topic:
    """Terms that come back together, the anchor first; `since` the conversation that made it one
    ended.
    """

    terms: tuple[str, ...]
    since: datetime


def find_common_terms(others: Iterable[tuple[str, frozenset[str]]]) -> frozenset[str]:
    """Terms that a tenth of the other callers use, and at least two."""
    callers: dict[str, set[str]] = defaultdict(set)
    for caller, terms in others:
        callers[caller] |= terms
    counts = Counter(term for terms in callers.values() for term in terms)
    least = max(MIN_OTHER_CALLERS, len(callers) / COMMON_CALLERS_DIVISOR)
    return frozenset(term for term, count in counts.items() if count >= least)


def find_topics(
    spoken: Sequence[SpokenTopic],
    min_conversations: int,
    window: timedelta | None,
    common: frozenset[str],
) -> list[Topic]:
    """Topics of enough conversations in the window, central in half of them; oldest first."""
    if min_conversations < 1:
        return []
    recent = list(spoken)
    if window is not None and spoken:
        start = max(call.at for call in spoken) - window
        recent = [call for call in spoken if call.at >= start]
    held = _group_conversations(recent, lambda call: call.terms)
    central = _group_conversations(recent, lambda call: call.central)
    strong = {
        term
        for term, where in held.items()
        if len(where) >= min_conversations
        and len(central.get(term, ())) * 2 >= min_conversations
        and term not in common
        and not is_weak(term)
    }
    topics = []
    for group in _join(
        strong, recent, min(MIN_SHARED_CONVERSATIONS, min_conversations)
    ):
        terms = _sort_terms(group, held, recent)
        topics.append(
            Topic(terms, _find_since(held[terms[0]], recent, min_conversations))
        )
    return sorted(topics, key=lambda topic: (topic.since, topic.terms))


def _group_conversations(
    spoken: Iterable[SpokenTopic], terms: Callable[[SpokenTopic], frozenset[str]]
) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for call in spoken:
        for term in terms(call):
            found[term].add(call.conversation)
    return found


def _join(
    strong: set[str], spoken: Sequence[SpokenTopic], least: int
) -> list[set[str]]:
    """Terms that share sentences in several conversations are one topic."""
    shared: dict[tuple[str, str], set[str]] = defaultdict(set)
    for call in spoken:
        for sentence in call.said:
            for pair in combinations(sorted(strong & set(sentence.terms)), 2):
                shared[pair].add(call.conversation)
    groups = {term: {term} for term in strong}
    for (first, second), where in sorted(shared.items()):
        if len(where) >= least and groups[first] is not groups[second]:
            groups[first] |= groups[second]
            for term in groups[second]:
                groups[term] = groups[first]
    return list({id(group): group for group in groups.values()}.values())


def _sort_terms(
    group: set[str], held: dict[str, set[str]], spoken: Sequence[SpokenTopic]
) -> tuple[str, ...]:
    """By conversations, then by first mention. The first is the anchor; later calls keep it."""
    first: dict[str, int] = {}
    for call in spoken:
        for sentence in call.said:
            for term in sentence.terms:
                first.setdefault(term, len(first))
    ordered = sorted(
        group, key=lambda term: (-len(held[term]), first.get(term, 0), term)
    )
    return tuple(ordered[:MAX_TOPIC_TERMS])


def name_topic(
    group: tuple[str, ...], spoken: Sequence[SpokenTopic], named: Sequence[str] = ()
) -> str:
    """A short name from a reader; else the words that are adjacent most often with its terms."""
    own = set(group)
    for title in reversed(named):
        terms = set(iter_terms(title))
        if group[0] in terms and len(title.split()) <= MAX_NAME_WORDS:
            return _capitalise(" ".join(title.split()))
    seen: dict[str, set[str]] = defaultdict(set)
    for call in spoken:
        for sentence in call.said:
            for run in sentence.runs:
                if not own.isdisjoint(iter_terms(run)):
                    seen[run].add(call.conversation)
    if not seen:
        return _capitalise(group[0])

    def fitness(run: str) -> tuple[bool, int, int, int, str]:
        terms = set(iter_terms(run))
        return (
            len(seen[run]) >= MIN_SHARED_CONVERSATIONS,
            len(own & terms),
            -len(terms - own),
            len(seen[run]),
            run,
        )

    return _capitalise(max(seen, key=fitness))


def _find_since(where: set[str], spoken: Sequence[SpokenTopic], least: int) -> datetime:
    ends: dict[str, datetime] = {}
    for call in spoken:
        if call.conversation in where:
            ends.setdefault(call.conversation, call.at)
    return sorted(ends.values())[least - 1]


def _capitalise(title: str) -> str:
    title = _ARTICLE.sub("", title)
    return title[:1].upper() + title[1:]
