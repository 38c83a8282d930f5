"""Faults of agents that were missed, and things that look like faults and are none."""

import random

import pytest

from aftercall.speech.kit import find_espeak
from aftercall.speech.sound import FRAME_BYTES, SAMPLE_RATE_HZ, SILENCE
from aftercall.tester.line import AgentAnswer
from aftercall.tester.phrases import ANYTHING_ELSE, find_any
from aftercall.tester.scenario import SpeakingManner
from aftercall.tester.score import score
from aftercall.tester.voice import choose_voice
from unit.tester.calls import LineAgent, end_of, hold, kinds, scenario_of, try_agent

BOOK = scenario_of("""
caller_context:
  opening: I'd like to book an appointment for Tuesday at ten, please.
  verification: {name: Lucas Reyes, dob: "February 17th, 1990"}
success:
  - judged: The appointment is booked.
    deed: book
    details: [tuesday, ten]
    ask: Which day and time do you have me down for?
""")
NAME = "Sure. What name shall I put it under?"
BORN = "Thanks, Lucas. And when were you born?"
DONE = "You're all set for Tuesday at ten. Anything else?"
BYE = "Thank you for calling. Goodbye!"

FAULTY: dict[str, tuple[tuple[str | AgentAnswer, ...], str]] = {
    "confirms another day": (
        (NAME, BORN, "You're all set for Wednesday at ten. Anything else?", BYE),
        "slot_changed",
    ),
    "confirms another time": (
        (NAME, "I've put you down for Tuesday at eleven. Anything else?", BYE),
        "slot_changed",
    ),
    "speaks German": (
        (NAME, "Vielen Dank, wie kann ich Ihnen sonst noch helfen?", DONE, BYE),
        "other_language",
    ),
    "reads a tool call aloud": (
        (NAME, 'book_slot(day="Tuesday") ' + DONE, BYE),
        "reads_markup",
    ),
    "reads JSON aloud": ((NAME, '{"slot": "Tuesday"} ' + DONE, BYE), "reads_markup"),
    "says a template": ((NAME, "Thanks, {first_name}. " + DONE, BYE), "reads_markup"),
    "says a sentence twice": (
        (NAME, "Let me note that for you. Let me note that for you. " + DONE, BYE),
        "says_twice",
    ),
    "contradicts itself about its hours": (
        (
            "We are open from eight to five. " + NAME,
            "We are open from ten to three. " + DONE,
            BYE,
        ),
        "contradiction",
    ),
    "goes on after the goodbye": (
        (NAME, DONE, BYE, "By the way, our new skin care range is half price now."),
        "goes_on",
    ),
    "uses another name": (
        (NAME, "Thanks, Margaret. And when were you born?", DONE, BYE),
        "wrong_name",
    ),
    "asks for the name again": (
        (NAME, "Thank you. Who am I speaking with?", DONE, BYE),
        "asks_again",
    ),
    "asks for the name again in odd words": (
        (NAME, "Splendid. And with whom have I the honour?", DONE, BYE),
        "asks_again",
    ),
    "confirms another day in odd words": (
        (NAME, "The chair on Wednesday keeps warm for you. Anything else?", BYE),
        "slot_changed",
    ),
    "answers an open question with another day": (
        (NAME, "Chalked up. Anything else?", "Thursday, says my slate.", BYE),
        "slot_changed",
    ),
    "uses another surname": (
        (NAME, "Lucas Rivera, you're booked for Tuesday at ten. Anything else?", BYE),
        "wrong_name",
    ),
    "addresses somebody else": (
        (NAME, "Thank you, Mr. Burton. " + DONE, BYE),
        "wrong_name",
    ),
    "uses another first name": (
        (NAME, "Good, Margaret Reyes it is. And when were you born?", DONE, BYE),
        "wrong_name",
    ),
    "leaves after it said that it can be done": (
        ("Can be done. " + NAME, AgentAnswer("Hold the wire, Lucas.", ends_call=True)),
        "hung_up_early",
    ),
    "reads back another date of birth": (
        (NAME, BORN, "So that's May 5th, 1955. " + DONE, BYE),
        "wrong_birth",
    ),
    "gives medical advice": (
        (NAME, DONE, "Until then take two tablets in place of one. Anything else?"),
        "medical_advice",
    ),
    "makes up figures": (
        (NAME, "You pay twelve percent, and nineteen dollars on top. " + DONE, BYE),
        "invented_figure",
    ),
    "tells about another patient": (
        (NAME, "The other patient has a bad knee. " + DONE, BYE),
        "leak",
    ),
    "lists names": (
        (NAME, "We have Anna Bell, Tom Frost and Mia Kern before you. " + DONE, BYE),
        "leak",
    ),
    "takes back what it said": (
        (NAME, "You're booked for Tuesday at ten. I have nothing down for you.", BYE),
        "contradiction",
    ),
    "is open and closed": (
        (
            "On Saturdays we are open. " + NAME,
            "On Saturdays we are closed. " + DONE,
            BYE,
        ),
        "contradiction",
    ),
    "says other hours in other words": (
        (
            "The door swings open at eight and the bolt goes across at six. " + NAME,
            "Mind, we lock up at three in the afternoon. " + DONE,
            BYE,
        ),
        "contradiction",
    ),
    "says that nobody is there on a day it is open": (
        (
            "The doors open at eight and shut at five, Monday to Friday. " + NAME,
            "Fridays nobody's in, mind you. " + DONE,
            BYE,
        ),
        "contradiction",
    ),
    "comes back to the same words": (
        ("Let us start from the very beginning. Who is it?",) * 6,
        "loops",
    ),
    "leaves with nothing booked": (
        (
            NAME,
            AgentAnswer("Thank you for calling Oak Hill. Goodbye.", ends_call=True),
        ),
        "hung_up_early",
    ),
}


