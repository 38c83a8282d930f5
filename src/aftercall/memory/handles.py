"""By what a known fact is taken up to be compared, told cheaply from its words as they stand.

Two facts can be the same, or one replace the other, only if they share an attribute or most of the words that carry meaning.
So most known facts need not be taken apart for a call. Rather one too many than one too few: a test holds this against `compare`.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection

from aftercall.memory.claims import Claim, look_up_again
from aftercall.memory.dedupe import ALIKE
from aftercall.memory.wording import fold

_PIECE = re.compile(r"[^\W_]+")
_JOINED = re.compile(r"[.@+:'-][^\W_]")
_WHOLE = re.compile(r"[^\W_]+(?:[.@+:'-][^\W_]+)+")
_FEELS = frozenset(["hate", "hates", "dislike", "dislikes", "stand", "bear", "loathe", "loathes", "detest", "detests"])


class Handles:
    """Which facts of a memory a claim is to be compared with."""

    def __init__(self) -> None:
        self._by_word: dict[str, list[str]] = defaultdict(list)
        self._by_slot: dict[str, list[str]] = defaultdict(list)
        self._always: list[str] = []
        self._all: list[str] = []

    def add(self, fact_id: str, content: str, matching: str | None) -> None:
        """`matching` is the fact's subject and attribute."""
        self._all.append(fact_id)
        words = loose_words(content)
        if words is None:
            self._always.append(fact_id)
            return
        for word in words:
            self._by_word[word].append(fact_id)
        if matching:
            self._by_slot[matching].append(fact_id)

    def add_sealed(self, fact_id: str) -> None:
        """Its words are not to be kept about: it is compared with everything."""
        self._all.append(fact_id)
        self._always.append(fact_id)

    def find(self, claim: Claim) -> set[str]:
        """What says the same in the very same words is found by its identity, not here."""
        telling = [word for word in claim.words if _has_letters(word)]
        if len(telling) < bool(claim.words) or not all(map(_has_letters, claim.denied)):
            return set(self._all)
        found = {*self._always, *(self._by_slot.get(claim.matching, ()) if claim.matching else ())}
        if telling:
            found |= self._that_hold(telling, math.ceil(ALIKE * len(claim.words)) - (len(claim.words) - len(telling)))
        return found | self._that_hold(claim.denied, len(claim.denied)) if claim.denied else found

    def _that_hold(self, words: Collection[str], least: int) -> set[str]:
        held = Counter[str]()
        for word in words:
            held.update(self._by_word.get(word, ()))
        return {fact_id for fact_id, count in held.items() if count >= least}


def loose_words(content: str) -> set[str] | None:
    """At least the stems that its claim will hold; None where making it plain gives words another form."""
    text = content.lower() if content.isascii() else fold(content)
    if " dot " in text:
        return None
    words = _PIECE.findall(text)
    if "nt" in text or "n't" in text:
        words += [word.removesuffix("nt") for word in words if word.endswith("nt")] + _PIECE.findall(text.replace("n't", " not"))
    if not _FEELS.isdisjoint(words):
        words.append("like")
    if _JOINED.search(text):
        words += _WHOLE.findall(text)
    return {look_up_again(word).stem for word in words}


def _has_letters(word: str) -> bool:
    return any(letter.isalpha() for letter in word)
