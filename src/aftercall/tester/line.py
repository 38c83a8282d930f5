"""A line to an agent: two directions of 20 ms frames, tick by tick.

Live and lab pace run the same code; at lab pace no tick waits until it is due.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from aftercall.clock import Clock
from aftercall.speech.sound import FRAME_BYTES, SAMPLE_RATE_HZ, SILENCE

Outcome = Literal["answered", "busy", "no-answer", "failed", "voicemail"]
Kind = Literal["audio", "text", "phone"]


@dataclass(frozen=True, slots=True)
class DialedCall:
    caller: str | None
    scenario: str
    number: int = 1
    ring_s: float = 30


@dataclass(frozen=True, slots=True)
class CallerTick:
    """What the caller sends in one tick.

    `said` and `digits` come with the last frame of what was said or pressed. Sound that is not
    addressed to the agent is a murmur, or meant for somebody else.
    """

    frame: bytes = SILENCE
    said: str | None = None
    digits: str | None = None
    is_addressed: bool = True


@dataclass(frozen=True, slots=True)
class AgentTick:
    """What comes from the agent in one tick; `ended` says who ended the call.

    Words that were recognised late have `words_at_s`; while `has_words_to_come` is set, the turn
    is not over. `ideal` is what was really said, where the line knows both. `late` is sound of
    earlier ticks that was not there yet, from `late_at_s` on; a line that knows each frame's own
    time sends all sound that way, and an empty `frame`.
    """

    frame: bytes = SILENCE
    words: tuple[str, ...] = ()
    words_at_s: float | None = None
    ideal: str = ""
    has_words_to_come: bool = False
    ended: Literal["", "agent", "line"] = ""
    events: tuple[tuple[str, str], ...] = ()
    late: bytes = b""
    late_at_s: float = 0.0

    def frames(self, at_s: float) -> Iterator[tuple[float, bytes]]:
        """All sound of this tick with its time, the late one first."""
        for start in range(0, len(self.late), FRAME_BYTES):
            late_at_s = self.late_at_s + start / SAMPLE_RATE_HZ
            yield late_at_s, self.late[start : start + FRAME_BYTES]
        if self.frame:
            yield at_s, self.frame


MAX_LATE_S = 0.25
CALLER_FIRST = "caller_first"  # a chat in which the agent has no greeting
UNADDRESSED = ("backchannel", "side_speech")  # sound that is no turn of the caller
QUIET_NEAR = CallerTick()
QUIET_FAR = AgentTick()


class AgentConnection(Protocol):
    """One call to an agent.

    On a `text` line the tester's voice speaks for the agent; how it sounds is not judged.
    """

    @property
    def kind(self) -> Kind: ...

    async def connect(self, dial: DialedCall) -> Outcome:
        """Raises LineFailed when the agent cannot be reached at all."""
        ...

    async def tick(self, at_s: float, near: CallerTick) -> AgentTick: ...

    async def hang_up(self) -> None: ...


@dataclass(frozen=True)
class AgentAnswer:
    """What a text agent says next, and how a voice says it."""

    text: str
    ends_call: bool = False
    delay_s: float = 0.0
    is_stubborn: bool = False
    note: str = ""
    tool_calls: tuple[str, ...] = ()
    """Tools that the agent says it called: the name, a space, the arguments as JSON."""
    took_s: float | None = None
    """Measured at the socket, from the caller's words to the answer; None if it has no socket."""


AgentAnswers = Sequence[AgentAnswer]


class TextAgent(Protocol):
    """An agent that takes and gives words."""

    async def start(self, dial: DialedCall) -> AgentAnswers:
        """The call is connected: the greeting, if there is one."""
        ...

    async def respond(self, text: str) -> AgentAnswers: ...

    async def press(self, digits: str) -> AgentAnswers:
        """Keys reach most agents as words."""
        return await self.respond(f"[keys {digits}]")

    async def idle(self, seconds: int) -> AgentAnswers:
        """Both sides have been silent for this many whole seconds."""
        return ()

    async def hang_up(self) -> None:
        return


class TickPace:
    """How fast ticks follow each other: by the clock, or as fast as they can."""

    def __init__(self, clock: Clock, *, is_live: bool) -> None:
        self.clock = clock
        self.is_live = is_live
        self._start_s = clock.monotonic()
        self._ticks = 0
        self._late_s = 0.0

    def start(self) -> None:
        self._start_s = self.clock.monotonic()

    def time_since_start(self, monotonic_s: float) -> float:
        return monotonic_s - self._start_s

    def pop_lateness_s(self) -> float:
        """How far behind the clock the last tick was, if by more than a caller would notice."""
        late_s, self._late_s = self._late_s, 0.0
        return late_s

    async def wait_until(self, at_s: float) -> None:
        if self.is_live:
            left_s = self._start_s + at_s - self.clock.monotonic()
            if left_s < -MAX_LATE_S:
                self._late_s = -left_s
            await self.clock.sleep(max(0.0, left_s))
            return
        self._ticks += 1
        if self._ticks % 64 == 0:  # lets other calls run
            await asyncio.sleep(0)