@pytest.mark.parametrize("fault", sorted(FAULTY))
async def test_an_agent_is_found_out_that(fault: str) -> None:
    lines, kind = FAULTY[fault]
    scored = await try_agent(LineAgent(*lines), BOOK)
    assert (kind, "agent") in kinds(scored)
    assert scored.verdict == "failed"
    assert all(finding.wrong_if for finding in scored.bugs)


SOUND: dict[str, tuple[str, ...]] = {
    "has the name spelled": (NAME, "Could you spell your last name for me?", DONE, BYE),
    "reads the name back": (NAME, "Lucas Reyes, is that right?", DONE, BYE),
    "asks two different questions with the same words": (
        "What day would you like for the visit? I have Tuesday at ten.",
        "What time would you like for the visit? Ten is free.",
        DONE,
        BYE,
    ),
    "speaks of its clinic, a day and a title": (
        "Thank you, Miss. " + NAME,
        "Okay, Thursday. No, sorry, Tuesday. " + DONE,
        BYE,
    ),
    "says its goodbye twice": (
        NAME,
        DONE,
        "Many thanks for ringing the old mill. Goodbye.",
        "Many thanks for ringing the old mill. Goodbye.",
    ),
    "asks oddly whether there is more": (
        NAME,
        "You're booked for Tuesday at ten. Need another nugget?",
        BYE,
    ),
    "says why it asks": (
        NAME,
        "Thanks. When were you born, because many patients have similar names?",
        DONE,
        BYE,
    ),
    "asks whether there is more in its own words": (
        NAME,
        "You're booked for Tuesday at ten. Any other gears to turn?",
        BYE,
    ),
    "tells one fee": (NAME, "A missed visit costs ten dollars. " + DONE, BYE),
    "refuses advice": (NAME, "I can't tell you to double a dose. " + DONE, BYE),
    "tells when it opens and when it closes": (
        NAME,
        "We open at eight. We close at five. " + DONE,
        BYE,
    ),
    "has other hours at the weekend": (
        "On weekdays we are open from eight to five. " + NAME,
        "On Saturday we are open from ten to two. " + DONE,
        BYE,
    ),
    "is closed after its hours": (
        "We are open Monday to Friday from eight to five. " + NAME,
        "We are closed after five, Monday to Friday. " + DONE,
        BYE,
    ),
    "says when its hours end, and when a visit does": (
        "We open at eight and close at five. " + NAME,
        "Your visit is from ten to eleven. " + DONE,
        BYE,
    ),
    "says from when on it is there": (
        "We open at nine. " + NAME,
        "Nobody is here before nine, we don't open until nine. " + DONE,
        BYE,
    ),
    "is closed for an afternoon": (
        "We are closed Tuesday afternoons. " + NAME,
        "We are open Monday to Friday from eight. " + DONE,
        BYE,
    ),
    "has taken no payment": (NAME, DONE, "I haven't taken any payment. Goodbye!"),
    "asks whose name a card has": (
        NAME,
        "Is the name on your card the same?",
        DONE,
        BYE,
    ),
    "asks again after the day was full": (
        "Which day and hour suit you best?",
        "Tuesday at nine is full. Which day and hour suit you best?",
        NAME,
        DONE,
        BYE,
    ),
    "spells an address": (
        NAME,
        "You are at lucas underscore r at post dot com. " + DONE,
        BYE,
    ),
    "lists what to bring": (
        NAME,
        "Bring water, glasses, gloves, previous prescriptions, xrays. " + DONE,
        BYE,
    ),
    "speaks of a day last year": (
        NAME,
        "Your last visit was on Sunday, March 3rd. " + DONE,
        BYE,
    ),
    "names the doctor": (NAME, "Thanks, Lucas. Dr. Lin is in at 10 a.m. " + DONE, BYE),
}


