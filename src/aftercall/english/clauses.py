"""Turns cut into sentences and clauses, with and without punctuation."""

import itertools
import re
from dataclasses import dataclass

from aftercall.english.text import MASK, SENTENCE_ENDS, Plain, normalise
from aftercall.english.words import (
    compile_pattern,
    load_patterns,
    remember,
    stems,
    vocabulary,
    word_class,
)

_PATTERNS = load_patterns("aftercall.english", "clauses")
_DANGLES = _PATTERNS["dangles"]
_BREAKS_OFF = _PATTERNS["breaks_off"]
_STATES = _PATTERNS["states"]
MIN_PLAIN_WORDS = 4  # that say something without a telling one: "never call before 9"
POINTERS = frozenset(("it", "that", "this", "them", "those", "one", "all", "both"))
# Verbs that say nothing of what they are done to.
EMPTY_VERBS = stems(
    "put add log send make do get fix open book order change move write file take note block "
    "replace bug issue ticket down assign tell give call bring cancel forget leave scratch drop"
)

_PRONOUN = r"(?:i|we|he|she|it|they|you|there|that|this|my|our|nobody|somebody|someone|the \S+)"
_ASK = r"""
    (?:can|could|would|will|should|shall|may|might)
    (?:you|ye|i|we|they|somebody|someone|anybody|he|she)
    | (?:you can|please|one|2|3|4|do not) <deed>
    | (?<!to )remind me | (?:one|2|3|4) (?:remind|we|i) | do not (?:forget|bother|worry|touch)
    | (?:oh |wait )*no (?:actually|wait|do not|leave|forget|scratch|cancel|hold on|hang on)
    | actually (?:no|leave|forget|do not|scratch|cancel|wait)
    | let us | make (?:it|that) | never mind | scratch (?:that|the|all)
    | forget (?:the|about|it|that)
    | is there | are there | do you | are you | did you | have you | what (?:is|are|about|time|day)
    | how (?:much|about|long|many|do|can) | when (?:is|are|do|can) | where (?:is|are|do|can)
    | i (?:need|want|would|will|am|was|have|lost|do not|can not|did|prefer|forgot|got|moved|think
    |might)
    | we (?:need|want|would|will|are|have|do not|can not|decided)
    | my name is | thank you | that (?:is|will be) (?:all|it|everything) | no thank | yes please
    | (?:first|second|third|one more|another) thing | third (?:one|what|is) | if (?:i|we|you|it)
""".strip()
_DEED = (
    r"<deed> (?:me|us|my|our|the|a|an|it|that|this|them|him|her|somebody|someone|up|another|any"
    r"|some|in|out|off|down|your|\d\S*|more|new|extra"
    r"|[a-z]+ (?:a|the|on|for|to|know|about|that|i|he|she|we|it|they))"
)
_JOINTS = (
    r"and|but|so|then|because|or|(?<!please )also|plus|though|which|except|while|and then|and also"
    r"|but also|so then|and please|and so|and maybe|but yes|but no|and yes"
)
_JOINED = compile_pattern(rf"(?:{_JOINTS})(?= (?:{_PRONOUN}|{_ASK}|{_DEED})(?!\S))")
_OPENED = compile_pattern(rf"(?={_ASK}(?!\S))\S+")
# What a clause begins with where only a comma stands before it.
_AFTER_COMMA = compile_pattern(
    rf"(?:and |but |so |then |no |yes )?(?:{_ASK}|{_DEED}|{_PRONOUN})"
)
# After these, the next words belong to the same clause: "I think I need", "tell her I want".
_HOLDS = vocabulary(
    """
    think thought guess if when that what where who how why which because said says say know
    knows hope wish whenever than as until before after while and or but so tell her him them
    whether since unless like sure afraid glad sorry all everything thing things time way did do
    does you please let know mean yes not will would can could i we they he she always never
    usually often still wonder wondering
    """
)
_NAMES_SELF = re.compile(r"\bmy name is ")
_MAX_NAME = 2  # words: nothing else shows where a name ends without capitals

