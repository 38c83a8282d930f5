"""Fakes for streamed calls: an engine and a carrier's socket in memory, for calls on virtual time."""

import asyncio
from collections.abc import Callable, Sequence

from aftercall.engine.voice import AgentAudio, Opening, Tool, ToolCall, VoiceEvent, VoiceSession
from aftercall.errors import EngineLost
from aftercall.sockets.mailbox import Gone, Mailbox


class FakeVoice:
    """A VoiceSession: you give it events, it remembers what it was sent."""

    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self.audio: list[bytes] = []
        self.said: list[str] = []
        self.cuts: list[tuple[str, int]] = []
        self.answers: list[str] = []
        self.keep_alives = 0
        self.is_closed = False
        self._events = Mailbox[VoiceEvent]()

    def give(self, *events: VoiceEvent) -> None:
        for event in events:
            self._events.put(event)

    def lose(self) -> None:
        """After the events it was given, the session is lost."""
        self._events.close()

    async def receive(self) -> Sequence[VoiceEvent]:
        try:
            return (await self._events.take(),)
        except Gone:
            raise EngineLost("the fake engine was told to go") from None

    def divert(self, play: Callable[[AgentAudio], bool]) -> None:
        self._events.divert(lambda event: isinstance(event, AgentAudio) and play(event))

    def send_audio(self, payload: bytes) -> None:
        self.audio.append(payload)

    async def cut(self, speech: str, heard_ms: int) -> None:
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
    """A VoiceEngine. An exception among its `faults` is raised at that connection, None never connects."""

    def __init__(self, *faults: Exception | str | None) -> None:
        self.sessions: list[FakeVoice] = []
        self._faults = list(faults)

    @property
    def session(self) -> FakeVoice:
        return self.sessions[-1]

    async def connect(self, opening: Opening, tools: Sequence[Tool]) -> VoiceSession:
        fault = self._faults.pop(0) if self._faults else "fine"
        if isinstance(fault, Exception):
            raise fault
        if fault is None:
            await asyncio.Event().wait()
        session = FakeVoice(opening)
        self.sessions.append(session)
        return session


class FakeLine:
    """A carrier's socket: you put frames in, it remembers those it was sent. `is_stuck` takes nothing any more."""

    def __init__(self) -> None:
        self.sent: list[str | bytes] = []
        self.is_closed = False
        self.is_stuck = False
        self._frames = Mailbox[str | bytes]()
        self._empty = asyncio.Event()

    def put(self, *frames: str | bytes | None) -> None:
        """None closes the socket."""
        for frame in frames:
            if frame is None:
                self._frames.close()
            else:
                self._frames.put(frame)
        if not self._frames.is_awaited:
            self._empty.clear()

    async def wait_empty(self) -> None:
        """Until every frame has been taken, and the next one is waited for."""
        await self._empty.wait()

    async def receive(self) -> str | bytes | None:
        if not self._frames:
            self._empty.set()
        try:
            return await self._frames.take()
        except Gone:
            return None

    def divert(self, take: Callable[[str | bytes], bool]) -> None:
        self._frames.divert(take)

    @property
    def is_free(self) -> bool:
        return not self.is_stuck

    def offer(self, frame: str | bytes) -> bool:
        if not self.is_stuck:
            self.sent.append(frame)
        return not self.is_stuck

    async def send(self, frame: str | bytes) -> None:
        """Only what is stuck is waited for."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        self.is_closed = True
        if self.is_stuck:
            await asyncio.Event().wait()
