"""What an engine of streamed audio owes the bridge, and what each of its events means, the same
on every engine.

Audio is 8 kHz μ-law both ways. A session never plays anything itself and knows no carrier.
What was spoken stays out of every `repr`, so that it cannot slip into a log.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from aftercall.model.briefing import Briefing
from aftercall.model.turns import Turn

TAKE_REQUEST = "take_request"
TAKEN_DOWN = "Taken down."
"""How the answer to `take_request` begins once the request is on disk."""


@dataclass(frozen=True)
class EngineOpening:
    """How a session begins.

    With `history` it goes on where those turns ended; `greeting` is said first, word for word.
    """

    instructions: str = field(repr=False)
    greeting: str = field(repr=False)
    history: Sequence[Turn] = field(default=(), repr=False)
    briefing: Briefing | None = field(default=None, repr=False)
    """What the instructions were made of, for an agent that is no model and cannot read them."""


@dataclass(frozen=True)
class Tool:
    """Something the agent may do during a call. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AgentAudio:
    """The next piece of a speech, to be played behind what came before.

    Never of a speech that the caller interrupted.
    """

    speech: str
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class AgentText:
    """What a speech says; its pieces joined are the whole.

    May come before, with or after its audio.
    """

    speech: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class AgentDone:
    """The last audio of a speech was given out; whether it was heard is for the carrier to
    tell. Not sent when interrupted.
    """

    speech: str


@dataclass(frozen=True, slots=True)
class CallerBegan:
    """The caller began to talk.

    Every speech before this is void: nothing of it follows, and what is unplayed is dropped.
    """

    turn: str


@dataclass(frozen=True, slots=True)
class CallerSaid:
    """What the caller said, or a piece of it: pieces follow each other.

    May come after the agent's answer to it has begun.
    """

    turn: str
    text: str = field(repr=False)
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class CallerUnclear:
    """What the caller said in this turn will never be known."""

    turn: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The agent wants a tool used; `arguments` is what it gave, unchecked.

    Answered with `VoiceSession.answer_tool`.
    """

    id: str
    name: str
    arguments: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolCancelled:
    """The answer to this tool call is not wanted any more."""

    id: str


VoiceEvent = (
    AgentAudio
    | AgentText
    | AgentDone
    | CallerBegan
    | CallerSaid
    | CallerUnclear
    | ToolCall
    | ToolCancelled
)


class VoiceSession(Protocol):
    """The agent's side of one call. Whatever fails in it is an EngineLost."""

    async def receive(self) -> Sequence[VoiceEvent]:
        """The next events; raises EngineLost when there will be no more."""
        ...

    def set_fast_path(self, play: "Callable[[AgentAudio], bool]") -> None:
        """Offer audio to `play` the moment it comes, while no other event waits to be received.

        What it does not take is received.

        An engine may leave it at receiving.
        """
        ...

    def send_audio(self, payload: bytes) -> None:
        """The caller's voice.

        Never waits for a slow engine: what it cannot take is lost, for old audio is of no use.
        """
        ...

    async def truncate_speech(self, speech: str, heard_ms: int) -> None:
        """The caller heard only so much of this speech; the agent should know."""
        ...

    async def say(self, text: str) -> None:
        """Have the agent say this, in its own voice, as soon as it can."""
        ...

    async def answer_tool(self, call: ToolCall, answer: str) -> None: ...

    async def keep_alive(self) -> None:
        """Called every few seconds while no audio comes from the caller."""
        ...

    async def close(self) -> None: ...


class VoiceEngine(Protocol):
    async def connect(self, opening: EngineOpening, tools: Sequence[Tool]) -> VoiceSession:
        """Raises EngineRefused when it is no use to try again, else EngineLost."""
        ...
