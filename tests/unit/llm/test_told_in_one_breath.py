"""What a turn brings up itself is what its own pronouns, days and second thoughts are about."""

import pytest

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Reading, Request
from unit.llm.calls import call_of


def _read(script: str) -> Reading:
    return RulesReader().read(call_of(script.replace(" | ", "\n")))


def _told(request: Request) -> str:
    return f"{request.title} {request.details} {request.words}".lower()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            (
                "C: Open a bug about the login page. | A: Done. | C: And open a bug about the "
                "export button. | A: Done."
            ),
            ["login", "export"],
        ),
        (
            (
                "C: Could we get a cot? | A: Sure. | C: And I booked the lobster dinner. Can you "
                "cancel that? | A: Cancelled."
            ),
            ["cot", "lobster"],
        ),
        (
            (
                "C: Raise a ticket about the queue. | A: Done. | C: I won't be at the stand-up, "
                "tell Grace that. | A: I will."
            ),
            ["queue", "grace"],
        ),
        (
            (
                "C: One, send the term sheet to Brigid. | A: Okay. | C: Two, I owe Tom the "
                "payroll numbers, but he has them, so ignore that."
            ),
            ["term sheet"],
        ),
        (
            (
                "C: Book a table for six. | A: Done. | C: Do you do corkage? | A: Twenty a "
                "bottle. | C: Okay, forget that."
            ),
            ["table"],
        ),
        (
            (
                "C: Post me the form. | A: I will. | C: My brother says ask for a discount. "
                "Don't. | A: Okay."
            ),
            ["form"],
        ),
        (
            (
                "C: I'd like a sitter for Saturday. | A: Sure. | C: Could we have Jodie? | A: "
                "Jodie it is."
            ),
            ["sitter"],
        ),
        (
            (
                "C: Is the certificate ready? | A: It is. Shall I email you the certificate? | C: "
                "Post it, please. | A: By post."
            ),
            ["certificate"],
        ),
        ("C: Where can the driver put the bus? | A: Behind the mill. | C: Thanks.", []),
        (
            "C: Could you read me her number? | A: No, I can't share numbers. | C: Fine.",
            [],
        ),
        (
            (
                "C: Is that Owen's Tyres? I've a puncture, can you send a man? | A: I'm afraid "
                "not. This is a guest house."
            ),
            [],
        ),
        (
            (
                "C: Have you got anything left for the matinee? | A: Two seats in row K. | C: "
                "I'll take them. | A: Yours."
            ),
            ["matinee"],
        ),
    ],
)
def test_each_thing_wanted_is_one_request(script: str, words: list[str]) -> None:
    requests = _read(f"A: Hello. | {script}").requests
    assert len(requests) == len(words), requests
    assert all(
        word in _told(request) for word, request in zip(words, requests, strict=True)
    )


@pytest.mark.parametrize(
    ("script", "due"),
    [
        (
            (
                "C: Write Brandt a reminder. | A: When should it go? | C: Tomorrow. Not today, "
                "today is a holiday. | A: Okay."
            ),
            "2026-03-04",
        ),
        (
            (
                "C: Fix slide six. | A: I'll ask them. | C: Oh, my mam's birthday. It's Sunday. | "
                "A: Noted."
            ),
            None,
        ),
        (
            (
                "C: Send the deck to Ana. | A: I will. | C: The board meeting itself is the "
                "thirtieth. | A: Okay."
            ),
            None,
        ),
        (
            "C: Ask him before Thursday if the tenth suits him. | A: I'll ask.",
            "2026-03-04",
        ),
        ("C: Tell Rosa the train gets in on Friday. | A: I'll tell her.", None),
        (
            (
                "C: Put new tape on the bars. | A: Sure. | C: I want the lot done by Friday. | A: "
                "Friday."
            ),
            "2026-03-06",
        ),
        (
            (
                "C: Book us a room from the fourteenth. | A: Of this month? | C: No, April. | A: "
                "The fourteenth of April."
            ),
            "2026-04-14",
        ),
        (
            (
                "C: I'd like a plumber. | A: I have Friday at nine. | C: That works for me. | A: "
                "Booked."
            ),
            "2026-03-06",
        ),
        (
            (
                "C: Book an eye test for next week. | A: Half five on the Thursday? | C: That "
                "works. | A: Thursday the twelfth."
            ),
            "2026-03-12",
        ),
        ("C: Ring Mrs Cole in the morning. | A: I will.", "2026-03-04"),
        (
            "C: Remind me in April about the rent. | A: When? | C: The first Monday. | A: Okay.",
            "2026-04-06",
        ),
        (
            (
                "C: Please check the brakes. | A: I will. | C: What time do you close tomorrow? | "
                "A: Six."
            ),
            None,
        ),
    ],
)
def test_a_day_belongs_to_what_it_is_said_of(script: str, due: str | None) -> None:
    requests = _read(f"A: Hello. | {script}").requests
    assert [str(request.due) if request.due else None for request in requests] == [due]