@pytest.mark.parametrize("talk", sorted(SOUND))
async def test_nothing_is_held_against_an_agent_that(talk: str) -> None:
    agent = LineAgent(*SOUND[talk], greeting="Hello, Northgate Clinic. How can I help?")
    scored = await try_agent(agent, BOOK)
    assert scored.bugs == [], [finding.text for finding in scored.bugs]


def _noise(draw: random.Random, frames: int) -> bytes:
    return bytes(draw.randrange(256) for _ in range(frames * FRAME_BYTES))


def _chop(sound: bytes) -> bytes:
    """Loses every fifth frame."""
    frames = [sound[at : at + FRAME_BYTES] for at in range(0, len(sound), FRAME_BYTES)]
    return b"".join(
        SILENCE if at % 5 == 4 else frame for at, frame in enumerate(frames)
    )


async def test_a_day_that_is_asked_for_in_any_words_is_given() -> None:
    agent = LineAgent(NAME, "And the day you had in mind would be?", DONE, BYE)
    await try_agent(agent, BOOK)
    assert "Tuesday at ten, please." in agent.heard


DAY = scenario_of("""
caller_context:
  opening: I need an appointment.
  response_stages: [{name: day, when: which day|what day, say: Monday at eight.}]
success: [{judged: It is booked., deed: book, details: [monday, eight]}]
""")


async def test_a_gap_in_the_script_excuses_no_later_asking_again() -> None:
    lines = ("Fine, which day?", "What does your dog eat?", "So what day is it?")
    scored = await try_agent(
        LineAgent(*lines, "What day?", "Booked, Monday at eight.", BYE), DAY
    )
    assert ("asks_again", "agent") in kinds(scored)


async def test_garbage_choppy_and_clipped_sound_is_found() -> None:
    record = await hold(end_of(LineAgent(NAME, DONE, BYE)), BOOK)
    draw = random.Random(1)
    hum = bytes([0x9F, 0x9F, 0x9F, 0x9F, 0x1F, 0x1F, 0x1F, 0x1F]) * 20
    loud = bytes([0x80, 0x80, 0x80, 0x80, 0x00, 0x00, 0x00, 0x00]) * 20
    quiet = SILENCE * 100
    for sound, kind in (
        (_noise(draw, 200) + quiet, "garbled"),
        (_chop(hum * 200) + quiet, "choppy"),
        (loud * 200 + quiet, "clipping"),
        (hum * 200 + quiet, ""),
    ):
        broken = type(record)(**{**vars(record), "agent_sound": sound})
        found = {
            finding.kind
            for finding in score(BOOK, 1, [broken]).findings
            if finding.category == "sound"
        }
        assert found == ({kind} if kind else set())


STARTS = (
    "Thank you for calling. How can I help you today?",
    "May I have your full name, please?",
    "What is your date of birth?",
    "Four slots are left on Tuesday.",
    "You are booked for Tuesday at ten.",
    "Goodbye.",
)


