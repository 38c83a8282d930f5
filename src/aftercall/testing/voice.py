"""A fake voice engine and a fake carrier socket."""

import asyncio
from collections.abc import Sequence

from aftercall.engine.voice import (
    EngineOpening,
    Tool,
    ToolCall,
    VoiceEvent,
    VoiceSession,
)
from aftercall.errors import EngineLost
from aftercall.sockets.mailbox import Handler, Mailbox, MailboxClosed


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
