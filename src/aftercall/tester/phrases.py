"""Words: scenario patterns, questions and what they ask for, likeness of sentences."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_SENTENCE = re.compile(r"[^.?!]+[.?!]*")
_ASKING = re.compile(
    r"^(?:and |so |okay,? |ok,? |well,? |great,? |sure,? |alright,? |thanks?(?: you)?,? )*"
    r"(?:what|when|where|who|which|why|how|can (?:i|you|we)|could (?:i|you|we)|may i|do you|does"
    r"|did you|would you|will you|is (?:that|this|there|it)|are you|have you"
    r"|please (?:tell|give|say|spell|provide|confirm|state)"
    r"|i(?:'ll| will)? need (?:your|to know)|tell me)\b"
)
_FIELDS: dict[str, str] = {
    "name": r"\b(?:(?:full|first|last|your|patient'?s?|caller'?s?) name|who am i speaking|who is "
    "(?:this|calling)|who's calling"
    r"|(?:may|can) i (?:have|get) your name|name please|spell (?:it|that|your))",
    "dob": r"\b(?:date of birth|birth ?date|birthday|d\.?o\.?b\.?|when were you born|born on)\b",
    "phone": r"\b(?:(?:phone|telephone|mobile|cell|contact|callback|call back) number"
    r"|number (?:to|can we|should we)? ?reach|best number)\b",
    "email": r"\be-?mail(?: address)?\b",
    "address": r"\b(?:home |street |mailing |billing )address\b",
    "zip": r"\b(?:zip|postal|post) ?code\b",
    "insurance": r"\b(?:insurance|member id|policy number|coverage)\b",
    "pharmacy": r"\bpharmacy\b",
    "account": r"\b(?:account|customer|order|reference|confirmation|member) (?:number|id)\b",
    "passcode": r"\b(?:pass ?code|pin|password|security (?:code|question|word))\b",
}


def word_set(words: str) -> frozenset[str]:
    """A table of words, written as text."""
    return frozenset(words.split())


_STOP_WORDS = word_set("""
    a an and are as at be but by can could do for from have i i'm i'll in is it it's me my of on
    or our please so that the then there this to was we will with would you you're your
""")


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("’", "'"))


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """`/…/` is a regular expression; else words, `|` for alternatives, `*` for up to six words."""
    if len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/"):
        return re.compile(pattern[1:-1], re.IGNORECASE)
    return re.compile(
        "|".join(_words_pattern(part) for part in pattern.split("|")), re.IGNORECASE
    )


def _words_pattern(part: str) -> str:
    pieces = [
        r"(?:\S+\s+){0,6}?" if piece == "*" else re.escape(piece)
        for piece in part.split()
    ]
    joined = ""
    for piece in pieces:
        joined += ("" if not joined or joined.endswith("?") else r"[\s,;:]+") + piece
    return rf"(?<!\w){joined}(?!\w)"


def find_any(patterns: Iterable[str], text: str) -> str | None:
    """The words of the first pattern found, or None."""
    plain = " ".join(text.replace("’", "'").split())
    for pattern in patterns:
        if found := compile_pattern(pattern).search(plain):
            return found.group(0)
    return None


def sentences_of(text: str) -> list[str]:
    return [
        part.strip()
        for part in _SENTENCE.findall(" ".join(text.split()))
        if words_of(part)
    ]


def is_question(sentence: str) -> bool:
    plain = " ".join(sentence.lower().replace("’", "'").split())
    return plain.endswith("?") or _ASKING.match(plain) is not None


def questions_of(text: str) -> list[str]:
    return [sentence for sentence in sentences_of(text) if is_question(sentence)]


def asked_fields(
    text: str, extra: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """The fields this text asks for, in order; `extra` adds fields and ways of asking."""
    found: list[tuple[int, str]] = []
    for question in questions_of(text):
        place = text.find(question)
        for name in {*_FIELDS, *(extra or {})}:
            at = _first_mention(name, question, (extra or {}).get(name, ()))
            if at is not None and all(name != other for _, other in found):
                found.append((place + at, name))
    return [name for _, name in sorted(found)]


def _first_mention(name: str, question: str, extra: Sequence[str]) -> int | None:
    places = [
        match.start()
        for pattern in extra
        if (match := compile_pattern(pattern).search(question))
    ]
    known = _FIELDS.get(name)
    if known and (match := re.search(known, question.lower().replace("’", "'"))):
        places.append(match.start())
    return min(places) if places else None


def content_words(text: str) -> list[str]:
    return [word for word in words_of(text) if word not in _STOP_WORDS]


def likeness(one: str, other: str) -> float:
    """0 to 1: the better of shared word pairs and the longest common sequence of words."""
    first, second = (
        content_words(one) or words_of(one),
        content_words(other) or words_of(other),
    )
    if not first or not second:
        return 0.0
    shared = _overlap(first, second)
    if min(len(first), len(second)) > 1:
        shared = _overlap(pairwise(first), pairwise(second))
    return max(shared, SequenceMatcher(None, first, second, autojunk=False).ratio())


def _overlap(one: Iterable[object], other: Iterable[object]) -> float:
    first, second = set(one), set(other)
    return len(first & second) / len(first | second)


def word_error_rate(meant: str, heard: str) -> float:
    """Wrong, missing and added words, as a share of the words meant."""
    words = len(words_of(meant))
    return (
        count_word_errors(meant, heard) / words
        if words
        else float(bool(words_of(heard)))
    )


def count_word_errors(meant: str, heard: str) -> int:
    """The edit distance between two sentences, in words."""
    reference, hypothesis = words_of(meant), words_of(heard)
    row = list(range(len(hypothesis) + 1))
    for number, word in enumerate(reference, 1):
        before, row[0] = row[0], number
        for place, other in enumerate(hypothesis, 1):
            cost = min(row[place] + 1, row[place - 1] + 1, before + (word != other))
            before, row[place] = row[place], cost
    return row[-1]
