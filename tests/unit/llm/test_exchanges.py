"""What passes between agent and caller: matter asked for, offers taken, slots repeated, second
thoughts. All on Tuesday, 3 March 2026.
"""

import pytest

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Reading
from unit.llm.calls import call_of


def _read(script: str) -> Reading:
    return RulesReader().read(call_of(script.replace(" | ", "\n")))


def _asked(reading: Reading) -> list[str]:
    return [
        f"{request.title} {request.details} {request.words}".lower()
        for request in reading.requests
    ]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            (
                "A: What do you need for the fair? | C: The small tent. Two days in May. | A: "
                "I'll put that down."
            ),
            "small tent",
        ),
        (
            (
                "A: What does the piano need? | C: Tuning, and there's a sticky key. | A: We can "
                "do that."
            ),
            "tuning",
        ),
        (
            "A: What can I get you? | C: Two trays of lasagne for Friday. | A: Right.",
            "lasagne",
        ),
        (
            "A: What would you like done? | C: New soles on both boots. | A: Okay, soles on both.",
            "soles",
        ),
        (
            "A: What are you looking for? | C: A child seat, for three days. | A: We have those.",
            "child seat",
        ),
    ],
)
def test_a_bare_thing_named_when_asked_what_is_needed_is_a_request(
    script: str, words: str
) -> None:
    assert len(asked := _asked(_read(script))) == 1
    assert words in asked[0]


@pytest.mark.parametrize(
    "script",
    [
        "A: How can I help? | C: Just a question about parking. | A: Sure.",
        "A: What can I do for you? | C: Nothing really. Just a chat. | A: Happy to.",
        "A: What's up? | C: Not much. You? | A: All good.",
        "A: How can I help? | C: Good morning. Anna Petersen from the bank. | A: Hello Anna.",
        "A: What do you need? | C: No idea, to be honest. | A: Okay.",
        "A: What are you looking for? | C: The opening hours. | A: Nine to five.",
        "A: What sport do you like? | C: Rugby. Since school. | A: Nice.",
    ],
)
def test_small_talk_answers_ask_for_nothing(script: str) -> None:
    assert not _asked(_read(script))


@pytest.mark.parametrize(
    ("script", "words", "due"),
    [
        (
            (
                "C: The dryer is dead. | A: Sorry. I can send someone out tomorrow between two "
                "and four. | C: Tomorrow. Fine."
            ),
            "dryer",
            "2026-03-04",
        ),
        (
            (
                "C: My gate won't open. | A: We could have a fitter there on Thursday. | C: Okay, "
                "Thursday then."
            ),
            "gate",
            "2026-03-05",
        ),
        (
            "C: Our lift is stuck. | A: I can get an engineer to you today. | C: Good. Do that.",
            "lift",
            "2026-03-03",
        ),
        (
            (
                "C: The freezer stopped working. | A: Somebody can come on Friday morning. | C: "
                "Friday works."
            ),
            "freezer",
            "2026-03-06",
        ),
        (
            (
                "C: My screen is cracked. | A: I could fit you in tomorrow at ten. | C: Yes, ten "
                "is good."
            ),
            "screen",
            "2026-03-04",
        ),
    ],
)
def test_help_offered_for_a_fault_is_the_same_request_with_its_day(
    script: str, words: str, due: str
) -> None:
    reading = _read(f"A: Hello. | {script} | A: Good.")
    assert [
        (words in text, str(request.due))
        for text, request in zip(_asked(reading), reading.requests, strict=True)
    ] == [(True, due)]


@pytest.mark.parametrize(
    ("script", "kept", "gone"),
    [
        (
            (
                "C: Cancel my lessons. | A: I can give you one free. Do you still want to cancel? "
                "| C: No, leave it."
            ),
            "",
            "lessons",
        ),
        (
            (
                "C: I'd like to order a cake. | A: It's ninety pounds. Do you still want the "
                "cake? | C: No, not at that price."
            ),
            "",
            "cake",
        ),
        (
            (
                "C: Book me a taxi and order flowers. | A: Taxis take an hour. Still want the "
                "taxi? | C: No."
            ),
            "flowers",
            "taxi",
        ),
        (
            (
                "C: Could you send the brochure and a sample? | A: So no sample? | C: No sample, "
                "just the brochure."
            ),
            "brochure",
            "",
        ),
        (
            (
                "C: Please reserve the hall. | A: It's shut in May. Would you still like the "
                "hall? | C: Hm, no."
            ),
            "",
            "hall",
        ),
    ],
)
def test_a_no_to_do_you_still_want_it_calls_it_off(
    script: str, kept: str, gone: str
) -> None:
    reading = _read(f"A: Hello. | {script} | A: All right.")
    assert all(kept in text for text in _asked(reading))
    assert bool(reading.requests) == bool(kept)
    assert not gone or any(gone in item.title.lower() for item in reading.withdrawn)


