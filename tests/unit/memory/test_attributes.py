"""Whose attribute a sentence gives a value to, whoever it is about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.memory.claims import read_claim


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("My sister Ann lives in Porto", "caller's sister ann|residence", "porto"),
        ("my sister ann moved to lisbon", "caller's sister ann|residence", "lisbon"),
        ("Ann, my sister, works for Bosch", "caller's sister ann|employer", "bosch"),
        ("Dr Patel has moved to Leeds", "caller's patel|residence", "leeds"),
        ("Mum's number is 0791 555 010", "caller's mother|phone", "0791555010"),
        (
            "My sister Ann's husband drives a Volvo",
            "caller's sister ann's husband|car",
            "volvo",
        ),
        ("My son Tom's birthday is 3 May", "caller's son tom|birthday", "3 may"),
        (
            "My mother in law's email is rosa@post.de",
            "caller's mother-in-law|email",
            "rosa@post.de",
        ),
        ("My brother's a nurse", "caller's brother|job", "nurse"),
        ("My brother's started at Lidl", "caller's brother|employer", "lidl"),
        (
            "My best friend Jo got married",
            "caller's friend jo|marital status",
            "married",
        ),
        (
            "You can reach my neighbour Pat on 0155 443 221",
            "caller's neighbour pat|phone",
            "0155443221",
        ),
        ("Evenings are best for my husband", "caller's husband|best time", "evening"),
        (
            "The best time to reach my mother is the evening",
            "caller's mother|best time",
            "evening",
        ),
        ("The best way to reach my wife is by email", "caller's wife|contact", "email"),
        ("My client wants emails", "caller's client|contact", "email"),
        ("My wife would like an aisle seat", "caller's wife|seat", "aisle"),
        ("Our office is now in Porto", "caller|work", "porto"),
        ("The caller is a nurse", "caller|job", "nurse"),
        (
            "The customer's daughter lives in Faro",
            "caller's daughter|residence",
            "faro",
        ),
        ("my bank is barclays", "caller|bank", "barclays"),
    ],
)
def test_whose_attribute_it_is(said: str, key: str, value: str) -> None:
    statement = read_claim(said).statement
    assert statement is not None
    assert (statement.key, " ".join(statement.value)) == (key, value)


@pytest.mark.parametrize(
    "said",
    [
        "She moved to Lisbon",
        "Her address is 9 Elm Road",
        "His wife works for Bosch",
        "Ann is in Lisbon this week",
        "My sister Ann is staying in Porto until Friday",
        "My sister lives in Lisbon until the summer",
        "I told my sister I moved to Lisbon",
        "My sister Ann and I live in Porto",
        "My husband says email is best",
        "Email is best for her",
        "I want it on Friday",
        "My sister is called Ann",
        "My sister Ann used to live in Porto",
        "My sister wants to live in Porto",
        "my bank is useless",
        "my car is a bit noisy",
    ],
)
def test_what_belongs_to_nobody_or_says_nothing_for_good_has_no_attribute(
    said: str,
) -> None:
    statement = read_claim(said).statement
    assert statement is None or not statement.kinds


@given(
    st.lists(
        st.sampled_from(
            [
                "my",
                "the",
                "sister",
                "ann",
                "ann's",
                "i",
                "she",
                "lives",
                "is",
                "moved",
                "to",
                "in",
                "lisbon",
                "for",
                "law",
                "now",
                "call",
                "on",
                "0791555010",
                "'s",
                "'",
            ]
        )
    )
)
def test_any_words_can_be_read(words: list[str]) -> None:
    statement = read_claim(" ".join(words)).statement
    assert statement is None or (statement.attribute and statement.value)
