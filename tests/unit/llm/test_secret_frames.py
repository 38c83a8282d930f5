"""A secret planted anywhere in a call stands in a secret fact and nowhere else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Reading
from unit.llm.calls import call_of

CODES = (
    "four four one nine",
    "4419",
    "4 4 1 9",
    "forty four nineteen",
    "double four one nine",
    "4-4-1-9",
)
# How a code is told; `{}` is where it stands.
CODE_FRAMES = (
    "My PIN is {}.",
    "my pin's {} if you need it",
    "The PIN, uh, it's {}.",
    "The door code is {}.",
    "There's a key safe by the door, {}, but don't write that on the van.",
    "The key safe, my brother changed the code, it's now {}.",
    "The alarm code's {}, you've got thirty seconds.",
    "Just punch in {} at the gate.",
    "To get into the building use the code {} and then the bell.",
    "The safe combination is {}.",
    "It's the Visa ending {}.",
    "My debit card. It ends with {}.",
    "The last four of the card are {}.",
    "My member number's {}.",
    "Membership number {}, if that helps.",
    "My account number is {}.",
    "Social security number is {}.",
    "The lockbox is {}.",
    "{}, that's the door code.",
    "The security code on the back is {}.",
    "my passcode is {} by the way",
    "And the PIN stays the same? Because mine is {} and I don't want to learn another.",
)
ASKED_FRAMES = (
    ("What's the PIN?", "{}."),
    ("I need a card for the deposit.", "Take down. {}."),
    ("Could you read me the last four digits of the card?", "Yes, {}."),
    ("And your member number, please?", "um {}"),
    ("Is there a door code?", "There is, {}."),
)
WORDS = ("purple walrus", "blue heron ninety one", "Lachs minus seven", "trombone")
WORD_FRAMES = (
    "The password is {}.",
    "My password's {}, I think.",
    "I use the same password as my email, it's uh {}.",
    "And my password expired. I typed {}, oh, I should not say that.",
    "My security word is {}.",
    "the wifi password is {}",
)
ILLNESSES = (
    "Parkinson's",
    "type two diabetes",
    "lupus",
    "breast cancer",
    "epilepsy",
    "bipolar disorder",
    "colitis",
)
ILLNESS_FRAMES = (
    "They've told us it's {} now.",
    "I was diagnosed with {} in January.",
    "I've got {}, so mornings are hard.",
    "My mother has {}.",
    "Well, she's got {}, the poor thing.",
    "It turns out it's {}.",
)
NEWS = (
    "I'm stepping down in September",
    "we're selling the bakery",
    "I'm expecting twins",
    "I handed in my notice",
)
NEWS_FRAMES = (
    "{}, don't tell anyone.",
    "{}, but please keep that between us.",
    "Between you and me, {}.",
    "{}. Nobody knows yet.",
    "{}. Don't mention it to my brother.",
    "{}, and nobody else here knows.",
    "This is confidential, {}.",
)
AROUND = st.sampled_from(
    (
        "",
        "Hi, it's Ana Lopes. ",
        "Yeah, so, um, ",
        "I'd like to book a table for Friday. ",
        "My phone number is 555 0134. ",
    )
)
AFTER = st.sampled_from(
    (
        "",
        " Could you book me a taxi for Monday?",
        " Anyway.",
        " And remind me to ring Joan tomorrow.",
    )
)
ECHO = st.sampled_from(
    (
        "Thank you.",
        "Got it, {}.",
        "I'll note {} for the driver.",
        "Please never share that.",
    )
)


def _open_text(reading: Reading) -> str:
    facts = (fact for fact in reading.facts if fact.visibility != "secret")
    items = (
        *reading.requests,
        *reading.withdrawn,
        *reading.promises,
        *facts,
        reading.profile,
    )
    return f"{reading.summary} {' '.join(item.model_dump_json() for item in items)}".lower()


def _check(script: str, secret: str) -> None:
    reading = RulesReader().read(call_of(script))
    assert any(
        secret.lower() in fact.words.lower()
        for fact in reading.facts
        if fact.visibility == "secret"
    ), script
    assert secret.lower() not in _open_text(reading), script


@given(st.sampled_from(CODES), st.sampled_from(CODE_FRAMES), AROUND, AFTER, ECHO)
@settings(max_examples=150, deadline=None)
def test_a_code_told_in_any_frame_is_seen_nowhere_else(
    code: str, frame: str, before: str, after: str, echo: str
) -> None:
    _check(
        f"A: Hello?\nC: {before}{frame.format(code)}{after}\nA: {echo.format(code)}\nC: Thanks.",
        code,
    )


@given(st.sampled_from(CODES), st.sampled_from(ASKED_FRAMES), ECHO)
@settings(max_examples=40, deadline=None)
def test_a_code_given_when_asked_is_seen_nowhere_else(
    code: str, frame: tuple[str, str], echo: str
) -> None:
    asked, told = frame
    _check(
        f"A: Hello?\nC: Hi, I'd like to book a car.\nA: {asked}\nC: {told.format(code)}\nA: "
        f"{echo.format(code)}\nC: Thanks.",
        code,
    )


@given(st.sampled_from(WORDS), st.sampled_from(WORD_FRAMES), AFTER, ECHO)
@settings(max_examples=40, deadline=None)
def test_a_password_told_in_any_frame_is_seen_nowhere_else(
    word: str, frame: str, after: str, echo: str
) -> None:
    _check(
        f"A: Hello?\nC: {frame.format(word)}{after}\nA: {echo.format(word)}\nC: Thanks.",
        word,
    )


@given(st.sampled_from(ILLNESSES), st.sampled_from(ILLNESS_FRAMES), AROUND, AFTER)
@settings(max_examples=60, deadline=None)
def test_an_illness_named_in_any_frame_is_seen_nowhere_else(
    illness: str, frame: str, before: str, after: str
) -> None:
    _check(
        f"A: Hello?\nC: {before}{frame.format(illness)}{after}\nA: I'm sorry about the "
        f"{illness}.\nC: Thanks.",
        illness,
    )


@given(st.sampled_from(NEWS), st.sampled_from(NEWS_FRAMES), AFTER)
@settings(max_examples=40, deadline=None)
def test_news_told_in_confidence_is_seen_nowhere_else(
    news: str, frame: str, after: str
) -> None:
    _check(
        f"A: Hello?\nC: Listen. {frame.format(news)}{after}\nA: Understood.\nC: Thanks.",
        news,
    )


@pytest.mark.parametrize("code", CODES)
def test_a_code_read_back_in_figures_is_hidden_too(code: str) -> None:
    reading = RulesReader().read(
        call_of(
            f"A: Hello?\nC: The door code is {code}.\nA: I'll tell the driver it's 4419.\nC: "
            "Thanks."
        )
    )
    assert "4419" not in _open_text(reading)


@pytest.mark.parametrize(
    "said",
    [
        "My phone number is five five five oh one three four.",
        "The order number is 4419.",
        "It says error code four oh four.",
        "The meter reads zero four one double nine.",
        "We're in room two one two.",
        "It's a Zebra Z T four one one.",
        "My zip code is nine four one one oh.",
        "It cost three hundred and twenty pounds on my card.",
        "I was born in nineteen eighty four.",
        "I lost my debit card last night.",
        "It's twenty two Garnet Street, flat three.",
    ],
)
def test_figures_that_anybody_may_know_are_no_secret(said: str) -> None:
    reading = RulesReader().read(call_of(f"A: Hello?\nC: {said}\nA: Okay."))
    assert not [fact.text for fact in reading.facts if fact.visibility == "secret"]
