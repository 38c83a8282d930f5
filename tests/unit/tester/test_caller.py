"""The scripted caller, without a line: what it answers, and what it never does."""

from collections.abc import Sequence

import pytest

from aftercall.tester.caller import Caller
from aftercall.tester.models import ChatMessage, ModelCaller, write_prompt
from aftercall.tester.phrases import asked_fields, find_any, likeness, word_error_rate
from unit.tester.calls import scenario_of

CLINIC = scenario_of("""
caller_context:
  opening: I need a refill.
  verification: {name: Ann Lee, dob: "May 1st, 1990", phone: five five five}
  question_priority: [dob]
  response_stages:
    - {name: dose, when: dose|milligrams, say: [Ten milligrams., Ten.]}
    - {name: pharmacy, say: Please send it to Main Street.}
success: [{said: refill is on its way}]
""")


def caller() -> Caller:
    return Caller(CLINIC, CLINIC.calls[0], 1)


async def test_the_opening_comes_first_and_once() -> None:
    ann = caller()
    assert (
        await ann.respond("Thanks for calling. How can I help?")
    ).text == "I need a refill."
    assert (await ann.respond("How can I help?")).text != "I need a refill."


@pytest.mark.parametrize(
    "question",
    [
        "What is your DOB?",
        "Can I get your date of birth?",
        "When were you born?",
        "Your birthday, please?",
    ],
)
async def test_a_birthday_is_asked_for_in_many_ways(question: str) -> None:
    assert (await caller().respond(question)).text == "May 1st, 1990"


async def test_the_important_question_is_answered_first() -> None:
    assert (
        await caller().respond("What is your name, and what is your date of birth?")
    ).text == "May 1st, 1990 Ann Lee"


async def test_asked_again_the_caller_says_so() -> None:
    ann = caller()
    await ann.respond("What is your name?")
    again = await ann.respond("Sorry, what was your name?")
    assert again.text == "As I said, Ann Lee"
    assert again.why == "answer:name"


async def test_asked_too_often_the_caller_gives_up() -> None:
    ann = caller()
    moves = [await ann.respond("What is your name?") for _ in range(6)]
    assert moves[4].kind == "hang_up"
    assert moves[4].why == "gave_up:name"


async def test_thanks_for_calling_in_the_first_sentence_ends_nothing() -> None:
    assert (
        await caller().respond("Thank you for calling. Goodbye to waiting!")
    ).kind == "say"


async def test_stages_pick_the_reply_and_variants_follow_each_other() -> None:
    ann = caller()
    await ann.respond("Hello?")
    assert (await ann.respond("Which dose?")).text == "Ten milligrams."
    assert (await ann.respond("Sorry, which dose was it?")).text == "Ten."


async def test_what_was_not_asked_for_is_said_before_the_call_ends() -> None:
    ann = caller()
    await ann.respond("How can I help?")
    await ann.respond("Which dose?")
    assert (
        await ann.respond("Your refill is on its way. Anything else?")
    ).why == "stage:pharmacy"
    assert (await ann.respond("Sure. Anything else?")).why == "closing"
    assert (await ann.respond("Goodbye!")).kind == "hang_up"


async def test_the_callers_own_words_are_no_proof_of_the_goal() -> None:
    ann = caller()
    for agent in ("How can I help?", "Which dose?", "Anything else?"):
        await ann.respond(agent)
    assert (await ann.respond("Okay, anything else?")).why == "check"


async def test_a_caller_who_is_put_on_hold_waits() -> None:
    ann = caller()
    await ann.respond("Hello?")
    assert (await ann.respond("One moment, let me check.")).kind == "wait"


async def test_what_was_heard_can_be_taken_back() -> None:
    ann = caller()
    before = await ann.respond("How can I help?")
    ann.undo_response()
    assert await ann.respond("How can I help?") == before


class FakeModel:
    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)

    async def complete(self, messages: Sequence[ChatMessage], max_tokens: int) -> str:
        return self._answers.pop(0)


async def test_a_played_caller_uses_the_models_words_but_the_scripts_answers() -> None:
    model = FakeModel("I'd love a refill of my pills.", "Yes.", "I need")
    played = ModelCaller(CLINIC, CLINIC.calls[0], 1, model.complete)
    assert (
        await played.respond("How can I help?")
    ).text == "I'd love a refill of my pills."
    assert (await played.respond("What is your name?")).text == "Ann Lee"
    assert (await played.respond("Are you well?")).text == "Yes."
    assert (await played.respond("Which dose?")).text == "Ten milligrams."


async def test_a_played_caller_takes_back_what_it_heard() -> None:
    model = FakeModel("I'd love a refill of my pills.", "A refill, please.")
    played = ModelCaller(CLINIC, CLINIC.calls[0], 1, model.complete)
    await played.respond("How can")
    played.undo_response()
    move = await played.respond("How can I help?")
    assert (move.kind, move.text) == ("say", "A refill, please.")


def test_the_prompt_holds_the_whole_script() -> None:
    prompt = write_prompt(CLINIC, CLINIC.calls[0])
    assert all(
        words in prompt
        for words in (
            "May 1st, 1990",
            "Ten milligrams.",
            "You are the caller, never the agent",
        )
    )


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("booked|all set", "You're all set!", True),
        ("book", "You are booked.", False),
        ("you * booked", "You are now booked.", True),
        (r"/\d{3}/", "Room 101.", True),
        ("don't know", "I don’t know.", True),
    ],
)
def test_patterns_match_words_not_pieces(pattern: str, text: str, found: bool) -> None:
    assert (find_any((pattern,), text) is not None) == found


def test_statements_ask_for_nothing() -> None:
    assert asked_fields("Your name is on the list. The pharmacy is closed.") == []
    assert asked_fields("May I have your full name and phone number?") == [
        "name",
        "phone",
    ]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("For our records, kindly state your date of birth.", ["dob"]),
        ("Righty. Vintage? Date of birth, that is.", ["dob"]),
        ("Your birthday, please, since many people have one name?", ["dob"]),
        ("If your name changes, please give us a call.", []),
    ],
)
def test_requests_are_understood_and_reasons_are_not_asked_for(
    text: str, fields: list[str]
) -> None:
    assert asked_fields(text) == fields


def test_likeness_and_word_errors() -> None:
    assert (
        likeness("What is your date of birth?", "And your date of birth, please?")
        > 0.75
    )
    assert likeness("What is your name?", "Which day suits you?") < 0.5
    assert word_error_rate("one two three four", "one too three") == 0.5