@pytest.mark.parametrize(
    ("script", "wrong"),
    [
        (
            (
                "A: Your address? | C: Seven Tannery Close. | A: Seventeen Tannery Close? | C: "
                "Seven. Just seven."
            ),
            "seventeen",
        ),
        (
            (
                "C: It's about my nephew's bracelet. | A: His bracelet? | C: Braces, his braces. "
                "The wire came off."
            ),
            "bracelet",
        ),
        (
            (
                "C: The deck still says eleven customers, it's fourteen now, get somebody to fix "
                "slide six. | A: I will."
            ),
            "eleven",
        ),
        (
            (
                "C: My friend Kim wants a visit too but she can ring you herself. Book me in for "
                "Monday. | A: Monday."
            ),
            "kim",
        ),
        (
            (
                "C: Fix my laptop. | A: I will. | C: And Rohit's mouse is broken. | A: Rohit "
                "would have to report that himself."
            ),
            "rohit",
        ),
        (
            (
                "C: Order me a cake. | A: Okay. | C: If I win the lottery I'll order a boat as "
                "well. | A: Ha."
            ),
            "boat",
        ),
    ],
)
def test_what_was_misheard_or_is_not_theirs_stands_nowhere(
    script: str, wrong: str
) -> None:
    reading = _read(f"A: Hello. | {script}")
    facts = " ".join(f"{fact.text} {fact.words}" for fact in reading.facts).lower()
    assert wrong not in " ".join(map(_told, reading.requests)) + facts


@pytest.mark.parametrize(
    ("script", "name", "zone"),
    [
        (
            "A: Mr. Pruitt? | C: Prewett. P R E W E T T. Lorcan Prewett.",
            "Lorcan Prewett",
            None,
        ),
        (
            "A: Surname? | C: Van der Berg. | A: And your first name? | C: Liesbeth.",
            "Liesbeth Van der Berg",
            None,
        ),
        (
            "A: Hello. | C: Hello, good morning, Ananya Deshpande from the Pune office.",
            "Ananya Deshpande",
            None,
        ),
        (
            "A: Hello. | C: Me again, Reinhold, from the coach company.",
            "Reinhold",
            None,
        ),
        (
            (
                "A: Who's it by? | C: Jean Abernethy, I think. | A: And your own name? | C: "
                "Concepta Mulhern."
            ),
            "Concepta Mulhern",
            None,
        ),
        ("A: Hello. | C: It's Hollow Farm, on the Tring road.", None, None),
        ("A: Hello. | C: Hi, Leo Brandt in year four won't be in today.", None, None),
        (
            "A: Hello. | C: I'm in Winnipeg, so it's still Friday here.",
            None,
            "America/Winnipeg",
        ),
        ("A: Hello. | C: My sister's in Winnipeg, it's cold there.", None, None),
    ],
)
def test_callers_are_known_by_what_they_say_of_themselves(
    script: str, name: str | None, zone: str | None
) -> None:
    profile = _read(script).profile
    assert (profile.name, profile.timezone) == (name, zone)


@pytest.mark.parametrize(
    ("said", "secret"),
    [
        ("My pin for the phone line is four four one two.", "four four one two"),
        ("The PIN's the year I was born, nineteen sixty one.", "nineteen sixty one"),
        (
            "It's four eight five, double seven, no sorry, double six three, that's my NHS number.",
            "double six three",
        ),
        ("The combination's left twelve, right four, left thirty.", "left thirty"),
        ("The wifi code is blue kettle nine.", "blue kettle nine"),
        ("Her dad and I separated. We've not told people yet.", "separated"),
        ("You're not to tell Karen, we're letting the flat go.", "letting the flat go"),
        ("He's got MND, so he can't hold a pen.", "mnd"),
    ],
)
def test_what_is_told_to_one_ear_is_told_nowhere_else(said: str, secret: str) -> None:
    reading = _read(f"A: Hello. | C: {said} Could you send me a form? | A: I will.")
    assert [
        fact
        for fact in reading.facts
        if fact.visibility == "secret" and secret in f"{fact.text} {fact.words}".lower()
    ]
    open_facts = " ".join(
        f"{fact.text} {fact.words}"
        for fact in reading.facts
        if fact.visibility != "secret"
    ).lower()
    assert secret not in open_facts + " ".join(map(_told, reading.requests))
