"""LangWatch's `scenario` calls the known agent; printed is what it says the latency was.

Run by a Python that has it installed.

python bench/langwatch_call.py LEAD_S open|gated
"""

import asyncio
import json
import sys
import time
from array import array
from importlib import import_module
from typing import Any

from known_agent import FRAME_S, QUESTION_S, KnownAgent, hum

RATE = 24_000
FRAME = 2 * round(RATE * FRAME_S)
scenario: Any = import_module("scenario")
voice: Any = import_module("scenario.voice")


class Line(voice.VoiceAgentAdapter):  # type: ignore[misc]
    """LangWatch's own way of adding a transport: a line on which both sides pass in real time."""

    capabilities = voice.AdapterCapabilities(
        input_formats=["pcm16/24000"], output_formats=["pcm16/24000"]
    )

    def __init__(self, agent: KnownAgent) -> None:
        super().__init__()
        self._agent = agent
        self._to_agent: asyncio.Queue[bytes] = asyncio.Queue()
        self._to_caller: asyncio.Queue[bytes] = asyncio.Queue()
        self._asked_s = self._answered_s = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def truth_s(self) -> float:
        """From the end of the question to the first audible sample, by the clock: delay and
        leading silence as they came to be.
        """
        return self._answered_s - self._asked_s + self._agent.lead_s

    async def connect(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def disconnect(self) -> None:
        if self._task:
            self._task.cancel()

    async def send_audio(self, chunk: Any) -> None:
        """Returns when the last frame has been spoken, so that its clock of the caller's end is
        right.
        """
        for at in range(0, len(chunk.data), FRAME):
            self._to_agent.put_nowait(chunk.data[at : at + FRAME])
        await self._to_agent.join()

    async def recv_audio(self, timeout: float) -> Any:  # noqa: ASYNC109 - LangWatch's own signature
        return voice.AudioChunk(
            data=await asyncio.wait_for(self._to_caller.get(), timeout)
        )

    async def _run(self) -> None:
        while True:
            began = time.monotonic()
            frame = b"" if self._to_agent.empty() else self._to_agent.get_nowait()
            if (
                sound := self._agent.tick(
                    any(abs(sample) > 500 for sample in array("h", frame))
                )
            ) is not None:
                self._to_caller.put_nowait(sound)
                if self._asked_s and not self._answered_s and self._agent.is_answering:
                    self._answered_s = began
            # a busy machine makes it late, and never hurries it
            await asyncio.sleep(max(0.0, began + FRAME_S - time.monotonic()))
            if frame:
                self._to_agent.task_done()
                self._asked_s = time.monotonic()


class Asker(scenario.AgentAdapter):  # type: ignore[misc]
    """A caller without a model: says the question."""

    role = scenario.AgentRole.USER

    async def call(self, _: Any) -> Any:
        return voice.create_audio_message(
            voice.AudioChunk(data=hum(QUESTION_S, RATE)), role="user"
        )


async def main() -> None:
    lead_s, form = float(sys.argv[1]), sys.argv[2]
    agent = KnownAgent(RATE, lead_s, is_open_line=form == "open")
    line = Line(agent)
    began = time.perf_counter()
    result = await scenario.run(
        name="known agent",
        description="one question, one answer",
        agents=[line, Asker()],
        script=[scenario.user(), scenario.agent(), scenario.succeed()],
    )
    took_s = time.perf_counter() - began
    latency = getattr(result, "latency", None)
    reported = list(latency.measurements) if latency else []
    print(
        json.dumps(
            {
                "truth_s": line.truth_s,
                "reported_s": reported,
                "took_s": took_s,
                "success": bool(result.success),
            }
        )
    )


asyncio.run(main())