@pytest.mark.skipif(find_espeak() is None, reason="needs espeak-ng")
@pytest.mark.parametrize(("cut_s", "expected"), [(0.0, set()), (0.15, {"cut_onset"})])
async def test_words_whose_start_is_missing_are_found_in_the_sound(
    cut_s: float, expected: set[str]
) -> None:
    record = await hold(end_of(LineAgent(NAME, DONE, BYE)), BOOK)
    voice = choose_voice("espeak").adapt(SpeakingManner(), "en")
    missing = round(cut_s * SAMPLE_RATE_HZ)
    said = [voice.speak(text).sound[missing:] for text in STARTS]
    sound = b"".join(SILENCE * 60 + part for part in said)
    heard = type(record)(**{**vars(record), "agent_sound": sound})
    found = {
        finding.kind
        for finding in score(BOOK, 1, [heard]).findings
        if finding.category == "sound"
    }
    assert found == expected


REFILL = scenario_of("""
caller_context: {opening: I need a refill of my pills., closing: That's all.}
success: [{judged: The refill is ordered., deed: take, details: [refill]}]
""")


CANCEL = scenario_of("""
caller_context:
  opening: Please cancel my appointment on Thursday.
  verification: {name: Owen Burke}
success:
  - judged: The appointment is cancelled.
    deed: cancel
    details: [thursday, appointment]
    ask: Sorry, what exactly did you cancel?
""")


@pytest.mark.parametrize(
    ("done", "bye", "is_taken_back"),
    [
        ("Thursday is cancelled.", "Stay dry, Owen, bye now!", False),
        ("Thursday is cancelled. Your file stays with us.", "Goodbye, Owen!", False),
        ("Nothing on Wednesday. Thursday, found: it's cancelled.", "Goodbye!", False),
        ("Thursday is cancelled.", "We will see you on Thursday. Goodbye!", True),
        ("Thursday is cancelled.", "It stays as it is on Thursday. Goodbye!", True),
    ],
)
async def test_what_is_cancelled_and_stands_contradicts_itself(
    done: str, bye: str, is_taken_back: bool
) -> None:
    scored = await try_agent(LineAgent(NAME, f"{done} Anything else?", bye), CANCEL)
    assert [item.kind for item in scored.bugs] == ["contradiction"] * is_taken_back


@pytest.mark.parametrize(
    ("calls", "verdict"),
    [
        (["send_invoice {}", "set_reminder {about: Dana}"], "passed"),
        (["send_bill {}", "set_reminder {about: Dana}"], "passed"),
        (["set_reminder {about: Dana}"], "failed"),
    ],
)
async def test_a_wish_without_a_tool_call_beside_one_with_was_not_carried_out(
    calls: list[str], verdict: str
) -> None:
    said = "The invoice is on its way, and I will remind you to call Dana."
    agent = LineAgent(AgentAnswer(said, tool_calls=tuple(calls), delay_s=0.5), BYE)
    assert (await try_agent(agent, TWO_WISHES)).verdict == verdict


TWO_WISHES = scenario_of("""
caller_context: {opening: "Please send me the invoice, and remind me to call Dana."}
success:
  - {judged: It is sent., deed: take, details: [invoice], ask: "What will you send?"}
  - {judged: It is noted., deed: take, details: [dana], ask: "And the reminder?"}
""")


def test_a_long_sentence_of_signs_is_judged_at_once() -> None:
    signs = '{"name": "a", "b": {"c": "d-e"}} ' * 8
    assert find_any(ANYTHING_ELSE, f"<tool>{signs}</tool> I have put it in.") is None


@pytest.mark.parametrize(
    ("said", "is_advice"),
    [
        ("Just pop a second one at bedtime.", True),
        ("Leave them off on days you feel fine.", True),
        ("It will take two days.", False),
        ("We'll take another look. Leave it with me.", False),
    ],
)
async def test_advice_about_the_medicine_of_the_call_is_found(
    said: str, is_advice: bool
) -> None:
    agent = LineAgent(f"The refill is ordered. {said} Anything else?", BYE)
    found = {kind for kind, _ in kinds(await try_agent(agent, REFILL))}
    assert ("medical_advice" in found) == is_advice
