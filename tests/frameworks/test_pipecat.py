"""A real Pipecat pipeline as a call: what was heard, the briefing, the tools, the end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from pipecat.frames.frames import (
    EndFrame,
    EndWorkerFrame,
    Frame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMRunFrame,
    TTSSpeakFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import (
    LLMContextAggregatorPair,
)
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.llm_service import (
    FunctionCallFromLLM,
    FunctionCallParams,
    LLMService,
)
from pipecat.transports.base_transport import BaseTransport
from pipecat.workers.runner import WorkerRunner
from pipecat_bot import Line, SilentVoice, build_worker

from aftercall.client import ClientCall
from aftercall.client.pipecat import PipelineRecorder
from aftercall.clock import SystemClock
from aftercall.errors import AgentBroke, LineFailed
from aftercall.settings import Settings
from aftercall.tester.agents import open_target
from aftercall.tester.drivers.pipecat import PipecatAgent
from aftercall.tester.library import find_scenarios
from aftercall.tester.line import DialedCall
from aftercall.tester.suite import SuiteParts, run_once
from aftercall.tester.target import AgentTarget, CallSetup
from framework_server import Server
from waiting import until

LONG = " ".join(f"Sentence number {count} is here." for count in range(1, 21))


async def look_up_weather(params: FunctionCallParams, city: str) -> None:
    """Tells the weather.

    Args:
        city: where
    """
    await params.result_callback(f"Rain in {city}.")


class ScriptedModel(LLMService):
    """Says what stands in its script, or uses the tool that stands there."""

    def __init__(self, *script: Any) -> None:
        super().__init__()
        self._script = list(script)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if not isinstance(frame, LLMContextFrame):
            await self.push_frame(frame, direction)
            return
        await self.push_frame(LLMFullResponseStartFrame())
        line = self._script.pop(0)
        if isinstance(line, str):
            await self._push_llm_text(line)
        else:
            name, arguments = line
            use = FunctionCallFromLLM(name, f"id-{name}", arguments, frame.context)
            await self.run_function_calls([use])
        await self.push_frame(LLMFullResponseEndFrame())


@dataclass
class Bot:
    call: ClientCall
    context: LLMContext
    line: Line
    heard: list[str]

    async def hear(self, said: str) -> None:
        """Waits until the bot has answered."""
        await self.line.say(said)
        await self.line.bot_is_silent()


@asynccontextmanager
async def running(
    server: Server, sid: str, model: LLMService, caller: str = "+15550100"
) -> AsyncIterator[Bot]:
    line, context = Line(), LLMContext(tools=[look_up_weather])
    worker, pair = build_worker(line, model, context)
    started = asyncio.Event()

    @line.event_handler("on_client_connected")
    async def note(transport: object, who: object) -> None:
        started.set()

    @line.event_handler("on_client_disconnected")
    async def stop(transport: object, who: object) -> None:
        await worker.queue_frame(EndFrame())

    heard: list[str] = []

    @line.output().event_handler("on_after_push_frame")
    def listen(output: object, frame: Frame) -> None:
        if isinstance(frame, TTSTextFrame):
            heard.append(frame.text)

    call = server.client.call(caller=caller, source="pipecat", sid=sid)
    async with PipelineRecorder(call, pair, model, line):
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(worker)
        work = asyncio.create_task(runner.run())
        await started.wait()
        yield Bot(call, context, line, heard)
        await line.hang_up()
        await work


def briefing_in(context: LLMContext) -> str:
    messages: list[Any] = context.messages
    return "".join(m["content"] for m in messages if m["role"] == "developer")


async def test_a_call_is_stored_as_it_was_heard_with_its_tools(server: Server) -> None:
    model = ScriptedModel(
        "Good morning.",
        ("take_request", {"title": "Call the plumber", "kind": "task"}),
        "It is written down.",
        ("look_up_weather", {"city": "Porto"}),
        "It rains.",
    )
    async with running(server, "p1", model) as bot:
        assert briefing_in(bot.context).startswith("<briefing>")
        await bot.hear("Hello.")
        await bot.hear("Please call the plumber.")
        await bot.hear("And the weather in Porto?")
    call = server.read_call(bot.call.id)
    assert [(turn["speaker"], turn["text"]) for turn in call["turns"]] == [
        ("caller", "Hello."),
        ("agent", "Good morning."),
        ("caller", "Please call the plumber."),
        ("agent", "It is written down."),
        ("caller", "And the weather in Porto?"),
        ("agent", "It rains."),
    ]
    taken, used = call["events"]
    assert (taken["kind"], taken["data"]["title"]) == (
        "request.taken",
        "Call the plumber",
    )
    assert (used["kind"], used["data"]["tool"]) == ("tool.used", "look_up_weather")
    assert used["data"]["arguments"] == {"city": "Porto"}
    assert call["end_reason"] == "caller_hung_up"


async def test_of_an_answer_that_was_interrupted_the_part_that_was_heard_is_stored(
    server: Server,
) -> None:
    model = ScriptedModel(LONG, "I stop.")
    async with running(server, "p2", model) as bot:
        await bot.line.say("Tell me everything.")
        await until(lambda: "number 3" in " ".join(bot.heard))
        await bot.hear("Stop.")
    call = server.read_call(bot.call.id)
    asked, cut, stop, last = [turn["text"] for turn in call["turns"]]
    assert (asked, stop, last) == ("Tell me everything.", "Stop.", "I stop.")
    assert cut.startswith("Sentence number 1 is here.")
    assert LONG.startswith(cut)
    assert len(cut) < len(LONG) / 2
    [event] = call["events"]
    assert (event["kind"], event["data"]["heard"]) == ("barge_in", cut)


async def test_the_context_tells_of_another_person_who_turns_out_to_be_calling(
    server: Server,
) -> None:
    tom = server.client.call(caller="+15550177", source="pipecat", sid="p3")
    async with tom:
        await tom.turn("caller", "This is Tom. I live in Porto.")
    await until(lambda: server.has_named("+15550177", "Tom"))
    async with running(server, "p4", ScriptedModel("Hi."), "+15550177") as bot:
        assert "Porto" in briefing_in(bot.context)
        await bot.hear("This is Anna, not Tom.")
        await until(lambda: "Porto" not in briefing_in(bot.context))
        assert briefing_in(bot.context).startswith("<briefing>")


GREETING = "Harbor Clinic, how can I help?"
CALL = DialedCall("+15550100", "any")


async def book_slot(params: FunctionCallParams, day: str, time: str) -> None:
    """Books an appointment.

    Args:
        day: which day
        time: at what time
    """
    await params.result_callback("done")


def build_clinic(transport: BaseTransport, *script: Any) -> PipelineWorker:
    """A bot with Pipecat's own way of finding the end of a turn."""
    pair = LLMContextAggregatorPair(LLMContext(tools=[book_slot]))
    model, voice = ScriptedModel(*script), SilentVoice()
    parts = [transport.input(), pair.user(), model, voice, transport.output()]
    worker = PipelineWorker(Pipeline([*parts, pair.assistant()]))

    @transport.event_handler("on_client_connected")
    async def greet(source: object, client: object) -> None:
        await worker.queue_frame(TTSSpeakFrame(GREETING))

    return worker


