"""What counts as done: deeds in anybody's words, never a yes, an echo or an offer."""

from datetime import date
from pathlib import Path

import pytest

from aftercall.clock import SystemClock
from aftercall.tester.claims import says_done
from aftercall.tester.judge import count_before, follow_path, probe
from aftercall.tester.line import AgentAnswer
from aftercall.tester.slots import find_slots
from unit.tester.calls import LineAgent, kinds, scenario_of, try_agent

MONDAY = date(2026, 11, 16)
BOOK = scenario_of("""
goal: Book Tuesday at ten.
caller_context:
  opening: I'd like to book an appointment for Tuesday at ten, please.
  verification: {name: Lucas Reyes, dob: "February 17th, 1990"}
success:
  - judged: The appointment is booked for Tuesday at ten.
    deed: book
    details: [tuesday, ten]
    ask: Which day and time do you have me down for?
""")
BYE = AgentAnswer("Goodbye!", ends_call=True)


@pytest.mark.parametrize(
    ("text", "days", "times"),
    [
        ("You are booked for Tuesday at ten.", {1}, {"10:00"}),
        ("November 17th at half past ten", {1}, {"10:30"}),
        ("tomorrow at 14:00", {1}, {"2:00"}),
        ("a table for two people at 7:30", set(), {"7:30"}),
        ("Ten in the morning on Fri", {4}, {"10:00"}),
        ("born on May 5th, 1955 at noon", set(), set()),
        ("it takes ten minutes", set(), set()),
    ],
)
def test_one_slot_said_in_two_ways_compares_equal(
    text: str, days: set[int], times: set[str]
) -> None:
    found = find_slots(text, MONDAY)
    assert (set(found.days), set(found.times)) == (days, times)


@pytest.mark.parametrize(
    "text",
    [
        "you're all set for tuesday at ten.",
        "okay, i've put you down for tuesday.",
        "no problem, we'll see you on tuesday at ten.",
        "that slot is yours.",
        "i have reserved tuesday at ten for you.",
    ],
)
def test_a_booking_is_recognised_in_other_words(text: str) -> None:
    assert says_done("book", text)


@pytest.mark.parametrize(
    "text",
    [
        "i can book that for you.",
        "i have not booked anything yet.",
        "let me check the calendar.",
        "unfortunately that could not be booked.",
        "thank you for calling.",
    ],
)
def test_an_offer_or_a_denial_is_no_booking(text: str) -> None:
    assert not says_done("book", text)


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        (("You're down for Tuesday at ten. Anything else?",), "passed"),
        (("Righto, Tuesday at ten has your name on it. Anything else?",), "passed"),
        (("Who am I speaking with?", "All done. Anything else?", "Ten on Tuesday."), "passed"),
        (("Certainly, all done!", "Yes, of course.", "Yes, absolutely."), "failed"),
        (("Who am I speaking with?", "I see. Anything else?", "Okay. Anything else?"), "failed"),
        (("I'm afraid I can't make bookings.",), "failed"),
        (
            ("Who am I speaking with?", "Splendid, splendid. Anything else?", "Splendid."),
            "inconclusive",
        ),
    ],
)  # fmt: skip
async def test_the_matcher_says_yes_no_or_that_it_cannot_tell(
    lines: tuple[str, ...], verdict: str
) -> None:
    scored = await try_agent(LineAgent(*lines, *lines[-1:], BYE), BOOK)
    assert scored.verdict == verdict, (scored.criteria, scored.findings)
    assert bool(scored.reason) == (verdict == "inconclusive")


async def test_a_tool_call_that_the_agent_reports_is_evidence() -> None:
    called = AgentAnswer(
        "Sure. Anything else?", tool_calls=('book {"day": "Tuesday", "time": "10:00"}',)
    )
    scored = await try_agent(LineAgent(called, called, called, BYE), BOOK)
    assert [item.evidence for item in scored.criteria] == ["called book"]


async def test_the_caller_says_so_when_the_script_has_no_answer() -> None:
    agent = LineAgent(
        "What is the colour of your front door?", *["Well. Anything else?"] * 3, BYE
    )
    scored = await try_agent(agent, BOOK)
    assert agent.heard[1] == "I'm sorry, I don't know what to answer to that."
    assert scored.verdict == "inconclusive"
    assert "front door" in scored.reason
    assert ("not_in_script", "tester") in kinds(scored)


async def test_a_wrong_day_that_is_read_back_is_put_right() -> None:
    agent = LineAgent(
        "So that's Thursday at ten, is that correct?",
        "You're booked for Tuesday at ten. Anything else?",
        BYE,
    )
    scored = await try_agent(agent, BOOK)
    assert agent.heard[1] == "No, Tuesday at ten."
    assert scored.verdict == "passed"


async def test_probes_count_compare_and_read_files_and_databases(
    tmp_path: Path,
) -> None:
    file = tmp_path / "bookings.json"
    file.write_text('{"items": [{"day": "Monday"}]}')
    scenario = scenario_of(f"""
caller_context: {{opening: Hi.}}
probes:
  - {{name: grown, file: {file}, path: items, grows_by: 1, within_s: 0.1}}
  - {{name: days, file: {file}, path: "items[*].day", contains: Tuesday, within_s: 0.1}}
  - {{name: two, file: {file}, path: items, count: 2, within_s: 0.1}}
  - {{name: no_base, sqlite: {tmp_path}/no.db, query: SELECT 1, count: 1, within_s: 0.1}}
""")
    before = await count_before(scenario)
    file.write_text('{"items": [{"day": "Monday"}, {"day": "Tuesday"}]}')
    found = await probe(scenario, SystemClock(), before)
    assert [item.state for item in found] == ["met", "met", "met", "unknown"]


def test_a_path_leads_into_lists_and_objects() -> None:
    data = {"items": [{"day": "Monday"}, {"day": "Tuesday"}]}
    assert follow_path(data, "items[1].day") == "Tuesday"
    assert follow_path(data, "items[*].day") == ["Monday", "Tuesday"]
    assert follow_path(data, "items[7].day") is None
