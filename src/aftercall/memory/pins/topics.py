"""What one call spoke of, without a model: things that the caller named, and which of them the
call was about.

A thing is a word that stands where names of things stand, and that is not everyday talk.
Secrets are gone before anything is looked at: a sentence that holds one, or is of a kind that
memory keeps secret, is not looked at at all.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from aftercall.llm.rules.language import detect_language
from aftercall.llm.rules.memo import clear_caches
from aftercall.llm.rules.sentences import split_sentences
from aftercall.memory.pins.everyday import EMPTY_TERMS, OPENERS, TOPIC_PREPOSITIONS, WEAK_TERMS
from aftercall.memory.visibility import (
    DEFAULT_VISIBILITY,
    REDACTION_CHAR,
    find_sensitive_topics,
    redact_turns,
)
from aftercall.memory.words import split_words, to_term
from aftercall.model.calls import Call
from aftercall.model.facts import Sentence, SpokenTopic
from aftercall.settings.sections import MemorySettings

MAX_SENTENCE_CHARS = 240
MAX_RUN_WORDS = 3
MAX_SENTENCES = 60
MIN_TERM_LETTERS = 3
_OWNER = re.compile(r"['’]s?$")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[.,;:!?…—–-]")


@dataclass(frozen=True)
class _Word:
    """`term` is empty for what can be no part of a name."""

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
    """`named` are topics that a reader gave, `own` names of caller and agent, `confided` what
    memory holds as this call's secrets.
    """
    try:
        return _read(call, settings, named, own_names, confided)
    finally:
        clear_caches()


def _read(
    call: Call,
    settings: MemorySettings,
    named: Sequence[str],
    own: Iterable[str],
    confided: Sequence[str],
) -> SpokenTopic:
    turns = redact_turns(call.turns, confided)
    spoken = [turn for turn in turns if turn.speaker == "caller"]
    is_english = detect_language(turn.text for turn in spoken) == "en"
    ours = frozenset(iter_terms(" ".join(own)))
    titles = frozenset(
        iter_terms(" ".join(title for title in named if not is_confidential(title, settings)))
    )
    heard = _TopicCollector(ours, titles, is_english)
    for turn in spoken:
        for sentence in split_sentences(turn.text):
            if REDACTION_CHAR not in sentence and not is_confidential(sentence, settings):
                heard.add_sentence(sentence, turn.seq)
    echoed = frozenset(iter_terms(" ".join(turn.text for turn in turns if turn.speaker == "agent")))
    said = tuple(heard.said[:MAX_SENTENCES])
    return SpokenTopic(
        call.id,
        call.conversation,
        call.ended_at,
        frozenset(heard.counts),
        heard.find_central(echoed),
        frozenset(heard.settled),
        said,
    )


@dataclass
class _TopicCollector:
    """What was heard of a call so far."""

    own_terms: frozenset[str]
    titles: frozenset[str]
    is_english: bool
    said: list[Sentence] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    things: dict[str, int] = field(default_factory=dict)
    framed: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)

    def add_sentence(self, text: str, seq: int) -> None:
        words = [
            word
            for word in _words(text, self.own_terms)
            if self.is_english or not word.term or word.term in self.titles
        ]
        terms = tuple(dict.fromkeys(word.term for word in words if word.term))
        self.counts.update(word.term for word in words if word.term)
        runs = list(_runs(words))
        for term in (*(word.term for run, _ in runs for word in run), *(self.titles & set(terms))):
            self.things.setdefault(term, seq)
        self.framed |= {
            word.term for run, is_framed in runs for word in run if is_framed or word.is_capital
        }
        if terms:
            self.said.append(
                Sentence(
                    text[:MAX_SENTENCE_CHARS],
                    terms,
                    tuple(" ".join(word.text for word in run) for run, _ in runs),
                )
            )
        for part in find_settled_clauses(text):  # "it's done" is said of what was named before
            self.settled |= (
                set(iter_terms(part)) or set(terms) or set(self.said[-1].terms if self.said else ())
            )

    def find_central(self, echoed: frozenset[str]) -> frozenset[str]:
        """Things said twice, taken up by the agent, announced, asked for; and what the caller
        began with.
        """
        first = min(self.things.values(), default=0)
        weighty = self.framed | self.titles | echoed
        return frozenset(
            term
            for term, seq in self.things.items()
            if self.counts[term] > 1 or term in weighty or seq == first
        )


def is_confidential(text: str, settings: MemorySettings) -> bool:
    """Whether memory would keep a fact in these words secret."""
    levels = {
        settings.visibility.get(topic) or DEFAULT_VISIBILITY.get(topic, "shared")
        for topic in find_sensitive_topics(text)
    }
    words = set(split_words(text))
    return "secret" in levels or any(
        set(split_words(secret)) <= words for secret in settings.secret_words if secret
    )


def iter_terms(text: str) -> Iterator[str]:
    """Terms that could name a thing, in order."""
    return (term for found in _WORD.findall(text) if (term := _term(_bare(found))))


def is_weak(term: str) -> bool:
    """Whether the word is no topic by itself."""
    return term in WEAK_TERMS


def _words(text: str, ours: frozenset[str]) -> Iterator[_Word]:
    for found in _WORD.findall(text):
        plain = _bare(found)
        term = _term(plain)
        yield _Word(plain, "" if term in ours else term, found[:1].isupper())


def _bare(word: str) -> str:
    return word if word.isalpha() else _OWNER.sub("", word)


@lru_cache(maxsize=16_384)
def _term(word: str) -> str:
    """Empty for what can name nothing: everyday words, numbers, contractions, other alphabets."""
    folded = "".join(split_words(word)) if "'" not in word and "’" not in word else ""
    if len(folded) < MIN_TERM_LETTERS or not (folded.isascii() and folded.isalpha()):
        return ""
    term = to_term(folded)
    return "" if term in EMPTY_TERMS else term


def _runs(words: Sequence[_Word]) -> Iterator[tuple[tuple[_Word, ...], bool]]:
    """Words side by side that name one thing, and whether a frame says that it is what the call
    is about.
    """
    at = 0
    while at < len(words):
        run = _run_from(words, at)
        if not run:
            at += 1
            continue
        before = [word.text.lower() for word in words[max(0, at - MAX_RUN_WORDS) : at]]
        is_opened = bool(before) and before[-1] in OPENERS
        is_framed = is_opened and (
            before[-1] in TOPIC_PREPOSITIONS or bool(set(before[-2:-1]) & TOPIC_PREPOSITIONS)
        )
        if is_opened:
            yield run, is_framed
        elif before and _is_within(before[-1]) and run[0].is_capital:
            yield tuple(word for word in run if word.is_capital), is_framed
        at += len(run)


def _run_from(words: Sequence[_Word], at: int) -> tuple[_Word, ...]:
    end = at
    while end < len(words) and words[end].term and end - at < MAX_RUN_WORDS:
        end += 1
    return tuple(words[at:end])


def _is_within(before: str) -> bool:
    """A capital says something only inside a sentence."""
    return before[:1].isalpha() or before == ","


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
# What keeps it from being so: denied, wished, asked, conditional, to come.
_NOT_YET = re.compile(
    r"\b(?:not|never|isn['’]?t|aren['’]?t|wasn['’]?t|hasn['’]?t|haven['’]?t|won['’]?t"
    "|can['’]?t|until|till|unless|if|when|once|whether|want|"
    "wants|wanted|need|needs|would|could|can|should|must|please|hope|hopefully|hoping|to be"
    "|get|getting|still|almost|nearly|half|yet|will|"
    r"going to|gonna|soon|tomorrow|next|before|supposed|thought|said|says|promised|instead)\b",
    re.I,
)


_CLAUSES = re.compile(r"(?<=[,;:])\s|\b(?:but|and|so)\b")


def find_settled_clauses(sentence: str) -> list[str]:
    """The clauses that say so; the others of the sentence may say otherwise of something else."""
    if "?" in sentence:
        return []
    clauses = _CLAUSES.split(sentence)
    return [
        clause
        for clause in clauses
        if _OVER.search(clause) or (_SETTLED.search(clause) and not _NOT_YET.search(clause))
    ]