async def test_the_tester_calls_a_pipecat_bot_and_sees_its_tools() -> None:
    booked = ("book_slot", {"day": "Tuesday", "time": "ten"})
    ask, done = "May I have your name?", "It is done. Anything else?"
    bye = ["Thank you for calling, goodbye."] * 4
    scripts = iter([(ask, booked, done, *bye), (ask, done, *bye)])
    (scenario,) = find_scenarios(["appointment_scheduling"]).scenarios
    clock = SystemClock()
    target = AgentTarget.of_agent(
        "pipecat",
        CallSetup(clock),
        lambda: PipecatAgent(lambda line: build_clinic(line, *next(scripts))),
    )
    proven = await run_once(scenario, target, SuiteParts(clock))
    said_only = await run_once(scenario, target, SuiteParts(clock))
    assert proven.records[0].agent_spans[0].text == GREETING
    assert proven.criteria[0].evidence == "called book_slot"
    assert (proven.verdict, said_only.verdict) == ("passed", "inconclusive")


async def test_each_answer_of_a_pipecat_bot_is_one_turn_with_its_time() -> None:
    agent = PipecatAgent(lambda line: build_clinic(line, "One. Two.", "Three."))
    (greeting,) = await agent.start(CALL)
    (first,) = await agent.respond("Count, please.")
    (second,) = await agent.respond("Go on.")
    await agent.hang_up()
    assert (greeting.text, first.text, second.text) == (GREETING, "One. Two.", "Three.")
    assert greeting.took_s is None
    assert first.took_s is not None