# A clause does not end with one of these.
_DANGLING = vocabulary(
    """
    go come try ahead a an the my our your at for of from with to by that
    """
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of a turn with one verb or one answer in it."""

    seq: int
    plain: Plain
    sentence: int
    """Which sentence of its turn this clause is part of."""
    is_question: bool = False

    @property
    def text(self) -> str:
        return self.plain.text


_ASKS = re.compile(
    r"(?:and |so |but |or |then |hi |hello |yes |ok )*"
    r"(?:what|where|when|who|why|how|which|is|are|do|does|did|can|could|would|will|has|have|should)"
    r" (?:i|you|we|they|he|she|it|there|that|this|the|my|your|are|is|do|does|much|many|long|about"
    r"|time|day|kind)\b"
)


def split_clauses(seq: int, text: str) -> list[Clause]:
    return [Clause(seq, *parts) for parts in _split_text(text)]


@remember
def _split_text(text: str) -> list[tuple[Plain, int, bool]]:
    """Each clause, the number of its sentence, and whether it asks."""
    return [
        (piece, number, piece.ends_with == "?" or _ASKS.match(piece.text) is not None)
        for number, sentence in enumerate(split_plain_sentences(normalise(text)))
        for piece in _clauses(sentence)
    ]


def split_sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, verbatim and with the mark that ends each."""
    plain = normalise(text)
    starts = [sentence.words[0].start for sentence in split_plain_sentences(plain)]
    if not starts:
        return (text.strip(),) if text.strip() else ()
    bounds = [0, *starts[1:], len(text)]
    pieces = (text[at:end].strip() for at, end in itertools.pairwise(bounds))
    return tuple(piece for piece in pieces if piece)


@remember
def split_plain_sentences(plain: Plain) -> list[Plain]:
    """The sentences of a turn, cut once for all who look at them."""
    ends = [
        at + 1
        for at, word in enumerate(plain.words)
        if word.stop and word.stop in SENTENCE_ENDS
    ]
    return _cut(plain, ends)


def _clauses(sentence: Plain) -> list[Plain]:
    """Cut where a joint or a comma opens a new clause, or where one begins without either."""
    cuts: set[int] = set()
    text = sentence.text
    words = sentence.words
    for pattern, holding in ((_JOINED, _DANGLING), (_OPENED, _HOLDS)):
        for match in pattern.finditer(text):
            at = sentence.index(match.start())
            if at and words[at - 1].norm not in holding:
                cuts.add(at)
    for at, word in enumerate(words[:-1], 1):
        if word.stop != "," or word.norm in _DANGLING:
            continue
        if _AFTER_COMMA.match(text, sentence.offset(at)):
            cuts.add(at)
    named = _find_end_of_name(sentence)
    if named and cuts.isdisjoint((named, named + 1, named + 2)):
        cuts.add(named)
    return _cut(sentence, sorted(cuts))


def _find_end_of_name(sentence: Plain) -> int:
    """ "My name is Ann Lee like to pay a bill": the place behind the name; 0 where none is."""
    match = _NAMES_SELF.search(sentence.text)
    if match is None:
        return 0
    at = sentence.index(match.end())
    said = (word.norm for word in sentence.words[at : at + _MAX_NAME])
    name = list(itertools.takewhile(lambda norm: norm not in word_class("stop"), said))
    return at + len(name) if name else 0


def _cut(plain: Plain, ends: list[int]) -> list[Plain]:
    bounds = [0, *ends, len(plain.words)]
    pieces = (plain.slice(at, end) for at, end in itertools.pairwise(bounds))
    return [piece for piece in pieces if piece.words]


def is_broken_off(text: str) -> bool:
    return bool(_BREAKS_OFF.fullmatch(text))


def stands_alone(text: str) -> bool:
    """Whether normal-form words have a subject, a verb and a value, understood without the call."""
    if _DANGLES.match(text) or is_broken_off(text) or MASK in text:
        return False
    if not _STATES.match(text):
        return False
    words = text.split()
    if POINTERS.isdisjoint(words):
        return bool(stems(text)) or len(words) >= MIN_PLAIN_WORDS
    return len(stems(text)) > 1
