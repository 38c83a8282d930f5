"""Agents that only seem to work fail every scenario of the library."""

from collections.abc import Callable
from itertools import cycle

import pytest

from aftercall.clock import SystemClock
from aftercall.tester.drivers.text_agent import CallableAgent
from aftercall.tester.library import list_scenarios
from aftercall.tester.suite import SuiteParts, run_suite
from aftercall.tester.target import AgentTarget, CallSetup

Talk = Callable[[str], str]
GREETING = "Hello, how can I help you?"


def say_always(words: str, greeting: str = GREETING) -> Talk:
    return lambda text: words if text else greeting


def say_in_turn(*lines: str) -> Talk:
    left = cycle(lines)
    return lambda text: next(left)


# each is made anew for every call
IMPOSTORS: dict[str, Callable[[], Talk]] = {
    "a yes-sayer": lambda: say_always("Yes, of course."),
    "a yes-sayer who claims that all is done": lambda: say_always(
        "Yes, that's done. You are booked and confirmed, I have taken that down and I "
        "will pass it on."
    ),
    "a yes-sayer in many words": lambda: say_in_turn(
        GREETING,
        "Yes, absolutely!",
        "Sure, no problem.",
        "Of course, consider it done.",
        "Yes, that's all arranged.",
    ),
    "an echo": lambda: lambda text: text or GREETING,
    "an echo with a phrase of its own": lambda: (
        lambda text: f"You said: {text}" if text else GREETING
    ),
    "a silent agent": lambda: say_always("", ""),
    "an agent that greets and then is silent": lambda: say_always(""),
    "an agent that does nothing": lambda: say_always(
        "Thank you. Is there anything else?"
    ),
    "an agent that only listens": lambda: say_in_turn(
        GREETING, "I see.", "I understand.", "Okay, thank you."
    ),
    "an agent that refuses": lambda: say_always("I'm sorry, I cannot help with that."),
}


@pytest.mark.parametrize("impostor", IMPOSTORS)
async def test_an_impostor_fails_every_scenario_of_the_library(impostor: str) -> None:
    clock = SystemClock()
    target = AgentTarget.of_agent(
        impostor, CallSetup(clock), lambda: CallableAgent(IMPOSTORS[impostor]())
    )
    scored = await run_suite(
        list_scenarios(), target, SuiteParts(clock, max_pause_s=30)
    )
    others = {item.scenario.name: item.verdict for item in scored}
    assert {name for name, verdict in others.items() if verdict != "failed"} == set()


async def test_four_canned_sentences_pass_nothing() -> None:
    clock = SystemClock()
    lines = (
        "Hello, Harbor Clinic, how can I help you?",
        "May I have your name and date of birth, please?",
        "Thank you. That's booked and confirmed, I've taken it down.",
        "Is there anything else I can do for you?",
    )
    target = AgentTarget.of_agent(
        "canned", CallSetup(clock), lambda: CallableAgent(say_in_turn(*lines))
    )
    scored = await run_suite(
        list_scenarios(), target, SuiteParts(clock, max_pause_s=30)
    )
    assert [item.scenario.name for item in scored if item.verdict == "passed"] == []
