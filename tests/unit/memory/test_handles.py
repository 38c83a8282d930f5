"""What need not be compared is never something that a comparison would have found."""

import json
import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.memory.claims import read_claim
from aftercall.memory.dedupe import compare
from aftercall.memory.frames import FIGURE, FRAMES, Frame, fitting
from aftercall.memory.handles import CandidateIndex
from aftercall.memory.slots import find_slots
from aftercall.memory.telling import take_apart
from aftercall.memory.wording import plain

PAIRS = json.loads(
    (Path(__file__).parents[3] / "bench" / "facts" / "tuned.json").read_text()
)
LETTERS = st.sampled_from("abcdefghijklmnopqrstuvwxyz0123456789 '-@.+:_")
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


def is_found(new: str, known: str) -> bool:
    claim, other = read_claim(new), read_claim(known)
    handles = CandidateIndex()
    handles.add("known", known, other.matching)
    return "known" in handles.find(claim) or claim.identity == other.identity


def check(new: str, known: str) -> bool:
    """Whether there was anything to find."""
    verdict = compare(read_claim(new), read_claim(known))
    if verdict != "different":
        assert is_found(new, known), (verdict, new, known)
    return verdict != "different"


def test_every_labelled_pair_that_belongs_together_is_compared() -> None:
    assert sum(check(pair["new"], pair["known"]) for pair in PAIRS) > 100


def test_of_all_pairs_of_sentences_those_that_matter_are_compared_and_most_are_not() -> (
    None
):
    some = SENTENCES[::4]
    claims = {sentence: read_claim(sentence) for sentence in some}
    handles = CandidateIndex()
    for sentence, claim in claims.items():
        handles.add(sentence, sentence, claim.matching)
    found = {sentence: handles.find(claim) for sentence, claim in claims.items()}
    for new, known in product(some, some):
        if known not in found[new] and claims[new].identity != claims[known].identity:
            assert compare(claims[new], claims[known]) == "different", (new, known)
    assert sum(map(len, found.values())) < 0.1 * len(some) ** 2


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=4),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=4),
)
def test_however_sentences_are_put_together(new: list[str], known: list[str]) -> None:
    check(" ".join(new), " ".join(known))


def test_a_secret_is_compared_with_everything() -> None:
    handles = CandidateIndex()
    handles.add_secret("secret")
    assert handles.find(read_claim("I like tea")) == {"secret"}


def test_what_a_frame_is_quickly_told_by_never_hides_what_it_fits() -> None:
    fitted = 0
    for sentence in map(plain, SENTENCES):
        first = next(
            (frame.attribute for frame in FRAMES if frame.pattern.search(sentence)),
            None,
        )
        fitted += first is not None
        found = fitting(sentence)
        assert (found[0] if found else None) == first, sentence
    assert fitted > 100
    assert (
        next(iter(find_slots(take_apart("i live in porto")))).attribute == "residence"
    )


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.attribute)
@settings(max_examples=15)
@given(data=st.data())
def test_whatever_a_frame_fits_holds_one_of_the_words_it_is_told_by(
    frame: Frame, data: st.DataObject
) -> None:
    text = data.draw(st.from_regex(frame.pattern, alphabet=LETTERS))
    assert any(
        need in text if need != FIGURE else re.search(r"\d", text)
        for need in frame.needs
    )
