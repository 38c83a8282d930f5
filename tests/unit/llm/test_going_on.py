"""What a caller is talking of now: days put forward and taken, matters left for others, what is
said back. All on Tuesday, 3 March 2026.
"""

import pytest

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Reading
from unit.llm.calls import call_of


def _read(script: str) -> Reading:
    return RulesReader().read(
        call_of(f"A: Hello. | {script} | A: Right.".replace(" | ", "\n"))
    )


def _dated(script: str) -> dict[str, str | None]:
    return {
        request.title.lower(): str(request.due) if request.due else None
        for request in _read(script).requests
    }


def _due_of(script: str, word: str) -> str | None:
    [due] = [due for title, due in _dated(script).items() if word in title]
    return due


@pytest.mark.parametrize(
    ("script", "due"),
    [
        ("A: We have Monday at nine. | C: Grand so.", "2026-03-09"),
        (
            (
                "A: We have Monday at nine. | C: Anything later? | A: Thursday the twelfth at "
                "two. | C: That'll do nicely."
            ),
            "2026-03-12",
        ),
        (
            "A: The tenth or the eleventh of June? | C: Eleventh, the tenth's a nightmare.",
            "2026-06-11",
        ),
        (
            (
                "A: We have Monday. | C: Monday I'm away. What about the day after? | A: Tuesday "
                "the tenth? | C: Lovely."
            ),
            "2026-03-10",
        ),
        (
            "A: On the fourteenth? | C: Isn't that a Saturday? Could you do the Monday?",
            "2026-03-16",
        ),
    ],
)
def test_a_day_put_forward_stands_unless_something_is_said_against_it(
    script: str, due: str
) -> None:
    assert _due_of(f"C: I'd like to book a chimney sweep. | {script}", "sweep") == due


@pytest.mark.parametrize(
    "script",
    [
        "C: I'd like to book a chimney sweep. | A: We have Monday at nine. | C: I can't do Monday.",
        (
            "C: I'd like to book a chimney sweep. | A: We have Monday at nine. | C: Hmm, too "
            "early for me."
        ),
        "C: I'd like to book a chimney sweep. | A: Monday's taken, I'm afraid. | C: Okay.",
    ],
)
def test_a_day_turned_down_or_not_to_be_had_is_no_day(script: str) -> None:
    assert _due_of(script, "sweep") is None


def test_a_day_said_of_another_matter_leaves_the_request_alone() -> None:
    script = (
        "C: Please order twelve folding chairs for Friday. | A: Twelve chairs for Friday. "
        "I'll order them. | "
        "C: And is the spring fair on again this year? | A: The fair is on Sunday the tenth "
        "of May. | C: Oh good."
    )
    assert _dated(script) == {"order twelve folding chairs for friday": "2026-03-06"}


def test_what_is_let_be_is_the_matter_last_brought_up() -> None:
    script = (
        "C: Please renew my parking permit. | A: I'll renew it. | C: The garage roof, I was "
        "going to ask about it. I don't know yet. "
        "Leave that for now."
    )
    assert list(_dated(script)) == ["renew my parking permit"]


def test_an_offer_met_with_another_day_is_taken_for_that_day() -> None:
    script = (
        "C: My lease runs out soon. | A: Would you like to come in for a meeting on Thursday? "
        "| C: Friday would be better."
    )
    assert _due_of(script, "meeting") == "2026-03-06"


def test_who_a_message_is_for_may_change_and_the_message_stays() -> None:
    [request] = _read(
        "C: Ask Bettina for the March figures. No, not Bettina. Ask Rolf. | A: I'll ask Rolf."
    ).requests
    assert "figures" in f"{request.title} {request.details}"
    assert request.person == "Rolf"


@pytest.mark.parametrize(
    "script",
    [
        "C: No, don't remind me, I've got it written down.",
        "C: I didn't think anyone'd pick up at this hour.",
        "C: Can you book the, or, do people just turn up? | A: They just turn up.",
        "C: My uncle's forever at me, get a dog, get a dog.",
        "C: Don't ring me. Text me, I never hear the phone. | A: We'll text.",
    ],
)
def test_what_is_denied_broken_off_quoted_or_only_a_way_to_be_reached_is_no_request(
    script: str,
) -> None:
    assert not _read(script).requests


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("You must block it.", "block"),
        ("i need um my walking boots resoled", "boots"),
        ("Could you go ahead and water the ferns?", "water"),
        ("I want somebody from the finance office to phone me.", "phone"),
    ],
)
def test_a_wish_is_heard_through_hesitation_and_however_it_is_framed(
    said: str, word: str
) -> None:
    assert any(
        word in f"{request.title} {request.words}".lower()
        for request in _read(f"C: {said}").requests
    )


def test_what_was_broken_off_or_denied_is_kept_nowhere() -> None:
    reading = _read(
        "C: Please deliver my sofa. | A: To which flat? | C: Flat nine no eleven. My cousin "
        "will be there for, no. I'll be in."
    )
    said = " ".join(
        (
            *(f"{item.words} {item.details}" for item in reading.requests),
            *(item.words for item in reading.facts),
        )
    )
    assert "cousin" not in said
    assert "nine" not in said


def test_the_weekday_it_still_is_for_the_caller_decides_what_tomorrow_means() -> None:
    assert _dated(
        "C: It's still Monday here. Remind me tomorrow to feed the hens."
    ) == {"remind me tomorrow to feed the hens": "2026-03-03"}
