"""Facts that only the question before them makes plain."""

import pytest

from aftercall.llm.rules.reader import RulesReader
from unit.llm.calls import call_of


def _facts(script: str) -> list[tuple[str, str]]:
    reading = RulesReader().read(
        call_of(f"A: Hello. | {script} | A: Right.".replace(" | ", "\n"))
    )
    return [(fact.category, fact.text.lower()) for fact in reading.facts]


@pytest.mark.parametrize(
    ("script", "category", "word"),
    [
        (
            "A: And which vehicle is it? | C: Twenty twelve Kangoo van.",
            "technical",
            "kangoo",
        ),
        ("A: What make is the oven? | C: Neff, the double one.", "technical", "neff"),
        (
            "A: Which printer do you have? | C: The old dot matrix one.",
            "technical",
            "matrix",
        ),
        (
            "A: Shall I send it to 4 Hill Road? | C: No, we moved. It's nine Quay Street now.",
            "correction",
            "quay street",
        ),
        (
            "A: Is that 12 Elm Avenue? | C: No. Twenty Elm Avenue.",
            "correction",
            "twenty elm",
        ),
        (
            "A: Where should I send the form? | C: To the club inbox, rowers at example dot org.",
            "preference",
            "rowers",
        ),
        ("C: Hi, it's Nell and Bob, we're both on the line.", "person", "nell"),
        ("C: my sister ann moved to lisbon", "person", "lisbon"),
        ("C: our daughter mia has just moved to york", "person", "york"),
        ("C: i moved to hull", "person", "hull"),
        ("C: i work at bosch now", "person", "bosch"),
        ("C: Our office moved to York.", "person", "york"),
    ],
)
def test_an_answer_is_read_with_its_question(
    script: str, category: str, word: str
) -> None:
    assert any(category == found and word in text for found, text in _facts(script))


@pytest.mark.parametrize(
    "script",
    [
        "C: What's the problem with you people?",
        "C: It's a disease, that football.",
        "C: That's the least you could do.",
        "C: Who is the owner there?",
        "C: i live at home",
        "C: i work for free",
        "A: Is that 12 Elm Avenue? | C: Yes, that's right.",
    ],
)
def test_talk_leaves_no_fact(script: str) -> None:
    assert not _facts(script)
