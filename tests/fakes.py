"""For tests and benchmarks: a clock that you move, sample calls, fakes."""

import asyncio
import heapq
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from aftercall.bridge.turn_call import TurnCall, TurnCallParts
from aftercall.clock import to_millisecond
from aftercall.engine.voice import (
    AgentReply,
    EngineOpening,
    Tool,
    ToolCall,
    TurnSession,
    VoiceEvent,
    VoiceSession,
)
from aftercall.errors import EngineLost
from aftercall.llm.model.client import Completion, Prompt, Usage
from aftercall.llm.reader import CachedReader
from aftercall.model.briefing import Briefing
from aftercall.model.calls import Call, LiveCall
from aftercall.model.reading import Reading
from aftercall.sockets.mailbox import Handler, Mailbox, MailboxClosed

START = datetime(2026, 2, 13, 15, 41, 12, 120_000, tzinfo=UTC)
_numbers = count(1)


def make_live_call(**fields: Any) -> LiveCall:
    """A live call with a new `sid`."""
    defaults = {
        "source": "test",
        "sid": f"T{next(_numbers):06}",
        "caller": "+15550100",
        "callee": "+15550101",
        "started_at": START,
    }
    return LiveCall.model_validate(defaults | fields)


def make_call(
    said: Iterable[tuple[str, str]] = (("agent", "Hello!"), ("caller", "Hi.")),
    **fields: Any,
) -> Call:
    """A finished call from pairs of speaker and text, two seconds a turn."""
    started = fields.pop("started_at", START)
    turns = [
        {
            "seq": seq,
            "speaker": speaker,
            "text": text,
            "at": started + timedelta(seconds=2 * seq),
        }
        for seq, (speaker, text) in enumerate(said, 1)
    ]
    ended = fields.pop("ended_at", started + timedelta(seconds=2 * len(turns) + 2))
    live = make_live_call(started_at=started, **fields).model_dump()
    return Call.model_validate(live | {"ended_at": ended, "turns": turns})


def make_calls(
    number: int, said: Sequence[tuple[str, str]], **fields: Any
) -> list[Call]:
    """Finished calls with the same words, each from another caller."""
    return [
        make_call(said, caller=f"+1555010{place:04}", **fields)
        for place in range(number)
    ]


SETTLE_ROUNDS = 20


class VirtualClock:
    """A Clock that stands still until you move it; a 30-second call takes microseconds."""

    def __init__(self, start: datetime = START) -> None:
        self._start = to_millisecond(start)
        self._elapsed_s = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()
        self._fell_asleep = asyncio.Event()

    def now(self) -> datetime:
        return to_millisecond(self._start + timedelta(seconds=self._elapsed_s))

    def monotonic(self) -> float:
        return self._elapsed_s

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._fell_asleep.set()
        due_s = self._elapsed_s + max(0.0, seconds)
        heapq.heappush(self._sleepers, (due_s, next(self._order), woken))
        await woken

    async def until_asleep(self) -> None:
        """Waits in real time until a task sleeps on this clock; threads take a while to get
        there.
        """
        while all(woken.done() for _, _, woken in self._sleepers):
            self._fell_asleep.clear()
            await self._fell_asleep.wait()

    def move(self, seconds: float) -> None:
        """Moves the time and wakes no sleeper: for code that only reads the clock."""
        self._elapsed_s += seconds

    async def advance(self, seconds: float) -> None:
        """Lets time pass: sleepers wake in order, each at its time, and run until they wait
        again.
        """
        until_s = self._elapsed_s + seconds
        await _settle()
        while self._sleepers and self._sleepers[0][0] <= until_s:
            due_s, _, woken = heapq.heappop(self._sleepers)
            self._elapsed_s = max(self._elapsed_s, due_s)  # `move` may have passed it
            if not woken.done():
                woken.set_result(None)
            await _settle()
        self._elapsed_s = until_s


async def _settle() -> None:
    """Lets every ready task run, with enough rounds for tasks that wake each other."""
    for _ in range(SETTLE_ROUNDS):
        await asyncio.sleep(0)


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

    def add_answers(self, *answers: str | AgentReply | Exception | None) -> None:
        self._answers += answers

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


class FakeVoiceSession:
    """A VoiceSession: the test adds events and reads what was sent."""

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
        """Loses the session after the events added so far."""
        self._events.close()

    async def run(self, on_event: Handler[VoiceEvent]) -> None:
        await self._events.deliver(on_event)
        raise EngineLost("the fake engine is gone")

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

    async def connect(
        self, opening: EngineOpening, tools: Sequence[Tool]
    ) -> VoiceSession:
        fault = self._faults.pop(0) if self._faults else "fine"
        if isinstance(fault, Exception):
            raise fault
        if fault is None:
            await asyncio.Event().wait()
        session = FakeVoiceSession(opening)
        self.sessions.append(session)
        return session


class FakeMediaSocket:
    """A carrier's socket: the test adds frames and reads those that were sent.

    With `is_stuck` it takes no frame any more.
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
        """Waits until every frame was handled and the next one is awaited, or the call is over."""
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