@pytest.mark.parametrize(
    "script",
    [
        "C: Book me a taxi. | A: Do you still want the taxi at six? | C: Yes please.",
        "C: Book me a taxi. | A: It's dearer now, do you still want it? | C: Yeah, go ahead.",
        "C: Book me a taxi. | A: Would you like a receipt by post? | C: No thanks.",
        "C: Book me a taxi. | A: Do you need a child seat? | C: No.",
        "C: Book me a taxi. | A: Is the address still Hill Road? | C: No, it's Park Road now.",
    ],
)
def test_other_answers_leave_the_request_alone(script: str) -> None:
    assert len(_read(f"A: Hello. | {script} | A: All right.").requests) == 1


@pytest.mark.parametrize(
    ("script", "due"),
    [
        (
            (
                "C: I'd like a massage. | A: The twelfth is taken. The thirteenth is free. | C: "
                "Then the thirteenth."
            ),
            "2026-03-13",
        ),
        (
            "C: I need a fitting. | A: I have Thursday at nine or at two. | C: Nine.",
            "2026-03-05",
        ),
        (
            "C: Could I book a lesson? | A: Same time, Monday at five? | C: Monday at five, yeah.",
            "2026-03-09",
        ),
        (
            (
                "C: I want to book the sauna. | A: The first free evening is Friday the sixth "
                "at seven. | C: yeah that works friday"
            ),
            "2026-03-06",
        ),
        (
            "C: I'd like to see the flat. | A: Tomorrow at noon? | C: noon good",
            "2026-03-04",
        ),
    ],
)
def test_a_slot_repeated_is_a_slot_taken(script: str, due: str) -> None:
    assert [
        str(request.due)
        for request in _read(f"A: Hello. | {script} | A: Booked.").requests
    ] == [due]


@pytest.mark.parametrize(
    "script",
    [
        "C: I'd like a massage. | A: I have the thirteenth. | C: Not the thirteenth.",
        "C: I'd like a massage. | A: How about Thursday? | C: Thursday's no good.",
        "C: I'd like a massage. | A: How about Thursday? | C: I can't do Thursday.",
        "C: I'd like a massage. | A: How about Thursday? | C: Hm, what else is there?",
        "C: I'd like a massage. | A: We're closed on Thursday. | C: Oh. Okay.",
    ],
)
def test_a_slot_refused_is_no_day(script: str) -> None:
    assert [
        request.due for request in _read(f"A: Hello. | {script} | A: Hm.").requests
    ] == [None]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            (
                "C: I'd like to rent a van on Friday. | A: Sure. | C: And do I get a sat nav? "
                "| A: We have one. Would you like "
                "it? | C: Yes please."
            ),
            "sat nav",
        ),
        (
            (
                "C: Could I book a room? | A: Yes. | C: Do you have a cot? | A: We do, shall I "
                "add one? | C: Please."
            ),
            "cot",
        ),
        (
            (
                "C: I need a dress altered. | A: Sure. | C: Do you do pressing too? | A: We do. "
                "Shall I put that on? | C: Yeah."
            ),
            "pressing",
        ),
        (
            (
                "C: Book me a cab. | A: Done. | C: Is there a bike rack? | A: On some, do you "
                "want one? | C: Yes."
            ),
            "bike rack",
        ),
        (
            (
                "C: I'd like to hire the hall. | A: Good. | C: Have you got a projector? | A: "
                "Yes, do you want it set up? | C: Go on then."
            ),
            "projector",
        ),
    ],
)
def test_a_thing_asked_after_then_offered_and_taken_is_a_request(
    script: str, words: str
) -> None:
    asked = _asked(_read(f"A: Hello. | {script} | A: Right."))
    assert len(asked) == 2
    assert any(words in text for text in asked)


@pytest.mark.parametrize(
    "script",
    [
        (
            "C: Book me a cab. | A: Done. | C: Do you have a bike rack? | A: On some. | C: Good "
            "to know."
        ),
        "C: Book me a cab. | A: Done. | C: Do I get a receipt? | A: By email, always. | C: Great.",
        (
            "C: Book me a cab. | A: Done. | C: Is there a bike rack? | A: Yes, do you want one? | "
            "C: No, just curious."
        ),
        (
            "C: Book me a cab. | A: For six? | C: Do you have seven? | A: Yes. Shall I make it "
            "seven? | C: Please."
        ),
        "C: Book me a cab. | A: Done. | C: Do you take cards? | A: We do. | C: Perfect, thanks.",
    ],
)
def test_a_thing_only_asked_after_is_none(script: str) -> None:
    assert len(_read(f"A: Hello. | {script} | A: Right.").requests) == 1
