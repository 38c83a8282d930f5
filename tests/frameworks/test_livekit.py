"""A real LiveKit session as a call: what was heard, the briefing, the tools, the end."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from livekit import rtc
from livekit.agents import Agent, AgentSession, function_tool, llm
from livekit.agents.testing import fake_job_context
from livekit.agents.voice.transcription.synchronizer import TranscriptSynchronizer

from aftercall.client import ClientCall
from aftercall.client.livekit import SessionRecorder, describe_caller
from aftercall.clock import SystemClock
from aftercall.errors import AgentBroke
from aftercall.tester.drivers.text_agent import LiveKitAgent
from aftercall.tester.library import find_scenarios
from aftercall.tester.line import DialedCall
from aftercall.tester.suite import SuiteParts, run_once
from aftercall.tester.target import AgentTarget, CallSetup
from framework_server import Server
from livekit_audio import Loudspeaker, SilentVoice
from waiting import until

LONG = " ".join(f"Sentence number {count} is here." for count in range(1, 31))


@function_tool
async def look_up_weather(city: str) -> str:
    """Tells the weather."""
    return f"Rain in {city}."


class ScriptedModel(llm.LLM):
    """Says what stands in its script, or uses the tool that stands there."""

    def __init__(self, *script: Any) -> None:
        super().__init__()
        self.script = list(script)

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: Any = None,
        **options: Any,
    ) -> llm.LLMStream:
        return ScriptedStream(
            self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options
        )


class ScriptedStream(llm.LLMStream):
    async def _run(self) -> None:
        line = self._llm.script.pop(0)
        delta = llm.ChoiceDelta(role="assistant")
        if isinstance(line, str):
            delta.content = line
        else:
            use = {"name": line[0], "arguments": json.dumps(line[1])}
            delta.tool_calls = [llm.FunctionToolCall(call_id="1", **use)]
        self._event_ch.send_nowait(llm.ChatChunk(id="1", delta=delta))


def start_call(server: Server, sid: str, caller: str = "+15550100") -> ClientCall:
    return server.client.call(caller=caller, source="livekit", sid=sid)


async def test_a_call_is_stored_as_it_was_said_with_its_tools(server: Server) -> None:
    model = ScriptedModel(
        ("take_request", {"title": "Call the plumber", "kind": "task"}),
        "It is written down.",
        ("look_up_weather", {"city": "Porto"}),
        "It rains.",
    )
    session: AgentSession[None] = AgentSession(llm=model)
    agent = Agent(instructions="Be kind.", tools=[look_up_weather])
    call = start_call(server, "l1")
    async with SessionRecorder(call, session, agent):
        assert agent.instructions.startswith("Be kind.\n\n<briefing>")
        await session.start(agent)
        await session.run(user_input="Please call the plumber.")
        await session.run(user_input="And the weather in Porto?")
        await session.aclose()
    stored = server.read_call(call.id)
    assert [(turn["speaker"], turn["text"]) for turn in stored["turns"]] == [
        ("caller", "Please call the plumber."),
        ("agent", "It is written down."),
        ("caller", "And the weather in Porto?"),
        ("agent", "It rains."),
    ]
    taken, used = stored["events"]
    assert (taken["kind"], taken["data"]["title"]) == (
        "request.taken",
        "Call the plumber",
    )
    assert (used["kind"], used["data"]["tool"]) == ("tool.used", "look_up_weather")
    assert used["data"]["arguments"] == {"city": "Porto"}
    assert stored["end_reason"] == "completed"


async def test_of_an_answer_that_was_interrupted_the_part_that_was_heard_is_stored(
    server: Server,
) -> None:
    loudspeaker = Loudspeaker()
    session: AgentSession[None] = AgentSession(
        llm=ScriptedModel(LONG), tts=SilentVoice()
    )
    heard = TranscriptSynchronizer(
        next_in_chain_audio=loudspeaker, next_in_chain_text=None
    )  # as in a room
    session.output.audio = heard.audio_output
    session.output.transcription = heard.text_output
    call = start_call(server, "l2")
    agent = Agent(instructions="Be kind.")
    async with SessionRecorder(call, session, agent):
        await session.start(agent)
        answer = session.generate_reply(user_input="Tell me everything.")
        await loudspeaker.reach(1.0)
        await session.interrupt()
        await answer
        await session.aclose()
    await heard.aclose()
    stored = server.read_call(call.id)
    _, cut = [turn["text"] for turn in stored["turns"]]
    assert LONG.startswith(cut[:20])
    assert len(cut) < len(LONG) / 2
    [event] = stored["events"]
    assert (event["kind"], event["data"]["heard"]) == ("barge_in", cut)


async def test_another_person_who_turns_out_to_be_calling_changes_the_instructions(
    server: Server,
) -> None:
    tom = start_call(server, "l3", "+15550188")
    async with tom:
        await tom.turn("caller", "This is Tom. I live in Porto.")
    await until(lambda: server.has_named("+15550188", "Tom"))
    session: AgentSession[None] = AgentSession(llm=ScriptedModel("Hi."))
    agent = Agent(instructions="Be kind.")
    async with SessionRecorder(start_call(server, "l4", "+15550188"), session, agent):
        assert "Porto" in agent.instructions
        await session.start(agent)
        await session.run(user_input="This is Anna, not Tom.")
        await until(lambda: "Porto" not in agent.instructions)
        assert agent.instructions.startswith("Be kind.\n\n<briefing>")
        await session.aclose()


async def test_a_job_waits_for_the_end_of_its_call(server: Server) -> None:
    session: AgentSession[None] = AgentSession(llm=ScriptedModel("Hi."))
    agent = Agent(instructions="Be kind.")
    with fake_job_context() as job:
        call = await SessionRecorder(start_call(server, "l5"), session, agent).start()
        await session.start(agent)
        await session.run(user_input="Hello.")
        await session.aclose()
        for callback in job._shutdown_callbacks:  # what a job does when it ends
            await callback("")
    assert server.read_call(call.id)["state"] == "sealed"


SIP = rtc.ParticipantKind.PARTICIPANT_KIND_SIP
NUMBERS = {"sip.phoneNumber": "+15550100", "sip.trunkPhoneNumber": "+15550101"}


@pytest.mark.parametrize(
    ("kind", "attributes", "described"),
    [
        (
            SIP,
            NUMBERS | {"sip.callID": "SCL_1", "sip.ruleID": "SDR_1"},
            {"sid": "SCL_1", "caller": "+15550100", "callee": "+15550101"},
        ),
        (
            SIP,
            NUMBERS | {"sip.callID": "SCL_2"},
            {
                "sid": "SCL_2",
                "direction": "outbound",
                "caller": "+15550101",
                "callee": "+15550100",
            },
        ),
        (
            SIP,
            {"sip.phoneNumber": "anonymous", "sip.ruleID": "SDR_1"},
            {"sid": "PA_1"},
        ),
        (rtc.ParticipantKind.PARTICIPANT_KIND_STANDARD, {}, {"sid": "PA_1"}),
    ],
)
def test_a_participant_gives_the_numbers_of_its_call(
    kind: Any, attributes: dict[str, str], described: dict[str, str]
) -> None:
    participant: Any = SimpleNamespace(kind=kind, attributes=attributes, sid="PA_1")
    known = {"source": "livekit", "direction": "inbound"}
    assert describe_caller(participant) == known | described


class Clinic(Agent):
    """Greets, and books with a tool."""

    def __init__(self) -> None:
        super().__init__(instructions="Book appointments.", tools=[book_slot])

    async def on_enter(self) -> None:
        await self.session.say("Harbor Clinic, how can I help?", add_to_chat_ctx=True)


@function_tool
async def book_slot(day: str, time: str) -> str:
    """Books an appointment."""
    return "done"


def make_clinic(*script: Any) -> LiveKitAgent:
    session: AgentSession[None] = AgentSession(llm=ScriptedModel(*script))
    return LiveKitAgent(lambda: (session, Clinic()))


async def test_the_tester_calls_a_livekit_agent_and_sees_its_tools() -> None:
    booked = ("book_slot", {"day": "Tuesday", "time": "ten"})
    ask, done = "May I have your name?", "It is done. Anything else?"
    bye = ["Thank you for calling, goodbye."] * 4
    agents = iter([make_clinic(ask, booked, done, *bye), make_clinic(ask, done, *bye)])
    (scenario,) = find_scenarios(["appointment_scheduling"]).scenarios
    clock = SystemClock()
    target = AgentTarget.of_agent("livekit", CallSetup(clock), lambda: next(agents))
    proven = await run_once(scenario, target, SuiteParts(clock))
    said_only = await run_once(scenario, target, SuiteParts(clock))
    first = proven.records[0].agent_spans[0]
    assert first.text == "Harbor Clinic, how can I help?"
    assert proven.criteria[0].evidence == "called book_slot"
    assert (proven.verdict, said_only.verdict) == ("passed", "inconclusive")


async def test_an_error_in_a_livekit_agent_is_the_agents() -> None:
    def fail() -> None:
        raise ValueError("no session")

    with pytest.raises(AgentBroke, match="ValueError"):
        await LiveKitAgent(fail).start(DialedCall(None, "any"))


async def test_a_livekit_agent_that_closes_its_session_has_hung_up() -> None:
    session: AgentSession[None] = AgentSession(llm=ScriptedModel())
    agent = LiveKitAgent(lambda: (session, Agent(instructions="Be kind.")))
    await agent.start(DialedCall(None, "any"))
    await session.aclose()
    (answer,) = await agent.respond("Hello?")
    assert answer.ends_call
