"""The facts that a memory knows: their outlines, and which of them a claim is compared with.

Most facts of a memory need not be taken apart for a call, however many there are: only those with
the claim's attribute, and those that share most words with it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from aftercall.english.words import vocabulary
from aftercall.errors import SecretUnreadable
from aftercall.memory.claims import (
    DAY_WORDS,
    EMPTY_WORDS,
    SAME_WORD,
    Claim,
    look_up_again,
    read_claim,
    read_secret_claim,
)
from aftercall.memory.subject import CALLER
from aftercall.memory.wording import COUNTED, SPEAKERS
from aftercall.model.facts import Fact

MAX_COMPARED = 100  # facts that share words with a claim, the likest first
SHARED = 0.7  # of the words of the shorter one
START_LETTERS = 3  # of a word; they stay when it is stemmed
_DISLIKES = vocabulary(
    "hate hates dislike dislikes loathe loathes detest detests stand bear"
)
_ENDINGS = vocabulary("s m d ll re ve t")
_NO_WORDS = EMPTY_WORDS | DAY_WORDS | COUNTED | SPEAKERS | _ENDINGS
_WORD = re.compile(r"[^\W\d_][^\W_]*")
_PIECE = re.compile(r"[^\W_]+")
_NOT = re.compile(
    r"n['’]t\b|\b(?:do|does|did|is|are|was|ca|wo|would|could|should|have|has)nt\b"
)


class FactOutline(NamedTuple):
    """The columns of a known fact that tell whether it must be compared."""

    id: str
    content: str
    visibility: str
    is_active: bool
    identity: str
    matching: str | None
    dispute: str | None


class CandidateIndex:
    """What says the same in the very same words is found by its identity, not here.

    Words are indexed by their beginnings: to stem every word of a memory takes longer than the rest
    of a comparison.
    """

    def __init__(self) -> None:
        self._by_start: dict[str, list[str]] = defaultdict(list)
        self._by_attribute: dict[str, list[str]] = defaultdict(list)
        self._pieces: dict[str, set[str]] = {}
        self._stems: dict[str, set[str]] = {}
        self._always: list[str] = []

    def add(self, known: FactOutline) -> None:
        if known.visibility == "secret":
            # Its words are not kept: it is compared with everything.
            self._always.append(known.id)
            return
        text = known.content.lower()
        if "n" in text:
            text = _NOT.sub("", text)
        pieces = set(_WORD.findall(text)) - _NO_WORDS
        if not _DISLIKES.isdisjoint(pieces):
            pieces.add("like")
        self._pieces[known.id] = pieces
        if not pieces:
            self._always.append(known.id)
        for start in {_find_start(piece) for piece in pieces}:
            self._by_start[start].append(known.id)
        if known.matching:
            self._by_attribute[_find_handle(known.matching)].append(known.id)

    def find(self, claim: Claim) -> set[str]:
        if not any(map(_has_letter, claim.words)):
            # Figures alone: they may be known in words.
            return {*self._pieces, *self._always}
        told = claim.words | claim.names | claim.denied
        words = set(filter(_has_letter, _split(told)))
        # What hints at a change may name only the value that is known.
        share = 0.0 if claim.hints else SHARED
        found = set(self._list_likest(words, share))
        if claim.matching:
            found.update(self._by_attribute.get(_find_handle(claim.matching), ()))
        return found.union(self._always)

    def _list_likest(self, words: set[str], share: float) -> Iterator[str]:
        for fact_id, count in self.count_shared(words).most_common(MAX_COMPARED):
            least = share * min(len(words), len(self._pieces[fact_id]))
            # Few share the beginnings of the words: only those are asked for the words themselves.
            if count >= least and len(words & self._get_stems(fact_id)) >= least:
                yield fact_id

    def count_shared(self, words: Iterable[str]) -> Counter[str]:
        """How many words with the beginning of one of these each fact holds."""
        starts = {_find_start(word) for word in words}
        return Counter(
            fact_id for start in starts for fact_id in self._by_start.get(start, ())
        )

    def holds(self, fact_id: str, words: Collection[str]) -> bool:
        """Whether a fact holds all of these words; they are stems."""
        return self._get_stems(fact_id).issuperset(words)

    def _get_stems(self, fact_id: str) -> set[str]:
        if fact_id not in self._stems:
            pieces = self._pieces[fact_id]
            self._stems[fact_id] = {look_up_again(piece).stem for piece in pieces}
        return self._stems[fact_id]


class KnownFacts:
    """Whole facts are fetched only to be compared."""

    def __init__(
        self,
        outlines: Iterable[FactOutline],
        fetch: Callable[[Collection[str]], Iterable[Fact]],
        open_secret: Callable[[str], str],
    ) -> None:
        """`outlines` are of every fact in the memory; `fetch` reads whole facts by their ids."""
        self.facts: dict[str, Fact] = {}
        self.by_identity: dict[str, str] = {}
        self.retired_by_identity: dict[str, set[str]] = defaultdict(set)
        self.disputes: dict[str, set[str]] = defaultdict(set)
        self._fetch_facts = fetch
        self._open_secret = open_secret
        self._ids: set[str] = set()
        self._claims: dict[str, Claim | None] = {}
        # Facts of this call have a separate index, so that a claim is looked up only once among
        # the known ones.
        self._index = CandidateIndex()
        self._new_index = CandidateIndex()
        self._found: dict[int, tuple[Claim, set[str]]] = {}
        for outline in outlines:
            self._add_outline(outline, self._index)

    def add(self, fact: Fact, claim: Claim) -> None:
        self.facts[fact.id] = fact
        self._claims[fact.id] = claim
        outline = FactOutline(*(getattr(fact, name) for name in FactOutline._fields))
        self._add_outline(outline, self._new_index)

    def _add_outline(self, known: FactOutline, index: CandidateIndex) -> None:
        self._ids.add(known.id)
        if known.dispute:
            self.disputes[known.dispute].add(known.id)
        if known.is_active:
            self.by_identity[known.identity] = known.id
        else:
            self.retired_by_identity[known.identity].add(known.id)
        index.add(known)

    def find(self, fact_id: str | None) -> Fact | None:
        return (
            self.get(fact_id) if fact_id is not None and fact_id in self._ids else None
        )

    def get(self, fact_id: str) -> Fact:
        self.fetch((fact_id,))
        return self.facts[fact_id]

    def fetch(self, fact_ids: Iterable[str]) -> None:
        wanted = [one for one in fact_ids if one in self._ids and one not in self.facts]
        if wanted:
            self.facts.update((fact.id, fact) for fact in self._fetch_facts(wanted))

    def find_candidates(self, claim: Claim) -> set[str]:
        """Among the facts that were known before this call."""
        if id(claim) not in self._found:
            self._found[id(claim)] = claim, self._index.find(claim)
        return self._found[id(claim)][1]

    def list_near(self, claim: Claim, identity: str) -> list[tuple[str, Claim]]:
        """Facts that may be the same or replaced, retired ones of the same identity too."""
        ids = self.find_candidates(claim) | self._new_index.find(claim)
        ids |= self.retired_by_identity.get(identity, set())
        self.fetch(ids)
        claims = [(fact_id, self.get_claim(fact_id)) for fact_id in sorted(ids)]
        return [(fact_id, claim) for fact_id, claim in claims if claim is not None]

    def list_mentions(self, words: Collection[str]) -> list[tuple[str, Claim]]:
        """Facts that hold all of these words."""
        ids = [
            fact_id
            for index in (self._index, self._new_index)
            for fact_id in index.count_shared(words)
            if index.holds(fact_id, words)
        ][:MAX_COMPARED]
        self.fetch(ids)
        claims = [(fact_id, self.get_claim(fact_id)) for fact_id in ids]
        return [(fact_id, claim) for fact_id, claim in claims if claim is not None]

    def get_claim(self, fact_id: str) -> Claim | None:
        """None for a secret that was sealed with another key: it is compared with nothing."""
        if fact_id not in self._claims:
            self._claims[fact_id] = self._read_claim(self.facts[fact_id])
        return self._claims[fact_id]

    def _read_claim(self, fact: Fact) -> Claim | None:
        if not fact.is_secret:
            return read_claim(fact.content)
        try:
            return read_secret_claim(self._open_secret(fact.content))
        except SecretUnreadable:
            return None


def _has_letter(word: str) -> bool:
    return any(map(str.isalpha, word))


def _split(words: Iterable[str]) -> Iterator[str]:
    """The stems of what may be written apart: "jean-luc", "bill@example.com"."""
    for word in words:
        if word.isalnum():
            yield word
        else:
            yield from (look_up_again(part).stem for part in _PIECE.findall(word))


def _find_start(word: str) -> str:
    word = SAME_WORD.get(word, word)
    if len(word) <= START_LETTERS + 1:  # its end may be an ending: "bus"
        word = look_up_again(word).stem
    return word[:START_LETTERS]


def _find_handle(matching: str) -> str:
    """Whether Ann is the caller's sister Ann is asked when they are compared: of others than the
    caller only the attribute tells.
    """
    subject, _, attribute = matching.partition("|")
    return matching if subject == str(CALLER) else attribute
