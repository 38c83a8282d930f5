"""By what a known fact is taken up to be compared, told cheaply from its words as they stand.

Two facts can be the same, or one replace the other, only if they share an attribute or most of
the words that carry meaning. So most known facts need not be taken apart for a call. Rather one
too many than one too few: a test holds this against `compare`.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection

from aftercall.memory.claims import DISLIKE, SAME_WORD, Claim, look_up_again
from aftercall.memory.dedupe import ALIKE
from aftercall.memory.subject import CALLER
from aftercall.memory.wording import fold

_PIECE = re.compile(r"[^\W_]+")
_JOINED = re.compile(r"[.@+:'-][^\W_]")
_WHOLE = re.compile(r"[^\W_]+(?:[.@+:'-][^\W_]+)+")
PREFIX_LETTERS = 3  # letters of a word that stay when it is cut to its stem


class CandidateIndex:
    """Which facts of a memory a claim is to be compared with."""

    def __init__(self) -> None:
        self._by_start: dict[str, list[str]] = defaultdict(list)
        self._pieces: dict[str, list[str]] = {}
        self._words: dict[str, set[str]] = {}
        self._by_slot: dict[str, list[str]] = defaultdict(list)
        self._always: list[str] = []
        self._all: list[str] = []

    def add(self, fact_id: str, content: str, matching: str | None) -> None:
        """`matching` is the fact's subject and attribute."""
        self._all.append(fact_id)
        pieces = _loose_pieces(content)
        if pieces is None:
            self._always.append(fact_id)
            return
        self._pieces[fact_id] = pieces
        for start in {SAME_WORD.get(piece, piece)[:PREFIX_LETTERS] for piece in pieces}:
            self._by_start[start].append(fact_id)
        if matching:
            self._by_slot[_handle(matching)].append(fact_id)

    def add_secret(self, fact_id: str) -> None:
        """Its words are not to be kept about: it is compared with everything."""
        self._all.append(fact_id)
        self._always.append(fact_id)

    def find(self, claim: Claim) -> set[str]:
        """What says the same in the very same words is found by its identity, not here."""
        telling = [word for word in claim.words if _has_letters(word)]
        if len(telling) < bool(claim.words) or not all(map(_has_letters, claim.denied)):
            return set(self._all)
        found = {
            *self._always,
            *(self._by_slot.get(_handle(claim.matching), ()) if claim.matching else ()),
        }
        if telling:
            found |= self._that_hold(
                telling,
                math.ceil(ALIKE * len(claim.words)) - (len(claim.words) - len(telling)),
            )
        return (
            found | self._that_hold(claim.denied, len(claim.denied))
            if claim.denied
            else found
        )

    def _that_hold(self, words: Collection[str], least: int) -> set[str]:
        """Few share the beginnings of the words: only those are asked for the words themselves."""
        held = Counter[str]()
        for word in words:
            held.update(self._by_start.get(word[:PREFIX_LETTERS], ()))
        return {
            fact_id
            for fact_id, count in held.items()
            if count >= least and len(self._of(fact_id).intersection(words)) >= least
        }

    def _of(self, fact_id: str) -> set[str]:
        if fact_id not in self._words:
            self._words[fact_id] = {
                look_up_again(piece).stem for piece in self._pieces[fact_id]
            }
        return self._words[fact_id]


def _handle(matching: str) -> str:
    """Whether Ann is the caller's sister Ann is asked when they are compared: of others than
    the caller only the attribute tells.
    """
    subject, _, attribute = matching.partition("|")
    return matching if subject == str(CALLER) else attribute


def _loose_pieces(content: str) -> list[str] | None:
    """At least the words that its claim will hold; None where making it plain gives words
    another form.
    """
    text = content.lower() if content.isascii() else fold(content)
    if " dot " in text:
        return None
    words = _PIECE.findall(text)
    if "n't" in text:
        words += _PIECE.findall(text.replace("n't", " not"))
    if "nt" in text:
        words += [word.removesuffix("nt") for word in words if word.endswith("nt")]
    if not DISLIKE.words.isdisjoint(words):
        words.append("like")
    if _JOINED.search(text):
        words += _WHOLE.findall(text)
    return words


def _has_letters(word: str) -> bool:
    return word.isalpha() or any(letter.isalpha() for letter in word)
