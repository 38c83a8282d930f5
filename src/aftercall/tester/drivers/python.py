"""An agent that is a Python function: text in and text out, or sound in and sound out."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import Any

from aftercall.errors import AgentBroke, LineFailed
from aftercall.speech.sound import FRAME_BYTES, from_pcm
from aftercall.tester.drivers.remote import read_answer
from aftercall.tester.line import (
    AgentAnswer,
    AgentTick,
    CallerTick,
    DialedCall,
    Kind,
    Outcome,
)

Answer = str | AgentAnswer | dict[str, Any] | Sequence[Any] | None
TextFunction = Callable[[str], Answer | Awaitable[Answer]]


def as_replies(answer: Answer) -> list[AgentAnswer]:
    if answer is None:
        return []
    if isinstance(answer, AgentAnswer):
        return [answer]
    if isinstance(answer, str):
        return [AgentAnswer(answer)]
    if isinstance(answer, dict):
        return read_answer(answer)
    return [reply for item in answer for reply in as_replies(item)]


class CallableAgent:
    """`function(text)` returns the agent's words; for an empty text, the greeting.

    It may also return what an HTTP agent answers: `{"text", "ends_call", "tool_calls"}`.
    """

    def __init__(self, function: TextFunction) -> None:
        self._function = function

    async def start(self, dial: DialedCall) -> Sequence[AgentAnswer]:
        return await self.respond("")

    async def respond(self, text: str) -> Sequence[AgentAnswer]:
        try:
            answer = self._function(text)
            return as_replies(await answer if inspect.isawaitable(answer) else answer)
        # the agent under test: any error in it is a result of the test
        except Exception as error:
            raise AgentBroke(f"the agent broke ({type(error).__name__})") from error

    async def press(self, digits: str) -> Sequence[AgentAnswer]:
        return await self.respond(f"[keys {digits}]")

    async def idle(self, seconds: int) -> Sequence[AgentAnswer]:
        return ()

    async def hang_up(self) -> None:
        return


class AudioAgentConnection:
    """Calls `function(sound)` every 20 ms with a μ-law frame; it returns sound of any length.

    With `rate` and `channels` the function returns 16-bit samples, which are converted here.
    """

    def __init__(
        self,
        function: Callable[[bytes], bytes | None],
        *,
        rate: int = 0,
        channels: int = 1,
    ) -> None:
        self._function = function
        self._rate = rate
        self._channels = channels
        self._rest = b""

    @property
    def kind(self) -> Kind:
        return "audio"

    async def connect(self, dial: DialedCall) -> Outcome:
        return "answered"

    async def tick(self, at_s: float, near: CallerTick) -> AgentTick:
        try:
            sound = self._function(near.frame) or b""
        # the agent under test: any error in it is a result of the test
        except Exception as error:
            raise AgentBroke(f"the agent broke ({type(error).__name__})") from error
        self._rest += (
            from_pcm(sound, self._rate, self._channels)
            if self._rate and sound
            else sound
        )
        frame, self._rest = self._rest[:FRAME_BYTES], self._rest[FRAME_BYTES:]
        return AgentTick(frame.ljust(FRAME_BYTES, b"\xff"))

    async def hang_up(self) -> None:
        return


def load_function(address: str) -> Any:
    """Imports `module:name`."""
    module, _, name = address.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise LineFailed(
            f"python:{address} cannot be loaded ({error}); write python:module:function"
        ) from None
