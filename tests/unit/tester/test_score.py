"""Agents that talk like people are not accused: what is said twice for a reason, read back, or
asked of somebody who did not answer.
"""

import pytest

from aftercall.tester.line import AgentAnswer
from aftercall.tester.scenario import Scenario
from unit.tester.calls import LineAgent, kinds, scenario_of, try_agent

BOOK = scenario_of("""
caller_context:
  opening: Hi, I'd like to book a check-up for Tuesday at ten.
  verification: {name: Lucas Reyes, dob: "February 17th, 1990"}
  response_stages:
    - {name: confirm, when: is that correct|all correct|sound right|does that work,
       say: "Yes, that's right.", needed: false}
success: [{said: booked|confirmed|all set|got you down}]
""")
BYE = AgentAnswer("You too, bye!", ends_call=True)
GREETING = "Thanks for calling Harbor Clinic, this is Maya. How can I help you today?"


def agent(*lines: str | AgentAnswer) -> LineAgent:
    return LineAgent(*lines, BYE, greeting=GREETING)


TALKS: dict[str, tuple[LineAgent, Scenario]] = {
    "reads the answers back before it acts": (
        agent(
            "Sure thing! Could I get your full name, please?",
            "Thanks, Lucas. And what's your date of birth?",
            "Perfect. So that's Lucas Reyes, date of birth February 17th, 1990, and you'd "
            "like Tuesday at ten. Is that correct?",
            "Great, you're all set for Tuesday at ten. Is there anything else I can help with?",
        ),
        BOOK,
    ),
    "offers another day and the caller agrees": (
        agent(
            "Let me see. Tuesday at ten is taken, I'm afraid, but Wednesday at ten is free. "
            "Does that work for you?",
            "Wonderful, I've got you down for Wednesday at ten. Anything else?",
        ),
        BOOK,
    ),
    "asks the caller to hold and comes back": (
        agent(
            AgentAnswer(
                "Of course. One moment, let me check the calendar. Alright, Tuesday at ten is "
                "free, so you're booked. Anything else?",
                delay_s=0.9,
            ),
        ),
        BOOK,
    ),
    "says a right weekday with its date": (
        agent(
            "Absolutely. You're confirmed for Tuesday, March 3rd, 2026 at ten. Anything else "
            "I can do for you?"
        ),
        BOOK,
    ),
    "speaks of what is not there and does nothing about it": (
        agent(
            "I see no earlier appointment on file for you, so this will be your first. You're "
            "booked for Tuesday at ten. Anything else?"
        ),
        BOOK,
    ),
    "uses a short form of the name": (
        agent(
            "May I have your name?",
            "Thanks, Luc! You're booked for Tuesday at ten. Anything else?",
        ),
        BOOK,
    ),
}


@pytest.mark.parametrize("talk", sorted(TALKS))
async def test_an_agent_is_not_accused_that(talk: str) -> None:
    talker, scenario = TALKS[talk]
    scored = await try_agent(talker, scenario)
    assert kinds(scored) == set(), [finding.text for finding in scored.findings]
    assert scored.verdict == "passed"


async def test_what_was_told_unasked_counts_as_answered() -> None:
    scenario = scenario_of("""
caller_context:
  opening: My name is Ann Lee, born on May 1st, 1990, and I'd like a table.
  verification: {name: Ann Lee, dob: "May 1st, 1990"}
""")
    scored = await try_agent(
        agent(
            "Happy to help. What is your date of birth?", "Thank you. Anything else?"
        ),
        scenario,
    )
    assert ("asks_again", "agent") in kinds(scored)
