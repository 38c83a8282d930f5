"""Whose day is it: days said around a request belong to it unless they are about something
else. All on Tuesday, 3 March 2026.
"""

import pytest

from aftercall.llm.rules.reader import RulesReader
from unit.llm.calls import call_of


def _dues(script: str) -> list[str | None]:
    reading = RulesReader().read(
        call_of(f"A: Hello. | {script} | A: Right.".replace(" | ", "\n"))
    )
    return [str(request.due) if request.due else None for request in reading.requests]


@pytest.mark.parametrize(
    ("script", "due"),
    [
        (
            (
                "C: I need a wedding cake. | A: How many tiers? | C: Three, with lilac icing. We "
                "need it by the twentieth."
            ),
            "2026-03-20",
        ),
        (
            (
                "C: Could you print two hundred flyers? | A: Sure. | C: It'd have to be Thursday "
                "at the latest."
            ),
            "2026-03-05",
        ),
        (
            "C: Please have the manager call me. | A: Of course. | C: He should ring me today.",
            "2026-03-03",
        ),
        (
            "C: I want to talk to the head nurse. Have her call me tomorrow. | A: I will.",
            "2026-03-04",
        ),
        (
            "C: Can you service my bike? | A: Sure. | C: I'm free Friday, if that helps.",
            "2026-03-06",
        ),
        (
            "C: I'd like my suit cleaned. | A: Okay. | C: I was hoping for Saturday.",
            "2026-03-07",
        ),
        (
            (
                "C: Send me the contract, would you. | A: To which address? | C: The office one, "
                "and I'd want it before Monday."
            ),
            "2026-03-08",
        ),
        (
            "C: Can you mow the lawn? The best day would be the ninth. | A: Noted.",
            "2026-03-09",
        ),
        (
            (
                "C: Could they bring the new bed? | A: On Friday? | C: Yes. And can they take the "
                "old one the same day? | A: Yes."
            ),
            "2026-03-06",
        ),
    ],
)
def test_a_day_around_a_request_is_its_day(script: str, due: str) -> None:
    assert _dues(script)[-1:] == [due]


@pytest.mark.parametrize(
    "script",
    [
        (
            "C: I need a wedding cake. | A: How many tiers? | C: Three. My sister flies in on the "
            "twentieth."
        ),
        "C: Could you print two hundred flyers? | A: Sure. | C: I'm away on Thursday.",
        (
            "C: Please have the manager call me. | A: Of course. | C: I saw him on Monday and he "
            "was rude."
        ),
        "C: Can you service my bike? | A: Sure. | C: I'm running a race on Sunday, you know.",
        "C: I'd like my suit cleaned. | A: Okay. | C: I wore it last Saturday.",
        "C: Tell Rosa the train gets in on Friday. | A: I'll tell her.",
        "C: Can you put a note on my file that I move on Friday? | A: Done.",
        "C: Could you fix the tap? | A: Sure. | C: It's been dripping since Sunday.",
        (
            "C: Could you send me a catalogue? | A: Sure. | C: We open our own shop on the first "
            "of April."
        ),
    ],
)
def test_days_of_other_things_are_not(script: str) -> None:
    assert _dues(script) == [None]


@pytest.mark.parametrize(
    ("said", "due"),
    [
        ("He has a fever and won't be in today.", "2026-03-03"),
        ("Mia's not coming in tomorrow, she's got the flu.", "2026-03-04"),
        ("I'm off sick, I won't be at work today.", "2026-03-03"),
        ("She's got a temperature so she isn't coming in today.", "2026-03-03"),
        ("Tom won't be in on Thursday, stomach bug.", "2026-03-05"),
    ],
)
def test_an_absence_is_for_its_day(said: str, due: str) -> None:
    assert _dues(f"A: School absence line. | C: {said} | A: I'll mark that.") == [due]
