"""The facts that a memory knows: their outlines, and which of them a claim is compared with.

Most facts of a memory need not be taken apart for a call, however many there are: only those with
the claim's attribute, and those that share most words with it. Their words are the terms that are
indexed for search.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from aftercall.english.words import vocabulary
from aftercall.errors import NotFound, SecretUnreadable
from aftercall.memory.claims import (
    DAY_WORDS,
    EMPTY_WORDS,
    SAME_WORD,
    Claim,
    read_claim,
    read_secret_claim,
)
from aftercall.memory.subject import CALLER
from aftercall.memory.words import COUNTED, SPEAKERS, make_term, to_terms
from aftercall.model.facts import Fact

MAX_COMPARED = 100  # facts that share words with a claim, the likest first
SHARED = 0.7  # of the words of the shorter one
_DISLIKES = frozenset(
    map(make_term, ("hate", "dislike", "loathe", "detest", "stand", "bear"))
)
_ENDINGS = vocabulary("s m d ll re ve t don doesn didn isn aren wasn haven hasn shan")
_NO_TERMS = frozenset(
    map(make_term, EMPTY_WORDS | DAY_WORDS | COUNTED | SPEAKERS | _ENDINGS)
) - {make_term("use")}  # "used" says nothing, "use" does
_SAME_TERM = {make_term(form): make_term(word) for form, word in SAME_WORD.items()}


class FactOutline(NamedTuple):
    """What of a known fact tells whether it must be compared. A secret has no `terms`."""

    id: str
    is_active: bool
    identity: str
    matching: str | None
    dispute: str | None
    terms: str | None


def outline_fact(fact: Fact) -> FactOutline:
    return FactOutline(
        id=fact.id,
        is_active=fact.is_active,
        identity=fact.identity,
        matching=fact.matching,
        dispute=fact.dispute,
        terms=None if fact.is_secret else to_terms(fact.content),
    )


class CandidateIndex:
    """What says the same in the very same words is found by its identity, not here."""

    def __init__(self) -> None:
        self._by_term: dict[str, list[str]] = defaultdict(list)
        self._by_attribute: dict[str, list[str]] = defaultdict(list)
        self._lengths: dict[str, int] = {}
        self._always: list[str] = []

    def add(self, known: FactOutline) -> None:
        terms = _read_terms(known.terms or "")
        self._lengths[known.id] = len(terms)
        if not terms:
            self._always.append(known.id)
        for term in terms:
            self._by_term[term].append(known.id)
        if known.matching and known.terms is not None:
            self._by_attribute[_find_handle(known.matching)].append(known.id)

    def find(self, claim: Claim) -> set[str]:
        if not _split(claim.words):  # figures alone: they may be known in words
            return set(self._lengths)
        terms = _split(claim.words | claim.names | claim.denied)
        # What hints at a change may name only the value that is known.
        share = 0.0 if claim.hints else SHARED
        found = {
            fact_id
            for fact_id, count in self._count(terms).most_common(MAX_COMPARED)
            if count >= share * min(len(terms), self._lengths[fact_id])
        }
        if claim.matching:
            found.update(self._by_attribute.get(_find_handle(claim.matching), ()))
        return found.union(self._always)

    def list_holding(self, words: Collection[str]) -> list[str]:
        """The facts that hold all of these words."""
        shared = self._count(_split(words)).items()
        return [fact_id for fact_id, count in shared if count == len(words)]

    def _count(self, terms: Iterable[str]) -> Counter[str]:
        """How many of these terms each fact holds."""
        return Counter(one for term in terms for one in self._by_term.get(term, ()))


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
        self._index = CandidateIndex()
        for outline in outlines:
            self._add_outline(outline)

    def add(self, fact: Fact, claim: Claim) -> None:
        self.facts[fact.id] = fact
        self._claims[fact.id] = claim
        self._add_outline(outline_fact(fact))

    def _add_outline(self, known: FactOutline) -> None:
        self._ids.add(known.id)
        if known.dispute:
            self.disputes[known.dispute].add(known.id)
        if known.is_active:
            self.by_identity[known.identity] = known.id
        else:
            self.retired_by_identity[known.identity].add(known.id)
        self._index.add(known)

    def find(self, fact_id: str | None) -> Fact | None:
        return (
            self.get(fact_id) if fact_id is not None and fact_id in self._ids else None
        )

    def require(self, fact_id: str) -> Fact:
        fact = self.find(fact_id)
        if fact is None:
            raise NotFound(f"there is no fact {fact_id}")
        return fact

    def list_said(self, identity: str) -> list[Fact]:
        """The facts that say this, one that holds first."""
        active = self.by_identity.get(identity)
        retired = self.retired_by_identity.get(identity, set())
        ids = dict.fromkeys((active, *sorted(retired)))
        return [fact for fact in map(self.find, ids) if fact]

    def list_disputed(self, fact: Fact) -> set[str]:
        """The facts of its dispute, itself among them."""
        return set(self.disputes[fact.dispute]) if fact.dispute else set()

    def get(self, fact_id: str) -> Fact:
        self.fetch((fact_id,))
        return self.facts[fact_id]

    def fetch(self, fact_ids: Iterable[str]) -> None:
        wanted = [one for one in fact_ids if one in self._ids and one not in self.facts]
        if wanted:
            self.facts.update((fact.id, fact) for fact in self._fetch_facts(wanted))

    def find_candidates(self, claim: Claim) -> set[str]:
        return self._index.find(claim)

    def list_near(self, claim: Claim, identity: str) -> list[tuple[str, Claim]]:
        """Facts that may be the same or replaced, retired ones of the same identity too."""
        near = self.find_candidates(claim)
        return self._list_claims(near | self.retired_by_identity.get(identity, set()))

    def list_mentions(self, words: Collection[str]) -> list[tuple[str, Claim]]:
        """Facts that hold all of these words."""
        return self._list_claims(self._index.list_holding(words)[:MAX_COMPARED])

    def _list_claims(self, fact_ids: Collection[str]) -> list[tuple[str, Claim]]:
        self.fetch(fact_ids)
        claims = ((fact_id, self.get_claim(fact_id)) for fact_id in sorted(fact_ids))
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


def _read_terms(terms: str) -> set[str]:
    """The terms of a fact that carry meaning, as a claim would name them."""
    found = {_SAME_TERM.get(term, term) for term in terms.split()} - _NO_TERMS
    if not _DISLIKES.isdisjoint(found):
        found.add("like")
    return {term for term in found if not term[0].isdecimal()}


def _split(words: Iterable[str]) -> set[str]:
    """Of words that may be written apart: "jean-luc", "bill@example.com"."""
    parts = " ".join(words).split()
    return {part for part in parts if not part[0].isdecimal()}


def _find_handle(matching: str) -> str:
    """Whether Ann is the caller's sister Ann is asked when they are compared: of others than the
    caller only the attribute tells.
    """
    subject, _, attribute = matching.partition("|")
    return matching if subject == str(CALLER) else attribute
