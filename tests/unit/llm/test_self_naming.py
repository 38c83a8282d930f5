"""How callers say who they are, in writing with and without capitals, and what only sounds like
it.
"""

import pytest

from aftercall.llm.rules.reader import RulesReader
from unit.llm.calls import call_of


def _name(script: str) -> str | None:
    return RulesReader().read(call_of(script)).profile.name


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("hi this is tomas berg from the boat yard", "Tomas Berg"),
        ("yeah hello it's wanda calling about my tyres", "Wanda"),
        ("good morning priya nair here i've got a question", "Priya Nair"),
        ("hello this is oskar lindt i need a plumber", "Oskar Lindt"),
        ("hey um my name is lena and my boiler is dead", "Lena"),
        ("hi i'm pavel from unit nine the door is jammed", "Pavel"),
    ],
)
def test_a_name_needs_no_capitals(said: str, name: str) -> None:
    assert _name(f"A: Hello, front desk.\nC: {said}") == name


@pytest.mark.parametrize(
    "said",
    [
        "hi this is urgent i need a plumber",
        "hello it's raining here and my roof leaks",
        "i'm calling from the highway",
        "this is ridiculous and i want a refund",
        "it's about my order from last week",
        "yeah i'm back from holiday and the fridge is off",
        "this is the third time i call",
        "i'm stuck here on the bridge",
    ],
)
def test_common_words_without_capitals_are_no_names(said: str) -> None:
    assert _name(f"A: Hello, front desk.\nC: {said}") is None


@pytest.mark.parametrize(
    ("asked", "said", "name"),
    [
        ("And your name?", "petra holm", "Petra Holm"),
        ("May I have your name?", "sure it's ravi menon", "Ravi Menon"),
        ("Who am I speaking with?", "um joan", "Joan"),
        ("What name shall I put it under?", "Ferreira is", "Ferreira"),
        ("Could I take your name, please?", "uh yes. Ines Castel.", "Ines Castel"),
    ],
)
def test_a_bare_answer_to_the_question_is_the_name(
    asked: str, said: str, name: str
) -> None:
    assert _name(f"A: Hello.\nC: i need a plumber\nA: {asked}\nC: {said}") == name


@pytest.mark.parametrize(
    ("heard", "echo", "put_right", "name"),
    [
        (
            "Dennis Clark",
            "Dennis Clark?",
            "No, Denise. Denise Clarke.",
            "Denise Clarke",
        ),
        ("Mary Anne Toll", "Marian Toll?", "Mary Ann Toll.", "Mary Ann Toll"),
        ("hugo lang", "Hugo Lang?", "hugh lang", "Hugh Lang"),
        ("Gina Rossi", "Dina Rossi?", "Gina. Gina Rossi.", "Gina Rossi"),
    ],
)
def test_a_name_said_back_wrong_is_put_right(
    heard: str, echo: str, put_right: str, name: str
) -> None:
    assert (
        _name(
            f"A: Your name, please?\nC: {heard}\nA: {echo}\nC: {put_right}\nA: Thank you."
        )
        == name
    )


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Hi, I'm calling from the rowing club. Agnes. Agnes Tull.", "Agnes Tull"),
        ("Morning. Piotr Wolski. I've a parcel to send.", "Piotr Wolski"),
        ("Yes hello. Mrs. Adaeze Obi. It's about the gutters.", "Adaeze Obi"),
        ("Hello there. Jan de Wit. I rent the corner shop.", "Jan de Wit"),
        ("Good evening. Lucy Marsh. We spoke on Monday.", "Lucy Marsh"),
    ],
)
def test_a_sentence_that_is_only_a_full_name_is_the_callers(
    said: str, name: str
) -> None:
    assert _name(f"A: Hello, front desk.\nC: {said}") == name


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Hello.", "Good morning! Am I speaking with the owner?"),
        ("Which branch?", "Queen Street."),
        ("Where is it?", "Harbour Lane."),
        ("Hello.", "Perfect. Thanks. Happy Easter."),
        ("Hello.", "Am I through to sales?"),
        ("What's the patient's name?", "Bella."),
    ],
)
def test_other_short_sentences_name_nobody(asked: str, said: str) -> None:
    assert _name(f"A: {asked}\nC: {said}") is None


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Good day, here is Anneke Vos from the warehouse.", "Anneke Vos"),
        ("Good morning. Myself Ravi Menon, from accounts.", "Ravi Menon"),
        ("Hi, it's Meera from HR, Meera Chaudhuri.", "Meera Chaudhuri"),
        ("It should be under Rosalind Peake. P-E-A-K-E.", "Rosalind Peake"),
        ("Hello. It's Shirl. Shirley Vandenberg, from the mill.", "Shirley Vandenberg"),
    ],
)
def test_callers_name_themselves_in_many_ways(said: str, name: str) -> None:
    assert _name(f"A: Hello, front desk.\nC: {said}") == name


@pytest.mark.parametrize(
    ("said", "answer", "name"),
    [
        ("Eilidh Rennie is the name, about a tyre.", "Certainly.", "Eilidh Rennie"),
        ("Yeah hello mate Kev Doyle here, the tap drips.", "Right.", "Kev Doyle"),
        ("Morning, Pat Tully about the glass.", "I see, Mr Tully.", "Pat Tully"),
        ("It's on Market Street, the shop.", "Which side, Market?", None),
    ],
)
def test_a_caller_is_who_the_agent_speaks_to_by_the_name_just_said(
    said: str, answer: str, name: str | None
) -> None:
    assert _name(f"A: Hello, front desk.\nC: {said}\nA: {answer}") == name


def test_a_colleague_whose_name_is_corrected_is_not_the_caller() -> None:
    script = (
        "A: Service desk.\nC: Hello, here is Anke Petersen. We get a new colleague, Jonas Weidner."
        "\nA: Jonas Weidener?\nC: No, Weidner. W E I D N E R."
    )
    assert _name(script) == "Anke Petersen"


def test_what_a_caller_is_doing_is_no_name() -> None:
    assert _name("A: Hello?\nC: Hello there. I'm needing oil.\nA: Of course.") is None
