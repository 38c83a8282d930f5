"""The tester chats with agents at Vapi, Retell and ElevenLabs, as the lab emulates them."""

from collections.abc import Iterator
from typing import Any

import pytest

from aftercall.clock import SystemClock
from aftercall.errors import UnknownTestName
from aftercall.lab.hosted import LAB_AGENT, LAB_ASSISTANT
from aftercall.lab.server import Lab
from aftercall.settings import Settings
from aftercall.tester.agents import open_target
from aftercall.tester.finding import BUG_SEVERITIES
from aftercall.tester.score import ScenarioScore
from aftercall.tester.suite import SuiteParts, run_once
from aftercall.tester.target import CallSetup
from loopback_server import lab_box
from unit.tester.calls import scenario_of

AGENTS = [
    f"vapi:{LAB_ASSISTANT}",
    f"retell:{LAB_AGENT}",
    f"elevenlabs:{LAB_AGENT}",
]
PLUMBER = scenario_of("""
turns:
  - {say: "Please call the plumber.", expect: {said: written}}
  - {say: "That is all, goodbye."}
success: [{tool: take_request, details: [plumber]}]
""")


@pytest.fixture
def lab() -> Iterator[Lab]:
    with lab_box() as lab:
        yield lab


def settings_of(lab: Lab, **changed: Any) -> Settings:
    sections = {
        name: {"api_key": getattr(lab, name).key, "api_url": lab.address}
        for name in ("vapi", "retell", "elevenlabs")
    }
    return Settings.model_validate(
        {name: part | changed for name, part in sections.items()}
    )


async def call_agent(settings: Settings, agent: str) -> ScenarioScore:
    clock = SystemClock()
    async with open_target(settings, agent, CallSetup(clock)) as target:
        return await run_once(PLUMBER, target, SuiteParts(clock))


def blames(result: ScenarioScore) -> dict[str, str]:
    return {
        finding.kind: finding.who
        for finding in result.findings
        if finding.severity in BUG_SEVERITIES
    }


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_hosted_agent_is_called_and_its_tools_are_evidence(
    lab: Lab, agent: str
) -> None:
    result = await call_agent(settings_of(lab), agent)
    assert (result.verdict, blames(result)) == ("passed", {})
    assert result.criteria[0].evidence == "called take_request"


@pytest.mark.parametrize("agent", AGENTS[1:])
async def test_a_hosted_agent_greets_and_hangs_up(lab: Lab, agent: str) -> None:
    result = await call_agent(settings_of(lab), agent)
    (record,) = result.records
    assert record.agent_spans[0].text == "Hello, this is the lab."
    assert record.ended_by == "agent"


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_wrong_key_is_the_testers(lab: Lab, agent: str) -> None:
    result = await call_agent(settings_of(lab, api_key="wrong"), agent)
    assert (result.verdict, blames(result)) == (
        "inconclusive",
        {"not_reached": "tester"},
    )


@pytest.mark.parametrize("platform", ["vapi", "retell", "elevenlabs"])
async def test_an_agent_that_the_platform_does_not_have_is_the_testers(
    lab: Lab, platform: str
) -> None:
    result = await call_agent(settings_of(lab), f"{platform}:nobody")
    assert (result.verdict, blames(result)) == (
        "inconclusive",
        {"not_reached": "tester"},
    )


async def test_a_private_agent_without_a_key_is_the_testers(lab: Lab) -> None:
    result = await call_agent(settings_of(lab, api_key=None), AGENTS[2])
    assert (result.verdict, blames(result)) == (
        "inconclusive",
        {"not_reached": "tester"},
    )


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    ("fault", "verdict"), [("rate_limit", "inconclusive"), ("server_error", "failed")]
)
async def test_a_rate_limit_is_not_the_agents_and_a_server_error_is(
    lab: Lab, agent: str, fault: str, verdict: str
) -> None:
    platform = agent.partition(":")[0]
    lab.queue_fault(f"{platform}={fault}")
    result = await call_agent(settings_of(lab), agent)
    assert result.verdict == verdict
    assert ("agent" in blames(result).values()) == (verdict == "failed")


@pytest.mark.parametrize("agent", ["vapi:", "retell:"])
async def test_what_is_missing_is_named_before_anything_is_called(
    lab: Lab, agent: str
) -> None:
    with pytest.raises(UnknownTestName, match="AGENT_ID"):
        await call_agent(settings_of(lab), agent)
    with pytest.raises(UnknownTestName, match="_API_KEY"):
        await call_agent(settings_of(lab, api_key=None), agent + "any")
