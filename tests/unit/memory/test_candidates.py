"""What need not be compared is never something that a comparison would have found."""

import json
from itertools import product
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from aftercall.memory.candidates import MAX_COMPARED, CandidateIndex, FactOutline
from aftercall.memory.claims import Claim, read_claim
from aftercall.memory.dedupe import compare
from aftercall.memory.words import to_terms

PAIRS = json.loads(
    (Path(__file__).parents[3] / "bench" / "facts" / "tuned.json").read_text()
)
SENTENCES = sorted({pair[side] for pair in PAIRS for side in ("new", "known")})
PIECES = (
    *(
        "I like",
        "I don't like",
        "I can't stand",
        "I shan't see",
        "tea",
        "coffee",
        "it's",
        "not Porto",
        "instead of Lisbon",
        "half past six",
    ),
    *(
        "twenty two",
        "2",
        "no",
        "jean-luc",
        "bill at example dot com",
        "bill@example.com",
        "on Monday",
        "my e-mail is",
        "José’s café",
        "dont",
    ),
)


def outline(content: str, claim: Claim) -> FactOutline:
    terms = to_terms(content)
    return FactOutline(content, True, claim.identity, claim.matching, None, terms)


def is_found(new: str, known: str) -> bool:
    claim, other = read_claim(new), read_claim(known)
    index = CandidateIndex()
    index.add(outline(known, other))
    return known in index.find(claim) or claim.identity == other.identity


def check(new: str, known: str, found: tuple[str, ...]) -> bool:
    """Whether there was anything to find."""
    verdict = compare(read_claim(new), read_claim(known))
    if verdict in found:
        assert is_found(new, known), (verdict, new, known)
    return verdict in found


def test_every_labelled_pair_that_belongs_together_is_compared() -> None:
    found = ("same", "update", "disputed")
    assert sum(check(pair["new"], pair["known"], found) for pair in PAIRS) > 100


def test_of_all_pairs_of_sentences_those_that_matter_are_compared_and_most_are_not() -> (
    None
):
    some = SENTENCES[::6]
    claims = {sentence: read_claim(sentence) for sentence in some}
    index = CandidateIndex()
    for sentence, claim in claims.items():
        index.add(outline(sentence, claim))
    found = {sentence: index.find(claim) for sentence, claim in claims.items()}
    for new, known in product(some, some):
        if known not in found[new] and claims[new].identity != claims[known].identity:
            assert compare(claims[new], claims[known]) == "different", (new, known)
    assert sum(map(len, found.values())) < 0.2 * len(some) ** 2


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=4),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=4),
)
@example(["tea", "half past six"], ["tea", "half past six", "dont"])
@example(["jean-luc"], ["dont", "jean-luc"])
@example(["no", "bill at example dot com"], ["bill@example.com"])
@example(["half past six", "dont", "not Porto"], ["half past six"])
@example(["I shan't see", "tea", "my e-mail is"], ["I shan't see", "my e-mail is"])
@example(["I cant see", "2"], ["I cant see", "twenty two"])
def test_however_sentences_are_put_together(new: list[str], known: list[str]) -> None:
    check(" ".join(new), " ".join(known), ("same", "update"))


def test_a_secret_is_compared_with_everything() -> None:
    index = CandidateIndex()
    index.add(outline("sealed", read_claim(""))._replace(terms=None))
    assert index.find(read_claim("I like tea")) == {"sealed"}


def test_of_many_facts_the_likest_are_compared() -> None:
    index = CandidateIndex()
    claim = read_claim("I take the blue tablet at noon now")
    for number in range(2_000):
        index.add(
            outline(f"I take the tablet {number} times", claim)._replace(matching=None)
        )
    index.add(outline("I take the blue tablet at one", claim)._replace(matching=None))
    found = index.find(claim)
    assert "I take the blue tablet at one" in found
    assert len(found) == MAX_COMPARED
