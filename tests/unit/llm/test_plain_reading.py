"""Silence instead of nonsense: what people see of a call is whole, or is not shown."""

import pytest

from aftercall.english.clauses import stands_alone
from aftercall.english.text import normalise
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Reading
from aftercall.testing import make_call
from unit.llm.calls import call_of


def _read(script: str) -> Reading:
    return RulesReader().read(call_of(script.replace(" | ", "\n")))


@pytest.mark.parametrize(
    ("said", "is_whole"),
    [
        ("I work nights at the hospital", True),
        ("my sister is allergic to nuts", True),
        ("please always use the side door", True),
        ("It's eleven foot four", False),
        ("also the bell", False),
        ("he has got the key", False),
        ("I can't remember and I suppose", False),
        ("I'll pick it up", False),
    ],
)
def test_a_fact_has_a_subject_a_verb_and_a_value(said: str, is_whole: bool) -> None:
    assert stands_alone(normalise(said).text) is is_whole


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Never call before nine.", "Never call before nine"),
        ("I get up at six every morning.", "I get up at six every morning"),
        (
            "It's Dana Fox again, and I prefer to be called in the evening.",
            "I prefer to be called in the evening",
        ),
    ],
)
def test_plain_words_are_a_fact_that_begins_where_it_is_told(
    said: str, told: str
) -> None:
    call = make_call([("agent", "Hello."), ("caller", said), ("agent", "I see.")])
    assert told in [fact.text for fact in RulesReader().find_facts(call).value]


def test_a_fact_about_somebody_says_who_it_is() -> None:
    facts = _read(
        "A: Anything else? | C: My son Bjorn is six. He is allergic to nuts. | A: Noted."
    ).facts
    told = [fact.text for fact in facts]
    assert "He is allergic to nuts" not in told
    assert any("Bjorn" in text and "allergic to nuts" in text for text in told)


def test_a_code_is_labelled_by_what_was_asked_for() -> None:
    (fact,) = _read(
        "A: I need your staff PIN, please. | C: Let me look. It's seven one four six. | A: Ok."
    ).facts
    assert fact.visibility == "secret"
    assert fact.text.lower().startswith("pin") or "PIN" in fact.text
