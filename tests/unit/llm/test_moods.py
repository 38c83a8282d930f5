"""Wishes in broken English, wishes of others told in their own words, and words that sound like
wishes and are none.
"""

import pytest

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Reading
from unit.llm.calls import call_of


def _read(script: str) -> Reading:
    return RulesReader().read(call_of(script.replace(" | ", "\n")))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("hello i want make reservation for dinner with my wife", "reservation"),
        ("please i need book room for two night", "room"),
        ("good day i like to make appointment for the teeth", "appointment"),
        ("i want cancel subscription of magazine", "subscription"),
        ("excuse me i want order cake with chocolate", "cake"),
        ("i would like change my delivery to other address", "delivery"),
        ("is possible to repair the shoes please", "shoes"),
    ],
)
def test_a_wish_needs_no_perfect_grammar(said: str, words: str) -> None:
    requests = _read(f"A: Hello. | C: {said} | A: Sure.").requests
    assert [words in request.title.lower() for request in requests] == [True]


@pytest.mark.parametrize(
    "said",
    [
        "i want go home already haha",
        "i like your shop very much",
        "i need think about it",
        "is possible that i am late sometimes",
        "i want only to say thank you",
        "i would like know what time you open",
    ],
)
def test_broken_english_that_wants_nothing_done(said: str) -> None:
    assert not _read(f"A: Hello. | C: {said} | A: Okay.").requests


@pytest.mark.parametrize(
    "said",
    [
        (
            "So my boss, Lena, she goes book me a hotel, book me the nicest hotel in town, and I "
            "laughed."
        ),
        "My brother's like, cancel the whole trip, and I said no way.",
        "And then the landlord goes send me the deposit.",
        "Rita was like order the big one, order the big one.",
        "My mum keeps going on, call the doctor, call the doctor.",
        "The neighbour went, move your van, you fool.",
    ],
)
def test_what_others_said_in_their_own_words_is_their_wish(said: str) -> None:
    assert not _read(f"A: Hello. | C: {said} Anyway, how are you? | A: Good.").requests


@pytest.mark.parametrize(
    "said",
    [
        "Have a blessed day.",
        "Have yourself a great weekend.",
        "You have a wonderful evening now.",
        "Give my love to the team.",
        "Take care of yourself.",
        "Keep up the good work.",
        "Say hi to everyone from me.",
    ],
)
def test_taking_leave_asks_for_nothing(said: str) -> None:
    assert not _read(
        f"A: Hello. | C: What are your hours? | A: Nine to five. | C: Thanks. {said}"
    ).requests


@pytest.mark.parametrize(
    "said",
    [
        "Ring my husband's mobile, not mine.",
        "Use the side door, the bell is broken.",
        "Text me first, I'm in meetings.",
        "Call Ida's number, I never hear mine.",
        "Phone the workshop, not the house.",
        "Email my assistant, I don't read mine.",
    ],
)
def test_how_to_be_reached_belongs_to_what_was_promised(said: str) -> None:
    reading = _read(
        "A: Hello. | C: I'd like to order a bookcase. | A: The driver will ring you before "
        f"he comes. | C: {said} | A: Okay."
    )
    assert [("bookcase" in request.title.lower()) for request in reading.requests] == [
        True
    ]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Could you ask her to bring the draft contract?", "draft contract"),
        ("Can you ask the chef to leave out the nuts?", "nuts"),
        ("Would you ask Pavel to ring me?", "pavel"),
        ("Please ask the driver to use the side gate.", "side gate"),
        ("Will you ask the nurse to check his chart?", "chart"),
    ],
)
def test_asking_the_agent_to_ask_is_the_callers_own_wish(said: str, words: str) -> None:
    assert [
        words in request.title.lower()
        for request in _read(f"A: Hello. | C: {said} | A: I will.").requests
    ] == [True]
