"""What is read is what was said: whole sentences, in the caller's words, and nothing made of small talk."""

import pytest

from aftercall.llm.rules.reader import RulesReader
from aftercall.llm.whole import outline
from aftercall.model.reading import Reading
from aftercall.testing import make_call


def read(*said: str, agent: str = "Hello! What can I do for you?", after: str = "All right. Anything else?") -> Reading:
    turns = [("agent", agent), *(turn for text in said for turn in (("caller", text), ("agent", after)))]
    return RulesReader().read(make_call(turns))


@pytest.mark.parametrize("agent", ["Hello! What can I do for you?", "How can I help?", "Hi, what do you need?"])
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
    assert read("What are your opening hours?", "Thanks, bye.", after=after).requests == ()


@pytest.mark.parametrize("answer", ["Sure, I'll send Dana the contract right away.", "I have taken down: send Dana the contract.", "Noted."])
def test_the_agents_acknowledgement_is_no_detail_of_a_request(answer: str) -> None:
    (request,) = read("Please send Dana the signed contract.", after=answer).requests
    assert (request.title, request.details) == ("Send Dana the signed contract", "")


@pytest.mark.parametrize(
    ("said", "decided"),
    [
        ("We talked about the van and we decided to sell it.", "We talked about the van and we decided to sell it."),
        ("Carl and I decided the office stays in Ghent.", "Carl and I decided the office stays in Ghent."),
        ("Note that we decided to close on Mondays.", "We decided to close on Mondays."),
        ("Please write down that we agreed on nine euros.", "We agreed on nine euros."),
    ],
)
def test_a_decision_is_the_whole_sentence_without_the_request_to_note_it(said: str, decided: str) -> None:
    assert outline(read(said)).decisions == (decided,)


def test_asking_to_note_a_decision_is_no_decision() -> None:
    assert outline(read("Please note what we decided about Carl.")).decisions == ()
