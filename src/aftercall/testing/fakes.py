"""Fakes for turn-based calls: an engine, a reader, a model and a caller."""

import asyncio
import json
from typing import Any

from aftercall.bridge.turn_call import TurnCall, TurnCallParts
from aftercall.engine.voice import AgentReply, TurnSession
from aftercall.llm.cached_reader import CachedReader
from aftercall.llm.model.completion import Completion, Prompt, Usage
from aftercall.model.briefing import Briefing
from aftercall.model.calls import Call
from aftercall.model.reading import Reading
from aftercall.testing.calls import make_live_call


class FakeEngine:
    """A TurnEngine that gives these answers in order; an exception is raised, None never
    answers.
    """

    def __init__(
        self,
        *answers: str | AgentReply | Exception | None,
        greeting: str | Exception = "Hello!",
    ) -> None:
        self.briefings: list[Briefing] = []
        self.heard: list[str] = []
        self.asked = asyncio.Event()
        self.is_closed = False
        self._greeting = greeting
        self._answers = list(answers)

    async def connect(self, briefing: Briefing) -> TurnSession:
        self.briefings.append(briefing)
        return self

    async def greet(self) -> AgentReply:
        return await self._give(self._greeting)

    async def answer(self, said: str) -> AgentReply:
        self.heard.append(said)
        self.asked.set()
        return await self._give(
            self._answers.pop(0) if self._answers else "Anything else?"
        )

    async def update_briefing(self, briefing: Briefing, *, is_another: bool) -> None:
        self.briefings.append(briefing)

    async def close(self) -> None:
        self.is_closed = True

    async def _give(self, answer: str | AgentReply | Exception | None) -> AgentReply:
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
        return answer if isinstance(answer, AgentReply) else AgentReply(str(answer))


class FakeReader(CachedReader):
    """A Reader that finds the same in every call, after it has raised its `faults`."""

    name = "fake"

    def __init__(self, reading: Reading | None = None, *faults: Exception) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self._finds = reading or Reading(language="en", summary="The caller called.")
        self._faults = list(faults)

    def read(self, call: Call) -> Reading:
        self.calls.append(call)
        if self._faults:
            raise self._faults.pop(0)
        return self._finds


class FakeModel:
    """A model client that gives these answers in order, then the last one again; an exception
    is raised.
    """

    def __init__(
        self,
        *said: str | dict[str, Any] | Completion | Exception,
        part_chars: int = 60_000,
    ) -> None:
        self.name = "fake:model"
        self.part_chars = part_chars
        self.prompts: list[Prompt] = []
        self._said = list(said)

    def ask(self, prompt: Prompt) -> Completion:
        self.prompts.append(prompt)
        said = self._said.pop(0) if len(self._said) > 1 else self._said[0]
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Completion):
            return said
        text = said if isinstance(said, str) else json.dumps(said)
        return Completion(text, usage=Usage(100, 10, 0.001))

    async def ask_within(self, prompt: Prompt, timeout_s: float) -> Completion:
        return self.ask(prompt)


class FakePhone:
    """A caller with a script: rings, says a line after each answer, and hangs up at the end."""

    def __init__(self, parts: TurnCallParts, caller: str | None = "+15550100") -> None:
        self._parts = parts
        self._caller = caller

    async def ring(
        self, *lines: str, hangs_up: bool = True
    ) -> tuple[TurnCall, list[str]]:
        """Returns the call and what the caller heard."""
        live = make_live_call(caller=self._caller, started_at=self._parts.clock.now())
        call = TurnCall(self._parts, live)
        heard = [(await call.start()).text]
        for line in lines:
            if call.end_reason is None:
                heard.append((await call.answer(line)).text)
        if hangs_up or call.end_reason:
            await call.end("caller_hung_up")
        return call, heard
