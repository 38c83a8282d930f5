"""No fact without its words; the agent's words are no evidence, the caller's yes to them is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.memory.claims import look_up_again
from aftercall.memory.evidence import Evidence, EvidenceFinder
from aftercall.memory.words import to_term
from fact_drafts import draft
from fakes import make_call


def ground(
    said: list[tuple[str, str]],
    text: str,
    words: str = "",
    turns: tuple[int, ...] = (1,),
) -> Evidence | None:
    return EvidenceFinder(make_call(said)).find(
        draft(text, words=words or text, turns=turns)
    )


def test_words_are_found_whatever_their_case_and_points() -> None:
    found = ground(
        [("agent", "Hi"), ("caller", "Well... I LIVE, you know, in Porto!")],
        "I live in Porto",
        "i live you know in porto",
    )
    assert found is not None
    assert (found.first_turn, found.last_turn, found.is_confirmed) == (2, 2, False)
    assert (
        found.context
        == "agent (1): Hi\ncaller (2): Well... I LIVE, you know, in Porto!"
    )


def test_wrong_turn_numbers_are_put_right() -> None:
    found = ground(
        [("agent", "Hi"), ("caller", "I live in Porto"), ("agent", "Nice")],
        "I live in Porto",
        turns=(3, 99),
    )
    assert found is not None
    assert found.first_turn == 2


@pytest.mark.parametrize(
    "words", ["", "  ", "...", "I live in Lisbon", "porto lisbon", "or"]
)
def test_what_was_not_said_is_refused(words: str) -> None:
    assert (
        EvidenceFinder(make_call([("caller", "I live in Porto")])).find(
            draft("I live in Porto", words=words)
        )
        is None
    )


def test_words_that_have_nothing_to_do_with_the_fact_are_no_evidence() -> None:
    assert (
        ground([("caller", "Hello there, it rains")], "I own a yacht", "it rains")
        is None
    )


def test_what_the_agent_read_out_is_no_evidence() -> None:
    said = [
        ("agent", "You live in Porto, I see."),
        ("caller", "What time do you close?"),
    ]
    assert ground(said, "lives in Porto", "You live in Porto") is None


@pytest.mark.parametrize(
    "answer", ["Yes.", "yeah, that's right", "Correct", "um, yes I do"]
)
def test_the_callers_yes_to_it_is(answer: str) -> None:
    found = ground(
        [("agent", "You live in Porto, right?"), ("caller", answer)],
        "lives in Porto",
        "You live in Porto",
    )
    assert found is not None
    assert (found.first_turn, found.last_turn, found.is_confirmed) == (1, 2, True)


@pytest.mark.parametrize(
    "answer", ["No.", "Yes, but not any more", "Maybe", "Right, actually I moved"]
)
def test_a_yes_that_takes_something_back_is_not(answer: str) -> None:
    assert (
        ground(
            [("agent", "You live in Porto, right?"), ("caller", answer)],
            "lives in Porto",
            "You live in Porto",
        )
        is None
    )


def test_a_bare_yes_rests_on_the_question() -> None:
    found = ground(
        [("agent", "Still in Porto?"), ("caller", "Yes")], "lives in Porto", "Yes"
    )
    assert found is not None
    assert (found.first_turn, found.is_confirmed) == (1, True)


def test_words_may_run_over_the_agents_mhm() -> None:
    found = ground(
        [("caller", "I live in"), ("agent", "Mhm"), ("caller", "Porto these days")],
        "I live in Porto",
        "I live in Porto",
    )
    assert found is not None
    assert (found.first_turn, found.last_turn) == (1, 3)


def test_a_fact_is_no_surer_than_its_words_were_heard() -> None:
    call = make_call([("agent", "Hi"), ("caller", "I live in Porto")])
    badly = call.model_copy(
        update={
            "turns": tuple(
                turn.model_copy(update={"confidence": 0.4}) for turn in call.turns
            )
        }
    )
    found = EvidenceFinder(badly).find(draft("I live in Porto"))
    assert found is not None
    assert found.transcript_confidence == 0.4


def test_the_words_of_a_secret_are_kept_in_no_cache() -> None:
    secret, shared = "My PIN is zaporeth", "My dog is quillobar"
    finder = EvidenceFinder(make_call([("caller", f"{secret}. {shared}")]))
    finder.parse_claim(shared, is_secret=False)
    kept = look_up_again.cache_info().currsize, to_term.cache_info().currsize
    finder.parse_claim(secret, is_secret=True)
    assert kept == (look_up_again.cache_info().currsize, to_term.cache_info().currsize)
    look_up_again("quillobar")
    assert look_up_again.cache_info().currsize == kept[0]


def test_words_of_many_calls_do_not_pile_up_in_memory() -> None:
    calls = 5_000
    for number in range(calls):
        look_up_again(str(number))
        to_term(str(number))
    assert look_up_again.cache_info().currsize < calls
    assert to_term.cache_info().currsize < calls


@given(
    st.text(max_size=100),
    st.text(max_size=100),
    st.lists(st.integers(1, 50), max_size=4),
)
def test_any_words_can_be_looked_up(said: str, words: str, turns: list[int]) -> None:
    found = EvidenceFinder(make_call([("agent", "Hi"), ("caller", said)])).find(
        draft("x y", words=words, turns=tuple(turns))
    )
    assert found is None or found.first_turn <= found.last_turn <= 2
