"""What was put right stands nowhere as it was first said."""

import pytest

from aftercall.llm.rules.reader import RulesReader
from unit.llm.calls import call_of


def _told(script: str) -> str:
    reading = RulesReader().read(
        call_of(f"A: Hello. | {script} | A: Right.".replace(" | ", "\n"))
    )
    return " ".join(
        item.model_dump_json() for item in (*reading.requests, *reading.facts)
    ).lower()


@pytest.mark.parametrize(
    ("script", "wrong", "right"),
    [
        (
            (
                "C: sixty one mill lane the boiler is leaking | A: 61? | C: no sorry sixteen not "
                "sixty one"
            ),
            "sixty one",
            "boiler",
        ),
        (
            "C: Please send twenty two chairs. | A: 22? | C: No, thirty two, not twenty two.",
            "twenty two",
            "chairs",
        ),
        (
            (
                "C: I live in Leeds and the gate is stuck. | A: Leeds? | C: Sorry, Leith, not "
                "Leeds. I live in Leith."
            ),
            "leeds",
            "leith",
        ),
        (
            "C: Book a table for Friday. | A: Friday? | C: No, Saturday, not Friday.",
            "friday",
            "table",
        ),
        (
            "C: Tell Hannah I'm late. | A: Hannah? | C: Anna, not Hannah. | A: I'll tell Anna.",
            "hannah",
            "late",
        ),
    ],
)
def test_the_wrong_value_is_gone_and_the_matter_stays(
    script: str, wrong: str, right: str
) -> None:
    told = _told(script)
    assert wrong not in told
    assert right in told


@pytest.mark.parametrize(
    ("script", "kept"),
    [
        ("C: Book a table for four, not too late. | A: Sure.", "table for four"),
        ("C: I'd like tea, not only coffee. | A: Sure.", "tea"),
        ("C: Not Monday please, but book me a lesson on Tuesday. | A: Sure.", "lesson"),
        ("C: It's not far. Send a taxi to Hill Road. | A: Sure.", "hill road"),
        ("C: I'm not sure, but order two lamps. | A: Sure.", "lamps"),
    ],
)
def test_a_not_that_corrects_nothing_takes_nothing(script: str, kept: str) -> None:
    assert kept in _told(script)
