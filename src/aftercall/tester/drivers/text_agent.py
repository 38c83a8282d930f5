"""Agents in this process: a text agent on an audio line, and agents that are Python functions.

A voice speaks for a text agent and stops when the caller interrupts.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from aftercall.errors import AgentBroke, LineFailed
from aftercall.model.json_fields import Json
from aftercall.speech.sound import (
    FRAME_BYTES,
    FRAME_S,
    SAMPLE_RATE_HZ,
    LoudnessMeter,
    from_pcm,
)
from aftercall.tester.drivers.remote import read_answer
from aftercall.tester.line import (
    QUIET_FAR,
    AgentAnswer,
    AgentAnswers,
    AgentTick,
    CallerTick,
    DialedCall,
    Kind,
    Outcome,
    TextAgent,
    TickPace,
)
from aftercall.tester.voice import CallerVoice, LineQualityFilter, VoiceClip

YIELD_S = 0.3
_BREATH_TICKS = 25  # a pause this short does not end the caller's turn
_TICKS_A_SECOND = round(1 / FRAME_S)


def blame_agent(error: Exception) -> AgentBroke:
    """Names the error of the agent under test, not its words."""
    return AgentBroke(f"the agent broke ({type(error).__name__})")


@dataclass(frozen=True)
class Interruption:
    """A fault: the agent starts to talk after the caller has talked for this long."""

    after_s: float
    text: str


class TextAgentConnection:
    """A call with an agent that is spoken to in text."""

    def __init__(
        self,
        agent: TextAgent,
        voice: CallerVoice,
        pace: TickPace,
        *,
        kind: Kind = "text",
        counts_work: bool = True,
        interruption: Interruption | None = None,
        quality: LineQualityFilter | None = None,
    ) -> None:
        """`counts_work`: the agent's thinking time is silence; `quality`: what the line adds."""
        self._agent = agent
        self._voice = voice
        self._pace = pace
        self._kind = kind
        self._counts_work = counts_work
        self._interruption = interruption
        self._quality = quality
        self._meter = LoudnessMeter()
        self._queue: list[tuple[VoiceClip, AgentAnswer]] = []
        self._at = 0
        self._loud_s = 0.0
        self._quiet_ticks = 0
        self._silent_ticks = 0
        self._talking_ticks = 0
        self._is_ending = False
        self._notes: list[tuple[str, str]] = []
        self._late_s = 0.0
        self._asked_s = 0.0
        self._answer: asyncio.Task[tuple[AgentAnswers, float]] | None = None

    @property
    def kind(self) -> Kind:
        return self._kind

    async def connect(self, dial: DialedCall) -> Outcome:
        self._enqueue(await self._agent.start(dial))
        return "answered"

    async def hang_up(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.cancel()
        await self._agent.hang_up()

    async def tick(self, at_s: float, near: CallerTick) -> AgentTick:
        far = await self._tick(at_s, near)
        if self._quality is None or self._quality.is_clean:
            return far
        return replace(far, frame=self._quality.apply(far.frame, at_s))

    async def _tick(self, at_s: float, near: CallerTick) -> AgentTick:
        """Hears the caller, then plays what the agent has ready."""
        await self._listen(at_s, near)
        if self._answer is not None and self._answer.done():
            task, self._answer = self._answer, None
            replies, took = task.result()
            self._enqueue(replies, self._asked_s + took - at_s)
        notes, self._notes = tuple(self._notes), []
        if self._queue:
            tick = self._play(at_s)
            return replace(tick, events=notes) if notes else tick
        if notes:
            return AgentTick(events=notes)
        return AgentTick(ended="agent") if self._is_ending else QUIET_FAR

    async def _listen(self, at_s: float, near: CallerTick) -> None:
        """Passes on what the caller said, and tells the agent of long silences."""
        is_loud = self._meter.is_loud(near.frame) and near.is_addressed
        self._loud_s = (
            self._loud_s + FRAME_S if is_loud else max(0.0, self._loud_s - FRAME_S / 2)
        )
        self._quiet_ticks = 0 if is_loud or self._queue else self._quiet_ticks + 1
        self._silent_ticks = 0 if is_loud else self._silent_ticks + 1
        is_talking = is_loud or (
            self._talking_ticks and self._silent_ticks < _BREATH_TICKS
        )
        self._talking_ticks = self._talking_ticks + 1 if is_talking else 0
        self._interrupt()
        seconds, rest = divmod(self._quiet_ticks, _TICKS_A_SECOND)
        if near.said:
            await self._ask(self._agent.respond(near.said), at_s, near.frame)
        elif near.digits:
            await self._ask(self._agent.press(near.digits), at_s, near.frame)
        elif seconds and rest == 0 and self._answer is None:
            self._enqueue(await self._agent.idle(seconds))

    def _interrupt(self) -> None:
        fault = self._interruption
        if (
            fault is None
            or self._queue
            or self._talking_ticks <= round(fault.after_s / FRAME_S)
        ):
            return
        self._enqueue([AgentAnswer(fault.text, is_stubborn=True)])
        self._interruption = None

    async def _ask(
        self, work: Awaitable[AgentAnswers], at_s: float, frame: bytes
    ) -> None:
        """At lab pace waits for the answer and puts the time it took on the line as silence.

        In real time the answer is noticed later than it came, because more of it may follow or
        the tester is busy. Its sound is put where it belongs.
        """
        self._loud_s = 0.0
        trailing = len(frame) - len(frame.rstrip(b"\xff"))
        self._asked_s = at_s + FRAME_S - trailing / SAMPLE_RATE_HZ
        timed = self._time(work)
        if self._pace.is_live:
            self._answer = asyncio.ensure_future(timed)
            return
        replies, took = await timed
        took = took if self._counts_work else 0.0
        self._enqueue(replies, took + self._asked_s - at_s)

    async def _time(self, work: Awaitable[AgentAnswers]) -> tuple[AgentAnswers, float]:
        """How long the answer took: by the socket where there is one."""
        began = self._pace.clock.monotonic()
        replies = await work
        took = self._pace.clock.monotonic() - began
        at_socket = [reply.took_s for reply in replies if reply.took_s is not None]
        return replies, at_socket[0] if at_socket else took

    def _enqueue(self, replies: AgentAnswers, wait_s: float = 0.0) -> None:
        """A negative wait is how late the first answer is."""
        for number, reply in enumerate(replies):
            first = reply.delay_s + (wait_s if number == 0 else 0.0)
            if reply.text.strip():
                if first < 0 and not self._queue:
                    self._late_s = -first
                clip = self._voice.speak(reply.text).delayed(max(0.0, first))
                self._queue.append((clip, reply))
            self._is_ending = self._is_ending or reply.ends_call
            self._notes += [(reply.note, "")] if reply.note else []
            self._notes += [("tool_call", called) for called in reply.tool_calls]

    def _play(self, at_s: float) -> AgentTick:
        """The next frame of the agent's voice, unless the caller has interrupted it."""
        clip, reply = self._queue[0]
        late_s, self._late_s = self._late_s, 0.0
        late = clip.sound[: round(late_s * SAMPLE_RATE_HZ)]
        late_at_s = at_s - late_s
        if self._loud_s >= YIELD_S and self._is_audible(clip) and not reply.is_stubborn:
            self._queue, self._at = [], 0
            return AgentTick(events=(("agent_cut", ""),))
        begin, start = self._at, self._at + len(late)
        self._at = start + FRAME_BYTES
        frame = clip.sound[start : self._at].ljust(FRAME_BYTES, b"\xff")
        words = tuple(word for at, word in clip.words if begin <= at < self._at)
        if self._at >= len(clip.sound):
            self._queue.pop(0)
            self._at = 0
        return AgentTick(frame, words, late=late, late_at_s=late_at_s)

    def _is_audible(self, clip: VoiceClip) -> bool:
        return bool(clip.words) and clip.words[0][0] < self._at


Answer = str | AgentAnswer | Json | Sequence[Any] | None
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


class CallableAgent(TextAgent):
    """`function(text)` returns the agent's words; for an empty text, the greeting.

    It may also return what an HTTP agent answers: `{"text", "ends_call", "tool_calls"}`.
    """

    def __init__(self, function: TextFunction) -> None:
        self._function = function

    async def start(self, dial: DialedCall) -> AgentAnswers:
        return await self.respond("")

    async def respond(self, text: str) -> AgentAnswers:
        try:
            answer = self._function(text)
            return as_replies(await answer if inspect.isawaitable(answer) else answer)
        # the agent under test: any error in it is a result of the test
        except Exception as error:
            raise blame_agent(error) from error


class LiveKitAgent(TextAgent):
    """A LiveKit agent in its own `AgentSession`: text in, what it says and which tools it uses out.

    `make()` returns a new session and its agent for each call. No room and no server is needed.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._session: Any = None
        self._has_ended = False

    async def start(self, dial: DialedCall) -> AgentAnswers:
        """What the agent says when it enters is the greeting."""
        try:
            made = self._make()
            self._session, agent = await made if inspect.isawaitable(made) else made
            self._session.on("close", self._on_close)
            result = await self._session.start(agent, capture_run=True)
        # the agent under test: any error in it is a result of the test
        except Exception as error:
            raise blame_agent(error) from error
        return self._read(result)

    async def respond(self, text: str) -> AgentAnswers:
        if self._has_ended:
            return [AgentAnswer("", ends_call=True)]
        try:
            return self._read(await self._session.run(user_input=text))
        # the agent under test: any error in it is a result of the test
        except Exception as error:
            raise blame_agent(error) from error

    async def hang_up(self) -> None:
        if self._session is not None:
            await self._session.aclose()

    def _on_close(self, event: object) -> None:
        self._has_ended = True

    def _read(self, result: Any) -> AgentAnswers:
        """One answer of all messages of a run; LiveKit reports the caller's words as well."""
        items = [event.item for event in result.events]
        said = [
            item.text_content or ""
            for item in items
            if item.type == "message" and item.role == "assistant"
        ]
        tools = tuple(
            f"{item.name} {item.arguments}"
            for item in items
            if item.type == "function_call"
        )
        return [AgentAnswer(" ".join(said), self._has_ended, tool_calls=tools)]


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
            raise blame_agent(error) from error
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
            f"{address} cannot be loaded ({error}); write module:function"
        ) from None
