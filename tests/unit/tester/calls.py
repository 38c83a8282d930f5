"""Test calls in a line: an agent, a scenario, and what came of it."""

from collections.abc import Callable, Sequence

from aftercall.clock import SystemClock
from aftercall.tester.call import CallRig, ScriptedCall, run_call
from aftercall.tester.call_audio import Recognise
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.text_agent import (
    CallableAgent,
    Interruption,
    TextAgentConnection,
)
from aftercall.tester.line import (
    AgentAnswer,
    AgentConnection,
    DialedCall,
    TextAgent,
    TickPace,
)
from aftercall.tester.practice_agent import practice_target
from aftercall.tester.record import CallRecord
from aftercall.tester.scenario import Scenario
from aftercall.tester.scenario_file import parse_scenarios
from aftercall.tester.score import ScenarioScore, score
from aftercall.tester.suite import SuiteParts, run_once
from aftercall.tester.target import CallSetup
from aftercall.tester.voice import ToneVoice


def scenario_of(text: str) -> Scenario:
    return parse_scenarios(f"name: test\nnotes: be tested\n{text}")[0]


def make_pace() -> TickPace:
    return TickPace(SystemClock(), is_live=False)


def end_of(
    agent: TextAgent, interruption: Interruption | None = None
) -> AgentConnection:
    return TextAgentConnection(
        agent,
        ToneVoice(350),
        make_pace(),
        kind="audio",
        counts_work=False,
        interruption=interruption,
    )


class LineAgent(TextAgent):
    """Says its lines one after the other, then nothing."""

    def __init__(
        self,
        *lines: str | AgentAnswer | None,
        greeting: str | None = "Hello. How can I help you?",
    ) -> None:
        self.heard: list[str] = []
        self.has_ended = False
        self._greeting = greeting
        self._lines = list(lines)

    async def start(self, dial: DialedCall) -> Sequence[AgentAnswer]:
        return [AgentAnswer(self._greeting, delay_s=0.3)] if self._greeting else []

    async def respond(self, text: str) -> Sequence[AgentAnswer]:
        self.heard.append(text)
        line = self._lines.pop(0) if self._lines else None
        return (
            []
            if line is None
            else [
                line
                if isinstance(line, AgentAnswer)
                else AgentAnswer(line, delay_s=0.5)
            ]
        )

    async def press(self, digits: str) -> Sequence[AgentAnswer]:
        return await self.respond(f"[{digits}]")

    async def idle(self, seconds: int) -> Sequence[AgentAnswer]:
        return []

    async def hang_up(self) -> None:
        self.has_ended = True


async def hold(
    end: AgentConnection,
    scenario: Scenario,
    number: int = 1,
    recognise: Recognise | None = None,
) -> CallRecord:
    caller = Caller(scenario, scenario.calls[number - 1], 1)
    rig = CallRig(ToneVoice(), make_pace(), recognise=recognise)
    return await run_call(rig, end, ScriptedCall(caller, scenario, number))


def said_by_agent(record: CallRecord) -> str:
    return " ".join(span.text for span in record.agent_spans)


async def try_agent(agent: TextAgent, scenario: Scenario) -> ScenarioScore:
    return score(scenario, 1, [await hold(end_of(agent), scenario)])


async def try_practice(scenario: Scenario, *faults: str, run: int = 1) -> ScenarioScore:
    clock = SystemClock()
    return await run_once(
        scenario, practice_target(CallSetup(clock), faults), SuiteParts(clock), run
    )


def kinds(scored: ScenarioScore) -> set[tuple[str, str]]:
    return {
        (finding.kind, finding.who)
        for finding in scored.findings
        if finding.severity != "info"
    }


def answering(function: Callable[[str], str | AgentAnswer | None]) -> AgentConnection:
    return end_of(CallableAgent(function))
