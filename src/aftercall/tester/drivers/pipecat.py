"""A Pipecat bot in this process: `pip install 'aftercall[pipecat]'`, Pipecat 1.14 to 1.x.

The bot gets a transport of ours in place of its telephone. The caller's words enter it as a final
transcription; what the bot sends to its output is what it says. No sound is played, so an answer
is over as soon as the bot has made it.
"""

import asyncio
import inspect
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aftercall.client import check_framework
from aftercall.errors import AgentBroke
from aftercall.tester.drivers.remote import (
    FOLLOW_UP_TIMEOUT_S,
    GREETING_TIMEOUT_S,
)
from aftercall.tester.drivers.text_agent import blame_agent
from aftercall.tester.line import AgentAnswer, AgentAnswers, DialedCall, TextAgent

check_framework("pipecat-ai", (1, 14), 2)
os.environ.setdefault("LOGURU_LEVEL", "WARNING")  # Pipecat logs every frame

from pipecat.audio.dtmf.types import KeypadEntry  # noqa: E402
from pipecat.frames.frames import (  # noqa: E402
    AggregatedTextFrame,
    CancelFrame,
    EndFrame,
    ErrorFrame,
    Frame,
    FunctionCallCancelFrame,
    FunctionCallInProgressFrame,
    FunctionCallResultFrame,
    InputDTMFFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    OutputAudioRawFrame,
    ProposedUserStartedSpeakingFrame,
    ProposedUserStoppedSpeakingFrame,
    StartFrame,
    TextFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline  # noqa: E402
from pipecat.pipeline.worker import PipelineWorker  # noqa: E402
from pipecat.processors.frame_processor import (  # noqa: E402
    FrameDirection,
    FrameProcessor,
)
from pipecat.transports.base_input import BaseInputTransport  # noqa: E402
from pipecat.transports.base_output import BaseOutputTransport  # noqa: E402
from pipecat.transports.base_transport import BaseTransport, TransportParams  # noqa: E402
from pipecat.utils.time import time_now_iso8601  # noqa: E402
from pipecat.workers.runner import WorkerRunner  # noqa: E402

ANSWER_TIMEOUT_S = 30.0
RECOVERY_TIMEOUT_S = 3.0  # in which a bot may still answer after an error
STOP_TIMEOUT_S = 5.0


class PipelineAnswer:
    """What the bot has said and done since it was last read, and whether more is on its way."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.tool_calls: list[str] = []
        self.error: ErrorFrame | None = None
        self.first_at_s: float | None = None
        self.has_ended = False
        self._spoken = ""
        self._written = ""
        self._going_on: set[str] = set()

    @property
    def text(self) -> str:
        """The words of the voice; of a bot without a voice, those of its model."""
        return (self._spoken or self._written).strip()

    @property
    def is_going_on(self) -> bool:
        return bool(self._going_on)

    def read(self, frame: Frame) -> None:
        """A frame that has reached the bot's output."""
        if isinstance(frame, TTSTextFrame | TTSAudioRawFrame | TextFrame):
            self._read_speech(frame)
        elif isinstance(frame, LLMFullResponseStartFrame):
            self._going_on.add("model")
        elif isinstance(frame, LLMFullResponseEndFrame):
            self._going_on.discard("model")
        elif isinstance(frame, TTSStartedFrame):
            self._going_on.add("voice")
        elif isinstance(frame, TTSStoppedFrame):
            self._going_on.discard("voice")
        elif isinstance(frame, InterruptionFrame):
            self._going_on -= {"model", "voice"}
        elif isinstance(frame, EndFrame | CancelFrame):
            self.has_ended = True
        else:
            self._read_tool(frame)
        self.changed.set()

    def add_error(self, error: ErrorFrame) -> None:
        self.error = error
        self.changed.set()

    def pop(self, sent_s: float | None) -> AgentAnswer:
        """The answer as one turn; the next one begins empty."""
        took_s = None
        if sent_s is not None and self.first_at_s is not None:
            took_s = max(0.0, self.first_at_s - sent_s)
        answer = AgentAnswer(
            self.text,
            ends_call=self.has_ended,
            tool_calls=tuple(self.tool_calls),
            took_s=took_s,
        )
        self.error = self.first_at_s = None
        self._spoken = self._written = ""
        self.tool_calls = []
        return answer

    def _read_speech(self, frame: Any) -> None:
        is_sound = isinstance(frame, TTSAudioRawFrame)
        if is_sound or frame.text.strip():
            self.first_at_s = self.first_at_s or time.perf_counter()
        if isinstance(frame, TTSTextFrame):
            self._spoken = _append(self._spoken, frame)
        elif isinstance(frame, TextFrame) and not isinstance(
            frame, AggregatedTextFrame
        ):
            self._written = _append(self._written, frame)

    def _read_tool(self, frame: Frame) -> None:
        if isinstance(frame, FunctionCallInProgressFrame):
            self._going_on.add(frame.tool_call_id)
            arguments = json.dumps(frame.arguments, default=str)
            self.tool_calls.append(f"{frame.function_name} {arguments}")
        elif isinstance(frame, FunctionCallResultFrame | FunctionCallCancelFrame):
            properties = getattr(frame, "properties", None)
            if properties is None or properties.is_final:
                self._going_on.discard(frame.tool_call_id)


def _append(said: str, frame: TextFrame) -> str:
    if frame.includes_inter_frame_spaces:
        return f"{said}{frame.text}"
    return f"{said} {frame.text.strip()}"


class TestCallTransport(BaseTransport):
    """The line of a test call: words in, words and tools out, no sound and no network."""

    __test__ = False  # not a test of pytest's

    def __init__(self, answer: PipelineAnswer, caller: str | None) -> None:
        super().__init__()
        self._register_event_handler("on_client_connected")
        self._register_event_handler("on_client_disconnected")
        self._caller = caller
        self._input = TestCallInput(answer)
        self._output = TestCallOutput(answer, self)

    def input(self) -> FrameProcessor:
        return self._input

    def output(self) -> FrameProcessor:
        return self._output

    async def connect(self) -> None:
        await self._call_event_handler("on_client_connected", self._caller)

    async def disconnect(self) -> None:
        await self._call_event_handler("on_client_disconnected", self._caller)

    async def say(self, text: str) -> None:
        """Bots that decide themselves when a turn is over ignore the two proposals."""
        now = time_now_iso8601()
        said = TranscriptionFrame(text, self._caller or "", now, finalized=True)
        await self._input.push_frame(ProposedUserStartedSpeakingFrame())
        await self._input.push_frame(said)
        await self._input.push_frame(ProposedUserStoppedSpeakingFrame())

    async def press(self, digits: str) -> None:
        for digit in digits:
            await self._input.push_frame(InputDTMFFrame(KeypadEntry(digit)))


class TestCallInput(BaseInputTransport):
    """The start of the pipeline: errors of all its processors come here."""

    __test__ = False

    def __init__(self, answer: PipelineAnswer) -> None:
        super().__init__(TransportParams())
        self._answer = answer

    async def start(self, frame: StartFrame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        if isinstance(frame, ErrorFrame):
            self._answer.add_error(frame)
        await super().process_frame(frame, direction)


class TestCallOutput(BaseOutputTransport):
    """The bot's loudspeaker: takes sound at once, and words without waiting for their sound."""

    __test__ = False

    def __init__(self, answer: PipelineAnswer, line: TestCallTransport) -> None:
        params = TransportParams(audio_out_enabled=True, audio_out_end_silence_secs=0)
        super().__init__(params)
        self._answer = answer
        self._line = line

    async def start(self, frame: StartFrame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)
        await self._line.connect()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        if direction is FrameDirection.DOWNSTREAM:
            self._answer.read(frame)
            frame.pts = None  # the time at which a word is heard: here it is now
        await super().process_frame(frame, direction)

    async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
        return True


class PipecatAgent(TextAgent):
    """`make(transport)` builds the bot on the transport for one call.

    It returns its worker or pipeline, which is run here, or runs the bot itself and returns when
    the bot has ended, as `run_bot` does in Pipecat's examples.
    """

    def __init__(self, make: Callable[[BaseTransport], Any]) -> None:
        self._make = make
        self._answer = PipelineAnswer()
        self._transport: TestCallTransport | None = None
        self._worker: PipelineWorker | None = None
        self._running: asyncio.Task[None] | None = None

    async def start(self, dial: DialedCall) -> AgentAnswers:
        """What the bot says when its client connects is the greeting."""
        self._transport = TestCallTransport(self._answer, dial.caller)
        self._running = asyncio.create_task(self._run(self._transport))
        self._running.add_done_callback(lambda _: self._answer.changed.set())
        return await self._collect(GREETING_TIMEOUT_S, None)

    async def respond(self, text: str) -> AgentAnswers:
        if self._transport is None or self._answer.has_ended:
            return [AgentAnswer("", ends_call=True)]
        sent_s = time.perf_counter()
        await self._transport.say(text)
        return await self._collect(ANSWER_TIMEOUT_S, sent_s)

    async def press(self, digits: str) -> AgentAnswers:
        if self._transport is None or self._answer.has_ended:
            return [AgentAnswer("", ends_call=True)]
        sent_s = time.perf_counter()
        await self._transport.press(digits)
        return await self._collect(ANSWER_TIMEOUT_S, sent_s)

    async def idle(self, seconds: int) -> AgentAnswers:
        """What the bot says of its own accord."""
        return await self._collect(0.01, None)

    async def hang_up(self) -> None:
        """Tells the bot that its client has gone; one that does not end then is stopped."""
        if self._transport is None or self._running is None:
            return
        await self._transport.disconnect()
        if self._worker is not None and not self._running.done():
            await self._worker.cancel()
        await asyncio.wait([self._running], timeout=STOP_TIMEOUT_S)
        self._running.cancel()
        with suppress(asyncio.CancelledError, AgentBroke):
            await self._running

    async def _run(self, transport: TestCallTransport) -> None:
        try:
            made = self._make(transport)
            bot = await made if inspect.isawaitable(made) else made
            if isinstance(bot, Pipeline):
                bot = PipelineWorker(bot)
            if isinstance(bot, PipelineWorker):
                self._worker = bot
                runner = WorkerRunner(handle_sigint=False)
                await runner.add_workers(bot)
                await runner.run()
        # the agent under test: any error in it is a result of the test
        except Exception as error:
            raise blame_agent(error) from error
        finally:
            self._answer.has_ended = True

    async def _collect(self, timeout_s: float, sent_s: float | None) -> AgentAnswers:
        """Waits until the bot has said something and nothing more of it is on its way."""
        answer = self._answer
        limit_s = time.perf_counter() + max(timeout_s, ANSWER_TIMEOUT_S)
        while not answer.has_ended and time.perf_counter() < limit_s:
            answer.changed.clear()
            try:
                async with asyncio.timeout(self._wait_s(timeout_s)):
                    await answer.changed.wait()
            except TimeoutError:
                if answer.error or not answer.is_going_on:
                    break
        self._raise_failure()
        popped = answer.pop(sent_s)
        has_any = popped.text or popped.tool_calls or popped.ends_call
        return [popped] if has_any else []

    def _wait_s(self, timeout_s: float) -> float:
        """How long nothing may happen before the answer is taken as whole.

        A processor that failed in the middle of an answer does not report its end.
        """
        if self._answer.error and not self._answer.text:
            return RECOVERY_TIMEOUT_S
        if self._answer.is_going_on:
            return ANSWER_TIMEOUT_S
        return FOLLOW_UP_TIMEOUT_S if self._answer.text else timeout_s

    def _raise_failure(self) -> None:
        """An error after which the bot still answered is one that it has got over."""
        running, error = self._running, self._answer.error
        if running is not None and running.done() and not running.cancelled():
            running.result()
        if error is None or self._answer.text:
            return
        what = type(error.exception).__name__ if error.exception else "an error frame"
        where = type(error.processor).__name__
        raise AgentBroke(f"the agent broke ({what} in {where})")
