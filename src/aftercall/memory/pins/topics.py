"""What one call spoke of, without a model: things that the caller named, and which of them the call was about.

A thing is a word that stands where names of things stand, and that is not everyday talk. Secrets are gone before anything is
looked at: a sentence that holds one, or is of a kind that memory keeps secret, is not looked at at all.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from aftercall.llm.rules.language import language_of
from aftercall.llm.rules.memo import forget
from aftercall.llm.rules.sentences import split_sentences
from aftercall.memory.pins.everyday import EMPTY, FRAMES, OPENERS, WEAK
from aftercall.memory.pins.settling import settled_parts
from aftercall.memory.veil import veil_turns
from aftercall.memory.visibility import BLOT, DEFAULTS, topics_of
from aftercall.memory.words import split_words, to_term
from aftercall.model.calls import Call
from aftercall.model.pins import Sentence, Spoken
from aftercall.settings import MemorySettings

LONGEST_TEXT = 240
LONGEST_RUN = 3
MOST_SENTENCES = 60
LEAST_LETTERS = 3
_OWNER = re.compile(r"['’]s?$")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[.,;:!?…—–-]")


@dataclass(frozen=True)
class _Word:
    """`term` is empty for what can be no part of a name."""

    text: str
    term: str
    is_capital: bool


def read_topics(
    call: Call, settings: MemorySettings, *, named: Sequence[str] = (), own: Iterable[str] = (), confided: Sequence[str] = ()
) -> Spoken:
    """`named` are topics that a reader gave, `own` names of caller and agent, `confided` what memory holds as this call's secrets."""
    try:
        return _read(call, settings, named, own, confided)
    finally:
        forget()


def _read(call: Call, settings: MemorySettings, named: Sequence[str], own: Iterable[str], confided: Sequence[str]) -> Spoken:
    turns = veil_turns(call.turns, confided)
    spoken = [turn for turn in turns if turn.speaker == "caller"]
    is_english = language_of(turn.text for turn in spoken) == "en"
    ours = frozenset(terms_of(" ".join(own)))
    titles = frozenset(terms_of(" ".join(title for title in named if not is_confidential(title, settings))))
    heard = _Hearing(ours, titles, is_english)
    for turn in spoken:
        for sentence in split_sentences(turn.text):
            if BLOT not in sentence and not is_confidential(sentence, settings):
                heard.take(sentence, turn.seq)
    echoed = frozenset(terms_of(" ".join(turn.text for turn in turns if turn.speaker == "agent")))
    said = tuple(heard.said[:MOST_SENTENCES])
    return Spoken(call.id, call.conversation, call.ended_at, frozenset(heard.counts), heard.central(echoed), frozenset(heard.settled), said)


@dataclass
class _Hearing:
    """What was heard of a call so far."""

    ours: frozenset[str]
    titles: frozenset[str]
    is_english: bool
    said: list[Sentence] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    things: dict[str, int] = field(default_factory=dict)
    framed: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)

    def take(self, text: str, seq: int) -> None:
        words = [word for word in _words(text, self.ours) if self.is_english or not word.term or word.term in self.titles]
        terms = tuple(dict.fromkeys(word.term for word in words if word.term))
        self.counts.update(word.term for word in words if word.term)
        runs = list(_runs(words))
        for term in (*(word.term for run, _ in runs for word in run), *(self.titles & set(terms))):
            self.things.setdefault(term, seq)
        self.framed |= {word.term for run, is_framed in runs for word in run if is_framed or word.is_capital}
        if terms:
            self.said.append(Sentence(text[:LONGEST_TEXT], terms, tuple(" ".join(word.text for word in run) for run, _ in runs)))
        for part in settled_parts(text):  # "it's done" is said of what was named before
            self.settled |= set(terms_of(part)) or set(terms) or set(self.said[-1].terms if self.said else ())

    def central(self, echoed: frozenset[str]) -> frozenset[str]:
        """Things said twice, taken up by the agent, announced, asked for; and what the caller began with."""
        first = min(self.things.values(), default=0)
        weighty = self.framed | self.titles | echoed
        return frozenset(term for term, seq in self.things.items() if self.counts[term] > 1 or term in weighty or seq == first)


def is_confidential(text: str, settings: MemorySettings) -> bool:
    """Whether memory would keep a fact in these words secret."""
    levels = {settings.visibility.get(topic) or DEFAULTS.get(topic, "shared") for topic in topics_of(text)}
    words = set(split_words(text))
    return "secret" in levels or any(set(split_words(secret)) <= words for secret in settings.secret_words if secret)


def terms_of(text: str) -> Iterator[str]:
    """Terms that could name a thing, in order."""
    return (term for found in _WORD.findall(text) if (term := _term(_bare(found))))


def is_weak(term: str) -> bool:
    """Whether the word is no topic by itself."""
    return term in WEAK


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
    if len(folded) < LEAST_LETTERS or not (folded.isascii() and folded.isalpha()):
        return ""
    term = to_term(folded)
    return "" if term in EMPTY else term


def _runs(words: Sequence[_Word]) -> Iterator[tuple[tuple[_Word, ...], bool]]:
    """Words side by side that name one thing, and whether a frame says that it is what the call is about."""
    at = 0
    while at < len(words):
        run = _run_from(words, at)
        if not run:
            at += 1
            continue
        before = [word.text.lower() for word in words[max(0, at - LONGEST_RUN) : at]]
        is_opened = bool(before) and before[-1] in OPENERS
        is_framed = is_opened and (before[-1] in FRAMES or bool(set(before[-2:-1]) & FRAMES))
        if is_opened:
            yield run, is_framed
        elif before and _is_within(before[-1]) and run[0].is_capital:
            yield tuple(word for word in run if word.is_capital), is_framed
        at += len(run)


def _run_from(words: Sequence[_Word], at: int) -> tuple[_Word, ...]:
    end = at
    while end < len(words) and words[end].term and end - at < LONGEST_RUN:
        end += 1
    return tuple(words[at:end])


def _is_within(before: str) -> bool:
    """A capital says something only inside a sentence."""
    return before[:1].isalpha() or before == ","