async def test_a_pipecat_bot_may_run_itself_and_have_no_voice() -> None:
    ended = []

    async def run_bot(transport: BaseTransport) -> None:
        pair = LLMContextAggregatorPair(LLMContext())
        parts = [transport.input(), pair.user(), ScriptedModel(GREETING, "I write.")]
        parts += [transport.output(), pair.assistant()]
        worker = PipelineWorker(Pipeline(parts))

        @transport.event_handler("on_client_connected")
        async def greet(source: object, client: object) -> None:
            await worker.queue_frame(LLMRunFrame())

        @transport.event_handler("on_client_disconnected")
        async def stop(source: object, client: object) -> None:
            await worker.queue_frame(EndFrame())

        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(worker)
        await runner.run()
        ended.append(True)

    agent = PipecatAgent(run_bot)
    (greeting,) = await agent.start(CALL)
    (answer,) = await agent.respond("Hello.")
    await agent.hang_up()
    assert (greeting.text, answer.text) == (GREETING, "I write.")
    assert ended == [True]


async def test_an_error_in_a_pipecat_bot_is_the_agents() -> None:
    agent = PipecatAgent(lambda line: build_clinic(line))
    await agent.start(CALL)
    with pytest.raises(AgentBroke, match="IndexError in ScriptedModel"):
        await agent.respond("Hello.")
    await agent.hang_up()

    def fail(transport: BaseTransport) -> None:
        raise ValueError("no pipeline")

    with pytest.raises(AgentBroke, match="ValueError"):
        await PipecatAgent(fail).start(CALL)


class RecoveringModel(ScriptedModel):
    """Its first attempt fails, the second answers."""

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        if isinstance(frame, LLMContextFrame):
            await self.push_error("the provider is away", ConnectionError())
        await super().process_frame(frame, direction)


async def test_an_error_that_a_pipecat_bot_gets_over_is_none() -> None:
    def build(transport: BaseTransport) -> PipelineWorker:
        pair = LLMContextAggregatorPair(LLMContext())
        parts = [transport.input(), pair.user(), RecoveringModel("I am back.")]
        return PipelineWorker(Pipeline([*parts, transport.output(), pair.assistant()]))

    agent = PipecatAgent(build)
    await agent.start(CALL)
    (answer,) = await agent.respond("Hello.")
    await agent.hang_up()
    assert answer.text == "I am back."


class LeavingModel(ScriptedModel):
    """Hangs up when it has answered, as Pipecat's bots do."""

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMContextFrame):
            await self.push_frame(EndWorkerFrame(), FrameDirection.UPSTREAM)


async def test_a_pipecat_bot_that_ends_its_pipeline_has_hung_up() -> None:
    def build(transport: BaseTransport) -> Pipeline:
        pair = LLMContextAggregatorPair(LLMContext())
        parts = [transport.input(), pair.user(), LeavingModel("Goodbye.")]
        return Pipeline([*parts, transport.output(), pair.assistant()])

    agent = PipecatAgent(build)
    await agent.start(CALL)
    (answer,) = await agent.respond("That is all.")
    (again,) = await agent.respond("Hello?")
    await agent.hang_up()
    assert (answer.text, answer.ends_call) == ("Goodbye.", True)
    assert again.ends_call


async def test_a_pipecat_function_that_is_not_there_is_named() -> None:
    setup = CallSetup(SystemClock())
    with pytest.raises(LineFailed, match="nowhere:bot cannot be loaded"):
        async with open_target(Settings(), "pipecat:nowhere:bot", setup):
            pass
