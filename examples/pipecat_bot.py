"""A Pipecat bot that remembers its callers. Two calls, no key, no telephone:

    make pipecat

The pipeline is an ordinary one. Its model, its voice and its line are stand-ins at the end of
this file: put your own services there. `PipelineRecorder` is all that Aftercall needs.
"""

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from loguru import logger
from pipecat.frames.frames import (
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    EndFrame,
    Frame,
    FunctionCallFromLLM,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    OutputAudioRawFrame,
    ProposedUserStartedSpeakingFrame,
    ProposedUserStoppedSpeakingFrame,
    StartFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    TTSSpeakFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import (
    AssistantTurnStoppedMessage,
    LLMContextAggregatorPair,
    LLMUserAggregatorParams,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.llm_service import LLMService
from pipecat.services.tts_service import TTSService
from pipecat.transports.base_input import BaseInputTransport
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import BaseTransport, TransportParams
from pipecat.turns.user_turn_strategies import ExternalUserTurnStrategies
from pipecat.utils.time import time_now_iso8601
from pipecat.workers.runner import WorkerRunner
from stand_ins import answer_from, choose_request, find_server

from aftercall.client import Client
from aftercall.client.pipecat import PipelineRecorder

CALLER = "+15550100"
WORD_S = 0.04
CALLS = (
    ["This is Maya. Please call the plumber about the leak."],
    ["Do you remember what I asked you about the plumber?"],
)


async def answer_call(client: Client, line: "Line", llm: LLMService) -> None:
    """The bot. Everything of Aftercall is in the two lines with `call`."""
    worker, aggregators = build_worker(line, llm, LLMContext())
    call = client.call(caller=CALLER, source="pipecat", sid=uuid.uuid4().hex)

    @aggregators.assistant().event_handler("on_assistant_turn_stopped")
    async def show(source: object, message: AssistantTurnStoppedMessage) -> None:
        if message.content:
            print(f"Agent: {message.content}")

    @line.event_handler("on_client_connected")
    async def greet(transport: BaseTransport, caller: str) -> None:
        await worker.queue_frame(TTSSpeakFrame(call.briefing.greeting))

    @line.event_handler("on_client_disconnected")
    async def hang_up(transport: BaseTransport, caller: str) -> None:
        await worker.queue_frame(EndFrame())

    async with PipelineRecorder(call, aggregators, llm, line):
        print(f"What the model is told first:\n{call.briefing.text}\n")
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(worker)
        await runner.run()


def build_worker(
    line: "Line", llm: LLMService, context: LLMContext
) -> tuple[PipelineWorker, LLMContextAggregatorPair]:
    strategies = ExternalUserTurnStrategies()
    aggregators = LLMContextAggregatorPair(
        context, user_params=LLMUserAggregatorParams(user_turn_strategies=strategies)
    )
    pipeline = Pipeline(
        [
            line.input(),
            aggregators.user(),
            llm,
            SilentVoice(),
            line.output(),
            aggregators.assistant(),  # after the output: it hears what the caller hears
        ]
    )
    return PipelineWorker(pipeline, enable_rtvi=False), aggregators


async def main() -> None:
    logger.remove()  # Pipecat's log would stand between the lines of the call
    async with Client() as client:
        for said in CALLS:
            print("\n--- the telephone rings ---")
            line = Line()
            speaking = asyncio.create_task(play_caller(line, said))
            await answer_call(client, line, RuleModel())
            await speaking


async def play_caller(line: "Line", said: list[str]) -> None:
    await line.bot_is_silent()
    for text in said:
        await line.say(text)
        await line.bot_is_silent()
    await line.hang_up()


# Stand-ins: a model that knows two rules, a voice without sound, and a line without a telephone.


class RuleModel(LLMService):
    """Takes down what the caller asks for with "please", and answers from what it was told."""

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMContextFrame):
            await self.push_frame(LLMFullResponseStartFrame())
            await self._answer(frame.context)
            await self.push_frame(LLMFullResponseEndFrame())
        else:
            await self.push_frame(frame, direction)

    async def _answer(self, context: LLMContext) -> None:
        messages: list[Any] = context.messages
        said = messages[-1]["content"]
        if messages[-1]["role"] == "tool":
            await self._push_llm_text("I have written that down.")
        elif request := choose_request(said):
            use = FunctionCallFromLLM("take_request", said, request, context)
            await self.run_function_calls([use])
        else:
            told = "\n".join(str(message.get("content")) for message in messages[:-1])
            await self._push_llm_text(answer_from(told, said))


class SilentVoice(TTSService):
    """Silence as long as the words would take, quickly spoken. It tells when each word is heard."""

    def __init__(self) -> None:
        super().__init__(
            sample_rate=16_000,
            push_text_frames=False,
            push_start_frame=True,
            push_stop_frames=True,
        )
        self._spoken: Counter[str] = Counter()  # words of each answer so far

    async def run_tts(self, text: str, context_id: str) -> AsyncIterator[Frame | None]:
        words = text.split()
        first = self._spoken[context_id]
        self._spoken[context_id] += len(words)
        times = [(word, place * WORD_S) for place, word in enumerate(words, first)]
        await self.add_word_timestamps(times, context_id)
        silence = bytes(2 * round(self.sample_rate * WORD_S))
        for _ in words:
            yield TTSAudioRawFrame(silence, self.sample_rate, 1, context_id=context_id)


class Line(BaseTransport):
    """What the caller says comes as text; audio takes its time, and goes nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self._register_event_handler("on_client_connected")
        self._register_event_handler("on_client_disconnected")
        params = TransportParams(audio_out_enabled=True)
        self._input = BaseInputTransport(params)
        self._output = LineOutput(params, self)
        self.is_speaking = False
        self._stops_due = 1  # the greeting's
        self._silent = asyncio.Event()

    def input(self) -> FrameProcessor:
        return self._input

    def output(self) -> FrameProcessor:
        return self._output

    async def connect(self) -> None:
        await self._call_event_handler("on_client_connected", CALLER)

    async def say(self, text: str) -> None:
        print(f"Caller: {text}")
        self._stops_due = 2 if self.is_speaking else 1  # who is interrupted stops, too
        self._silent.clear()
        await self._input.push_frame(ProposedUserStartedSpeakingFrame())
        await asyncio.sleep(max(WORD_S * len(text.split()), 0.2))
        said = TranscriptionFrame(text, CALLER, time_now_iso8601(), finalized=True)
        await self._input.push_frame(said)
        await self._input.push_frame(ProposedUserStoppedSpeakingFrame())

    async def bot_is_silent(self) -> None:
        """The bot has answered what was said."""
        await self._silent.wait()

    def note_speech(self, is_speaking: bool) -> None:
        self.is_speaking = is_speaking
        self._stops_due -= not is_speaking
        if self._stops_due <= 0:
            self._silent.set()

    async def hang_up(self) -> None:
        await self._call_event_handler("on_client_disconnected", CALLER)


class LineOutput(BaseOutputTransport):
    def __init__(self, params: TransportParams, line: Line) -> None:
        super().__init__(params)
        self._line = line

    async def start(self, frame: StartFrame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)
        await self._line.connect()

    async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
        await asyncio.sleep(frame.num_frames / frame.sample_rate)
        return True

    async def push_frame(
        self, frame: Frame, direction: FrameDirection = FrameDirection.DOWNSTREAM
    ) -> None:
        await super().push_frame(frame, direction)
        if direction is FrameDirection.UPSTREAM:
            return
        if isinstance(frame, BotStartedSpeakingFrame | BotStoppedSpeakingFrame):
            self._line.note_speech(isinstance(frame, BotStartedSpeakingFrame))


if __name__ == "__main__":
    with find_server():
        asyncio.run(main())
