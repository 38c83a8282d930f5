"""Long turns are read in pieces and long calls in windows; what is found is the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.english.secrets import find_secrets
from aftercall.english.text import MAX_PIECE_CHARS, cut_text
from aftercall.llm.long_calls import (
    MAX_WINDOW_CHARS,
    MAX_WINDOW_TURNS,
    CutCall,
    split_windows,
)
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.calls import Call
from aftercall.model.reading import Reading
from fakes import make_call

FILLER = "The weather has been fine over here, and the garden is green. "
SMALL_TALK = [("agent", "I see. Go on."), ("caller", FILLER * 10)]


def pad(chars: int) -> str:
    return FILLER * (chars // len(FILLER) + 1)


def talk(chars: int) -> list[tuple[str, str]]:
    return SMALL_TALK * (chars // len(FILLER * 10) + 1)


def read(*said: tuple[str, str]) -> tuple[Call, Reading]:
    call = make_call(said)
    return call, RulesReader().read(call)


def check_citations(call: Call, reading: Reading) -> None:
    texts = {turn.seq: turn.text for turn in call.turns}
    cited = [
        *((request.words, request.turns) for request in reading.requests),
        *((promise.words, promise.turns) for promise in reading.promises),
        *((fact.words, fact.turns) for fact in reading.facts),
    ]
    for words, turns in cited:
        assert any(words in texts[seq] for seq in turns)
    for withdrawn in reading.withdrawn:
        assert set(withdrawn.turns) <= texts.keys()


@given(st.text(max_size=300), st.integers(1, 50))
def test_pieces_are_the_text_and_none_is_too_long(text: str, max_chars: int) -> None:
    pieces = cut_text(text, max_chars)
    assert "".join(pieces) == text
    assert all(len(piece) <= max_chars for piece in pieces)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("I am here. You are", ["I am here. ", "You are"]),
        ("one two three four five", ["one two ", "three four ", "five"]),
        ("abcdefghijklmnopq", ["abcdefghijkl", "mnopq"]),
    ],
)
def test_a_text_is_cut_after_a_sentence_else_after_a_word(
    text: str, pieces: list[str]
) -> None:
    assert cut_text(text, 12) == pieces


def test_a_call_of_ordinary_turns_is_not_cut() -> None:
    call = make_call()
    cut = CutCall.from_call(call)
    assert cut.call is call
    reading = RulesReader().read(call)
    assert cut.cite_turns(reading) is reading


def test_what_is_asked_anywhere_in_a_long_turn_is_found_and_cited() -> None:
    turn = (
        f"{pad(3_000)}Please book a table for four on Friday. {pad(3_000)}"
        f"Please call the plumber, too. {pad(3_000)}My door code is 4711."
    )
    call, reading = read(
        ("agent", "Hello!"),
        ("caller", "Hi there."),
        ("caller", turn),
        ("agent", "Bye."),
    )
    table, plumber = reading.requests
    assert "table" in table.title
    assert "plumber" in plumber.title
    assert {request.turns for request in reading.requests} == {(3,)}
    (secret,) = [fact for fact in reading.facts if fact.visibility == "secret"]
    assert (secret.turns, "4711" in secret.words) == ((3,), True)
    assert "4711" not in reading.summary
    check_citations(call, reading)


def test_windows_hold_every_turn_once_and_no_more_than_they_may() -> None:
    turns = make_call(talk(3 * MAX_WINDOW_CHARS)).turns
    many = make_call([("caller", "Yes.")] * (MAX_WINDOW_TURNS + 1)).turns
    for said in (turns, many):
        windows = split_windows(said)
        assert len(windows) > 1
        assert tuple(turn for window in windows for turn in window) == said
        for window in windows:
            assert sum(len(turn.text) for turn in window) <= MAX_WINDOW_CHARS
            assert len(window) <= MAX_WINDOW_TURNS


def test_a_request_can_be_called_off_windows_later() -> None:
    call, reading = read(
        ("agent", "What can I do for you?"),
        ("caller", "Please book a table for four. And please call the plumber."),
        *talk(2 * MAX_WINDOW_CHARS),
        ("caller", "Actually, scratch the table."),
        ("agent", "All right."),
    )
    (plumber,) = reading.requests
    assert "plumber" in plumber.title
    assert ["table" in item.title for item in reading.withdrawn] == [True]
    assert "plumber" in reading.summary
    check_citations(call, reading)


def test_each_window_tells_its_own_and_repeats_nothing() -> None:
    call, reading = read(
        ("agent", "Acme, this is Robin."),
        ("caller", "Hi, this is Bill Harker. Please call the plumber."),
        *talk(MAX_WINDOW_CHARS),
        ("caller", "Please order more paper."),
        *talk(MAX_WINDOW_CHARS),
        ("caller", "Please renew the insurance."),
    )
    plumber, paper, insurance = (request.title for request in reading.requests)
    assert "plumber" in plumber
    assert "paper" in paper
    assert "insurance" in insurance
    assert reading.profile.name == "Bill Harker"
    assert len({request.turns for request in reading.requests}) == 3
    check_citations(call, reading)


@pytest.mark.parametrize("is_told_first", [True, False])
def test_a_secret_of_one_window_is_hidden_in_all(is_told_first: bool) -> None:
    told = ("caller", "The alarm code is four seven one one, keep it to yourself.")
    repeated = ("caller", "Please write a note for Dana that 4711 opens the gate.")
    first, last = (told, repeated) if is_told_first else (repeated, told)
    _, reading = read(("agent", "Hello!"), first, *talk(MAX_WINDOW_CHARS), last)
    told_openly = [fact.text for fact in reading.facts if fact.visibility != "secret"]
    titles = [f"{request.title} {request.details}" for request in reading.requests]
    assert "4711" not in " ".join([reading.summary, *told_openly, *titles])
    assert any(fact.visibility == "secret" for fact in reading.facts)


def test_secrets_of_a_long_turn_name_their_turn() -> None:
    said = f"{pad(2 * MAX_PIECE_CHARS)}My door code is 4711."
    (secret,) = find_secrets(make_call([("agent", "Yes?"), ("caller", said)]).turns)
    assert (secret.seq, secret.value) == (2, "4711")
