"""Fakes for your own tests and ours: time that you move by hand, a caller with a script, an
engine that obeys.
"""

import asyncio
import heapq
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from aftercall.bridge.turn_call import TurnCall, TurnCallParts
from aftercall.clock import to_millisecond
from aftercall.engine.session import AgentReply, TurnSession
from aftercall.engine.voice import (
    EngineOpening,
    Tool,
    ToolCall,
    VoiceEvent,
    VoiceSession,
)
from aftercall.errors import EngineLost
from aftercall.llm.cached_reader import CachedReader
from aftercall.llm.model.completion import Completion, Prompt, Usage
from aftercall.model.briefing import Briefing
from aftercall.model.calls import Call, LiveCall
from aftercall.model.reading import Reading
from aftercall.sockets.mailbox import Handler, Mailbox, MailboxClosed

START = datetime(2026, 2, 13, 15, 41, 12, 120_000, tzinfo=UTC)


class VirtualClock:
    """A Clock that stands still until you move it; a 30-second call takes microseconds."""

    def __init__(self, start: datetime = START) -> None:
        self._start = to_millisecond(start)
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()
        self._fell_asleep = asyncio.Event()

    def now(self) -> datetime:
        return to_millisecond(self._start + timedelta(seconds=self._elapsed))

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._fell_asleep.set()
        heapq.heappush(
            self._sleepers, (self._elapsed + max(0.0, seconds), next(self._order), woken)
        )
        await woken

    async def until_asleep(self) -> None:
        """Wait, in real time, until somebody sleeps on this clock: work in threads takes its
        own time to get there.
        """
        while not any(not woken.done() for _, _, woken in self._sleepers):
            self._fell_asleep.clear()
            await self._fell_asleep.wait()

    def move(self, seconds: float) -> None:
        """Move the hands without waking anybody: for code that only looks at the clock."""
        self._elapsed += seconds

    async def advance(self, seconds: float) -> None:
        """Let time pass: sleepers wake in order, each at its own time, and run until they wait
        again.
        """
        until = self._elapsed + seconds
        await _settle()
        while self._sleepers and self._sleepers[0][0] <= until:
            self._elapsed, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
            await _settle()
        self._elapsed = until


async def _settle() -> None:
    """Give every task that can run its turn; enough rounds for tasks that hand work to each
    other.
    """
    for _ in range(20):
        await asyncio.sleep(0)


