"""The normal form: what it drops, what it writes otherwise, and the way back to the words."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.english.clauses import split_clauses, split_sentences
from aftercall.english.text import normalise


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("I'm, um, I'm sure it's him", "i am sure it is him"),
        ("gonna need two hundred and five", "going to need 205"),
        ("the, uh, the CVS on Pine", "the cvs on pine"),
        ("Wednesday the eleventh at nine fifteen", "wednesday the 11th at 9 15"),
        ("four oh one, double seven", "4 0 1 7 7"),
        ("the sink's leaking", "the sink is leaking"),
        ("Ivan's car", "ivan's car"),
        ("one of us", "one of us"),
        ("shes at work and theyre late", "she is at work and they are late"),
    ],
)
def test_speech_has_one_normal_form(said: str, plain: str) -> None:
    assert normalise(said).text == plain


@given(st.text(max_size=200))
def test_every_piece_of_the_normal_form_is_cited_verbatim(text: str) -> None:
    plain = normalise(text)
    for word in plain.words:
        assert 0 <= word.start < word.end <= len(text)
    assert plain.cited in text


@pytest.mark.parametrize(
    ("said", "clauses"),
    [
        (
            "can you open a bug and remind me to call Ann",
            ["can you open a bug", "and remind me to call ann"],
        ),
        (
            "i lost my card can you send me a new one",
            ["i lost my card", "can you send me a new one"],
        ),
        ("Dr. Patel is in. Is he?", ["dr patel is in", "is he"]),
        ("I think I need a table", ["i think i need a table"]),
        ("i was wondering can i have it", ["i was wondering can i have it"]),
        (
            "my name is ann lee like to pay a bill",
            ["my name is ann lee", "like to pay a bill"],
        ),
        (
            "my name is ann with i would like to pay a bill",
            ["my name is ann with", "i would like to pay a bill"],
        ),
        (
            "my name is on the order so i need it",
            ["my name is on the order", "so i need it"],
        ),
    ],
)
def test_clauses_need_no_punctuation(said: str, clauses: list[str]) -> None:
    assert [clause.text for clause in split_clauses(1, said)] == clauses


def test_sentences_are_verbatim() -> None:
    assert split_sentences("Hi, um. It's me!  Bye") == ("Hi, um.", "It's me!", "Bye")


def test_a_long_monologue_is_read_in_time_that_grows_with_its_length() -> None:
    def took(text: str) -> float:
        start = time.process_time()
        split_clauses(1, text)
        return time.process_time() - start

    words = "can you book the the table on friday and my sink is leaking "
    took(words)
    short = min(took(words * 50 + str(run)) for run in range(3))
    long = min(took(words * 400 + str(run)) for run in range(3))
    assert long < short * 8 * 4
