"""What is read is what was said: whole sentences, in the caller's words, and nothing made of
small talk.
"""

import pytest

from aftercall.llm.cached_reader import to_summary
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Reading
from aftercall.testing import make_call


def read(
    *said: str,
    agent: str = "Hello! What can I do for you?",
    after: str = "All right. Anything else?",
) -> Reading:
    turns = [
        ("agent", agent),
        *(turn for text in said for turn in (("caller", text), ("agent", after))),
    ]
    return RulesReader().read(make_call(turns))


@pytest.mark.parametrize(
    "agent",
    ["Hello! What can I do for you?", "How can I help?", "Hi, what do you need?"],
)
@pytest.mark.parametrize(
    "said",
    [
        "I'm just calling to say thanks.",
        "My flight was late.",
        "It's raining here.",
        "My daughter started school today.",
        "A lovely day today.",
        "Thanks for the flowers.",
        "My phone died yesterday, that's why I didn't pick up.",
    ],
)
def test_a_plain_statement_is_no_request(agent: str, said: str) -> None:
    assert read(said, agent=agent).requests == ()


def test_thanks_after_a_question_that_was_not_answered_accept_nothing() -> None:
    after = "I can't answer that myself. What can I do for you?"
    assert (
        read("What are your opening hours?", "Thanks, bye.", after=after).requests == ()
    )


@pytest.mark.parametrize(
    "answer",
    [
        "Sure, I'll send Dana the contract right away.",
        "I have taken down: send Dana the contract.",
        "Noted.",
    ],
)
def test_the_agents_acknowledgement_is_no_detail_of_a_request(answer: str) -> None:
    (request,) = read("Please send Dana the signed contract.", after=answer).requests
    assert (request.title, request.details) == ("Send Dana the signed contract", "")


@pytest.mark.parametrize(
    ("said", "decided"),
    [
        (
            "We talked about the van and we decided to sell it.",
            "We talked about the van and we decided to sell it.",
        ),
        (
            "Carl and I decided the office stays in Ghent.",
            "Carl and I decided the office stays in Ghent.",
        ),
        (
            "Note that we decided to close on Mondays.",
            "We decided to close on Mondays.",
        ),
        ("Please write down that we agreed on nine euros.", "We agreed on nine euros."),
    ],
)
def test_a_decision_is_the_whole_sentence_without_the_request_to_note_it(
    said: str, decided: str
) -> None:
    assert to_summary(read(said)).decisions == (decided,)


def test_asking_to_note_a_decision_is_no_decision() -> None:
    assert to_summary(read("Please note what we decided about Carl.")).decisions == ()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "I'm just calling to say thanks.",
            "The caller said: I'm just calling to say thanks.",
        ),
        (
            "My flight was late. It's raining here.",
            "The caller said: My flight was late; It's raining here.",
        ),
        (
            "No, that's all. Thanks, bye.",
            "The caller called; nothing was asked or promised.",
        ),
    ],
)
def test_a_summary_says_what_the_call_was_about_in_the_callers_words(
    said: str, told: str
) -> None:
    assert read(said).summary == told


def test_a_summary_of_requests_also_says_what_was_told() -> None:
    summary = read(
        "Please send Dana the contract.", "The new office opens in March."
    ).summary
    assert (
        summary
        == "The caller asked for: Send Dana the contract. Also said: The new office opens in March."
    )


@pytest.mark.parametrize(
    "said",
    [
        "My door code is 4711.",
        "Between us, the firm is being sold.",
        "It's Tuesday. No wait, it's 4711.",
    ],
)
def test_a_summary_leaves_out_secrets_and_what_was_put_right(said: str) -> None:
    summary = read(said).summary
    assert not any(word in summary for word in ("4711", "sold", "Tuesday"))


def test_notes_and_context_are_filled_where_the_caller_says_so_plainly() -> None:
    profile = read(
        "I prefer calls in the evening. I'm working on a garden house. My door code is 4711."
    ).profile
    assert profile.notes == "I prefer calls in the evening."
    profile = read(
        "I prefer calls in the evening.", "I'm working on a garden house."
    ).profile
    assert profile.context == "I'm working on a garden house."
    assert read("Please order paper.").profile.notes is None
