"""Second thoughts: what is called off, given up or put off is no request; what is only changed
still is.
"""

import pytest

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Reading
from unit.llm.calls import call_of


def _read(script: str) -> Reading:
    return RulesReader().read(
        call_of(f"A: Hello. | {script} | A: Bye.".replace(" | ", "\n"))
    )


@pytest.mark.parametrize(
    ("script", "left"),
    [
        (
            (
                "C: I'd like to book a session. | A: It's sixty pounds. | C: Oh that's more "
                "than I thought. I'll leave it, "
                "thanks. | A: No problem."
            ),
            0,
        ),
        (
            (
                "C: Order me a skip for Friday. | A: Okay. Anything else? | C: No. Actually, "
                "you know what, cancel the skip. My "
                "brother has a van. | A: Cancelled."
            ),
            0,
        ),
        (
            (
                "C: Can you remind me on Monday about the rent? | A: Sure. | C: Oh wait, I've "
                "set up a standing order. Don't "
                "bother. | A: Okay."
            ),
            0,
        ),
        (
            (
                "C: Send a card to Aunt Vi. And flowers. | A: Both? | C: No, just the card. | A: "
                "Just the card."
            ),
            1,
        ),
        (
            (
                "C: I want to complain about the driver. | A: I'm sorry, I'll log that. | C: "
                "No, don't log it, I don't want him "
                "in trouble. | A: Understood."
            ),
            0,
        ),
        (
            (
                "C: Please have Lena call me. | A: I'll ask her. | C: Oh she's just texted me. No "
                "need then. | A: Okay."
            ),
            0,
        ),
        (
            (
                "C: Could you put me on the list for Saturday's hike? | A: Done. | C: Sorry, "
                "I've just seen it's my niece's "
                "birthday. Take me off again. | A: Removed."
            ),
            0,
        ),
        (
            (
                "C: I need a new filter and a hose. | A: Okay. | C: The hose can wait actually. | "
                "A: Just the filter."
            ),
            1,
        ),
        (
            (
                "C: Book the early train. | A: The 6.10? | C: Ugh, no. Let's not. I'll drive. | "
                "A: Okay."
            ),
            0,
        ),
        (
            (
                "C: I'd like to change my seat. | A: To where? | C: Window. Oh, you know, it's "
                "fine, leave it where it is. | A: Alright."
            ),
            0,
        ),
        (
            (
                "C: Can I get an extra blanket sent up? | A: Sure. | C: Oh, found one. We're "
                "good. | A: Great."
            ),
            0,
        ),
        (
            (
                "C: Can you ask the doctor to call? | A: Yes. | C: Hmm. No. It's silly, I'll wait "
                "for my appointment. | A: Okay."
            ),
            0,
        ),
        (
            (
                "C: Cancel my Thursday class please. | A: Sure. | C: No wait, don't cancel. I can "
                "make it. | A: I'll keep it."
            ),
            0,
        ),
        (
            (
                "C: We'd like to add breakfast. | A: It's twelve each. | C: Twelve? No, skip "
                "breakfast. | A: Okay."
            ),
            0,
        ),
        (
            (
                "C: I asked this morning for a cot. We don't need it any more. | A: I'll take "
                "that off."
            ),
            0,
        ),
        (
            "C: Get me a quote on the blue tiles. Scratch that, the grey ones. | A: Grey tiles.",
            1,
        ),
        (
            (
                "C: Could you water my plants Friday? | A: Yes. | C: Forget Friday, my son will "
                "do it. | A: Ok."
            ),
            0,
        ),
        (
            (
                "C: I want to return the jacket. | A: Sure. | C: Although, hm, maybe I'll keep "
                "it. Yeah I'll keep it. | A: Okay."
            ),
            0,
        ),
        (
            (
                "C: Text Bob I'm late. | A: Texting. | C: Too late, he's here. Don't send it. | "
                "A: Not sent."
            ),
            0,
        ),
        (
            (
                "C: Reserve me a bike. | A: For tomorrow? | C: Yes. Oh no, it's going to rain. "
                "Let's call it off. | A: Off it is."
            ),
            0,
        ),
        (
            "C: I was going to ask you to book a cab but my neighbour's driving me. | A: Nice.",
            0,
        ),
        ("C: Put two on hold. No, three. | A: Three.", 1),
        ("C: I'd like a wake-up call at six. Or seven. Seven. | A: Seven.", 1),
        (
            (
                "C: I want to book a tour but only if it's in Welsh. | A: It isn't. | C: Then no. "
                "| A: Sorry."
            ),
            0,
        ),
        (
            (
                "C: Can you deliver today? | A: Only tomorrow. | C: That's no use to me then. | "
                "A: Sorry."
            ),
            0,
        ),
    ],
)
def test_only_what_still_stands_is_asked_for(script: str, left: int) -> None:
    assert len(_read(script).requests) == left


@pytest.mark.parametrize(
    ("script", "left"),
    [
        ("C: Cancel the review. No, hang on, keep it. | A: Keeping it.", 0),
        ("C: Please cancel my lesson. | A: Sure? | C: No, keep the lesson.", 0),
        ("C: Stop the papers for August. Actually, keep them. | A: Fine.", 0),
        ("C: Skip this week's box. | A: Okay. | C: Oh, let's keep it after all.", 0),
        ("C: Cancel my table. | A: Done. | C: Actually no, I'll keep it.", 0),
        ("C: Cancel my table. | A: Done. | C: Thanks. I'll keep the receipt.", 1),
    ],
)
def test_keeping_what_was_to_end_calls_the_ending_off(script: str, left: int) -> None:
    assert len(_read(script).requests) == left
