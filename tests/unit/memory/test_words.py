"""Text as terms, and queries as what they ask for."""

import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.english.words import listed_words, stem_word
from aftercall.memory.ranking import (
    MAX_QUERY_CHARS,
    MAX_QUERY_TERMS,
    Day,
    find_days,
    parse_query,
)
from aftercall.memory.words import split_words, to_terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("adopted", "adopting"),
        ("agencies", "agency"),
        ("relational", "relate"),
        ("hopping", "hops"),
        ("caresses", "caress"),
        ("conditional", "conditions"),
        ("controlling", "controls"),
        ("went", "going"),
        ("bought", "buys"),
        ("children", "child"),
        ("Zürich", "zurich"),
        ("ﬁve", "FIVE"),
    ],
)
def test_forms_of_one_word_are_one_term(one: str, other: str) -> None:
    assert to_terms(one) == to_terms(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("universe", "unicorn"), ("cat", "cart"), ("мир", "дом"), ("東", "京")],
)
def test_other_words_are_other_terms(one: str, other: str) -> None:
    assert to_terms(one) != to_terms(other)


def test_words_without_spaces_between_them_are_found_by_letter() -> None:
    assert set(to_terms("京").split()) < set(to_terms("東京タワー").split())


@given(st.text())
def test_terms_are_plain_and_the_same_when_asked_as_when_kept(text: str) -> None:
    terms = to_terms(text)
    assert terms == "" or all(
        term.isascii() and term.isalnum() and term == term.lower()
        for term in terms.split(" ")
    )
    assert terms == " ".join(to_terms(word) for word in split_words(text))


@given(st.text(alphabet="abcdeginorsty", min_size=1))
def test_a_stem_is_never_empty_nor_longer_than_its_word_by_more_than_a_letter(
    word: str,
) -> None:
    assert 0 < len(stem_word(word)) <= len(word) + 1


@given(st.text())
def test_any_text_is_a_query(text: str) -> None:
    query = parse_query(text, {"Bill": "caller"})
    assert len(query.terms) <= MAX_QUERY_TERMS
    assert len(set(query.terms)) == len(query.terms)


def test_a_query_of_100_kb_is_cut_not_refused() -> None:
    query = parse_query("word" * 25_000 + " more " * 10_000)
    assert len(query.terms) <= MAX_QUERY_TERMS
    assert parse_query("cat " * MAX_QUERY_CHARS).terms == ("cat",)


def test_stop_words_are_left_out_unless_there_is_nothing_else() -> None:
    assert parse_query("what was it about the boiler").terms == ("boiler",)
    assert parse_query("who was it").terms == ("who", "was", "it")


def test_in_a_question_quotes_name_a_title_and_require_nothing() -> None:
    assert parse_query('Who wrote "Front Door"?').phrases == ()


def test_who_says_my_asks_for_what_the_caller_said_unless_a_name_is_said() -> None:
    names = {"Bill": "caller", "Ava": "agent"}
    assert parse_query("when is my appointment", names).speakers == {"caller"}
    assert parse_query("what did Ava tell me", names).speakers == {"agent"}
    assert parse_query("the appointment", names).speakers == frozenset()


def test_only_a_single_word_is_a_look_up() -> None:
    assert parse_query("pets").is_lookup
    assert not parse_query("what pets does she have").is_lookup


def test_quotes_make_a_phrase_and_other_operators_are_words() -> None:
    query = parse_query('"front doors" AND key* -NOT NEAR(x) “back gate”')
    assert query.phrases == ("front door", "back gate")
    assert {"front", "door", "key", "near", "x", "back", "gate"} == set(query.terms)
    assert parse_query('an open " quote').phrases == ()


def test_a_named_speaker_is_preferred_and_not_searched_for() -> None:
    query = parse_query(
        "What did Bill say about Wren's garden?",
        {"Bill Howe": "caller", "Wren": "agent"},
    )
    assert query.speakers == {"caller", "agent"}
    assert query.terms == ("say", "garden")


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on 8 may, 2023", [Day(2023, 5, 8)]),
        ("on may 8th", [Day(None, 5, 8)]),
        ("in may", [Day(None, 5, None)]),
        ("june 2022", [Day(2022, 6, None)]),
        ("in 2022", [Day(2022, None, None)]),
        ("2026-02-13", [Day(2026, 2, 13)]),
        ("i may march in", []),
        ("2026-99-99", [Day(2026, None, None)]),
    ],
)
def test_days_are_read_from_a_query(text: str, days: list[Day]) -> None:
    assert find_days(text)[0] == days


def test_a_day_is_nearest_to_itself_and_nearer_to_the_days_after_than_before() -> None:
    day = Day(2023, 5, 8)
    near = [day.closeness(date(2023, 5, number)) for number in (8, 10, 1)] + [
        day.closeness(date(2023, 9, 8))
    ]
    assert near == sorted(near, reverse=True)
    assert near[0] == 1
    assert near[-1] == 0
    assert Day(None, 2, 31).closeness(date(2023, 2, 28)) == 1


def test_threads_that_stem_at_once_get_the_stems_of_one_thread() -> None:
    words = sorted(word for word in listed_words() if word.isascii())[:600]
    expected = [stem_word(word) for word in words]
    usual_interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(
                pool.map(lambda _: [stem_word(word) for word in words], range(4))
            )
    finally:
        sys.setswitchinterval(usual_interval_s)
    assert found == [expected] * 4