class FakeEngine:
    """A TurnEngine that says what you gave it; an exception in the list is raised, None never
    answers.
    """

    def __init__(
        self, *answers: str | AgentReply | Exception | None, greeting: str | Exception = "Hello!"
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
        return await self._give(self._answers.pop(0) if self._answers else "Anything else?")

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
    """A Reader that finds what you gave it, in every call, and remembers which calls it was
    given.
    """

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
    """A line to a model that says what you gave it, in order and then the last again; an
    exception in the list is raised.
    """

    def __init__(
        self, *said: str | dict[str, Any] | Completion | Exception, part_chars: int = 60_000
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
        return Completion(
            said if isinstance(said, str) else json.dumps(said), usage=Usage(100, 10, 0.001)
        )

    async def ask_within(self, prompt: Prompt, timeout_s: float) -> Completion:
        return self.ask(prompt)


class FakePhone:
    """A caller with a script: rings, says a line after each thing they hear, and hangs up when
    out of lines.
    """

    def __init__(self, parts: TurnCallParts, caller: str | None = "+15550100") -> None:
        self._parts = parts
        self._caller = caller

    async def ring(self, *lines: str, hangs_up: bool = True) -> tuple[TurnCall, list[str]]:
        """The call, and what the caller heard."""
        call = TurnCall(
            self._parts, make_live_call(caller=self._caller, started_at=self._parts.clock.now())
        )
        heard = [(await call.start()).text]
        for line in lines:
            if call.end_reason is None:
                heard.append((await call.answer(line)).text)
        if hangs_up or call.end_reason:
            await call.end("caller_hung_up")
        return call, heard


_numbers = count(1)


def make_live_call(**fields: Any) -> LiveCall:
    """A live call with a number of its own; name what matters to your test."""
    defaults = {
        "source": "test",
        "sid": f"T{next(_numbers):06}",
        "caller": "+15550100",
        "callee": "+15550101",
        "started_at": START,
    }
    return LiveCall.model_validate(defaults | fields)


def make_call(
    said: Iterable[tuple[str, str]] = (("agent", "Hello!"), ("caller", "Hi.")), **fields: Any
) -> Call:
    """A finished call from pairs of speaker and text, two seconds a turn."""
    started = fields.pop("started_at", START)
    turns = [
        {"seq": seq, "speaker": speaker, "text": text, "at": started + timedelta(seconds=2 * seq)}
        for seq, (speaker, text) in enumerate(said, 1)
    ]
    ended = fields.pop("ended_at", started + timedelta(seconds=2 * len(turns) + 2))
    live = make_live_call(started_at=started, **fields).model_dump()
    return Call.model_validate(live | {"ended_at": ended, "turns": turns})


def make_calls(number: int, said: Sequence[tuple[str, str]], **fields: Any) -> list[Call]:
    """Finished calls with the same words, each of a caller of its own."""
    return [make_call(said, caller=f"+1555010{place:04}", **fields) for place in range(number)]


class FakeVoiceSession:
    """A VoiceSession: you give it events, it remembers what it was sent."""

    def __init__(self, opening: EngineOpening) -> None:
        self.opening = opening
        self.audio: list[bytes] = []
        self.said: list[str] = []
        self.cuts: list[tuple[str, int]] = []
        self.answers: list[str] = []
        self.keep_alives = 0
        self.is_closed = False
        self._events = Mailbox[VoiceEvent]()

    def add_events(self, *events: VoiceEvent) -> None:
        for event in events:
            self._events.add(event)

    def lose(self) -> None:
        """After the events it was given, the session is lost."""
        self._events.close()

    async def run(self, on_event: Handler[VoiceEvent]) -> None:
        await self._events.deliver(on_event)
        raise EngineLost("the fake engine was told to go")

    def send_audio(self, payload: bytes) -> None:
        self.audio.append(payload)

    async def truncate_speech(self, speech: str, heard_ms: int) -> None:
        self.cuts.append((speech, heard_ms))

    async def say(self, text: str) -> None:
        self.said.append(text)

    async def answer_tool(self, call: ToolCall, answer: str) -> None:
        self.answers.append(answer)

    async def keep_alive(self) -> None:
        self.keep_alives += 1

    async def close(self) -> None:
        self.is_closed = True


class FakeVoiceEngine:
    """A VoiceEngine.

    An exception among its `faults` is raised at that connection, None never connects.
    """

    def __init__(self, *faults: Exception | str | None) -> None:
        self.sessions: list[FakeVoiceSession] = []
        self._faults = list(faults)

    @property
    def session(self) -> FakeVoiceSession:
        return self.sessions[-1]

    async def connect(self, opening: EngineOpening, tools: Sequence[Tool]) -> VoiceSession:
        fault = self._faults.pop(0) if self._faults else "fine"
        if isinstance(fault, Exception):
            raise fault
        if fault is None:
            await asyncio.Event().wait()
        session = FakeVoiceSession(opening)
        self.sessions.append(session)
        return session


class FakeMediaSocket:
    """A carrier's socket: you put frames in, it remembers those it was sent.

    `is_stuck` takes nothing any more.
    """

    def __init__(self) -> None:
        self.sent: list[str | bytes] = []
        self.is_closed = False
        self.is_stuck = False
        self._frames = Mailbox[str | bytes]()

    def add_frames(self, *frames: str | bytes | None) -> None:
        """None closes the socket."""
        for frame in frames:
            if frame is None:
                self._frames.close()
            else:
                self._frames.add(frame)

    async def receive(self) -> str | bytes | None:
        try:
            return await self._frames.receive()
        except MailboxClosed:
            return None

    async def deliver(self, handle: Handler[str | bytes]) -> None:
        await self._frames.deliver(handle)

    async def wait_empty(self) -> None:
        """Until every frame was handled and the next one is awaited, or the call is over."""
        while True:
            if self._frames.is_idle:
                return
            await asyncio.sleep(0)

    @property
    def is_writable(self) -> bool:
        return not self.is_stuck

    def write(self, message: str | bytes) -> None:
        if not self.is_stuck:
            self.sent.append(message)

    async def drain(self) -> None:
        if self.is_stuck:
            await asyncio.Event().wait()

    async def close(self) -> None:
        self.is_closed = True
        if self.is_stuck:
            await asyncio.Event().wait()
