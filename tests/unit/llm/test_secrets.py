import pytest

from aftercall.llm.rules import RulesReader
from aftercall.model.reading import Reading
from unit.llm.calls import call_of


def _read(script: str) -> Reading:
    return RulesReader().read(call_of(script))


def _open_text(reading: Reading) -> str:
    facts = (fact for fact in reading.facts if fact.visibility != "secret")
    items = " ".join(item.model_dump_json() for item in (*reading.requests, *reading.withdrawn, *reading.promises, *facts))
    return f"{reading.summary} {items}".lower()


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("My PIN is four four two one.", "four four two one"),
        ("The password is purple walrus nine.", "purple walrus nine"),
        ("The card number is 4111 1111 1111 1111.", "4111"),
        ("My member number is 778 201.", "778"),
        ("The safe code is nine one one seven.", "nine one one seven"),
        ("I was diagnosed with lupus last year.", "lupus"),
        ("I'm selling the company in May, don't tell anyone.", "selling the company"),
        ("Keep this between us, my marriage is over for good.", "my marriage is over"),
    ],
)
def test_a_secret_is_a_secret_fact_and_nothing_else(said: str, value: str) -> None:
    reading = _read(f"A: Hello?\nC: {said} Can you book me a table for Friday?\nA: I'll book it, and I have {value}.\nC: Thanks.")
    assert [fact.visibility for fact in reading.facts if value in fact.words.lower()] == ["secret"]
    assert value not in _open_text(reading)
    assert [request.kind for request in reading.requests] == ["booking"]


def test_a_code_the_agent_asked_for_is_secret() -> None:
    reading = _read("A: What is your PIN?\nC: It's 90 12.\nA: Thanks, 9012.")
    assert [fact.visibility for fact in reading.facts] == ["secret"]
    assert "9012" not in _open_text(reading)


@pytest.mark.parametrize(
    "said", ["I forgot my password.", "I'll change the password tonight.", "Is the car park safe?", "We are 12 people."]
)
def test_talking_of_codes_reveals_none(said: str) -> None:
    assert not [fact for fact in _read(f"A: Hello?\nC: {said}").facts if fact.visibility == "secret"]
