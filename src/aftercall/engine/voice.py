"""What an engine of streamed audio does for the bridge. Its events mean the same on every engine.

Audio is 8 kHz μ-law both ways. A session plays nothing and knows no carrier. Spoken words stay
out of every `repr`, so they cannot get into a log.

A turn engine gets finished text and answers with text. The receptionist is one. It serves lines
on which the carrier or the browser listens and speaks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from aftercall.model.briefing import Briefing
from aftercall.model.calls import Turn
from aftercall.model.json_fields import Json
from aftercall.sockets.mailbox import Handler


@dataclass(frozen=True)
class AgentReply:
    """What the agent says next, and whether it hangs up afterwards.

    `taken_request` is a request that the text claims to have taken down. The bridge writes it
    to disk before the caller hears the text.
    """

    text: str
    ends_call: bool = False
    taken_request: Mapping[str, str] | None = field(default=None, repr=False)


class TurnSession(Protocol):
    """The agent's side of one call."""

    async def greet(self) -> AgentReply: ...

    async def answer(self, said: str) -> AgentReply:
        """Raises EngineLost when there will be no answer."""
        ...

    async def update_briefing(self, briefing: Briefing, *, is_another: bool) -> None:
        """The caller is better known now.

        If it is another person than assumed, the session must not use the earlier briefing.
        """
        ...

    async def close(self) -> None: ...


class TurnEngine(Protocol):
    async def connect(self, briefing: Briefing) -> TurnSession:
        """Raises EngineLost when no session can be opened."""
        ...


TAKE_REQUEST = "take_request"
END_CALL = "end_call"
TAKEN_DOWN = "Taken down."
"""The answer to `take_request` starts with this once the request is on disk."""


@dataclass(frozen=True)
class EngineOpening:
    """How a session begins: `greeting` is said first, word for word.

    With `history` the session continues after those turns. `briefing` is what the instructions
    were made of, for an engine that is not a model and cannot read them.
    """

    instructions: str = field(repr=False)
    greeting: str = field(repr=False)
    history: Sequence[Turn] = field(default=(), repr=False)
    briefing: Briefing | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Tool:
    """Something the agent may do during a call. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Json


@dataclass(frozen=True, slots=True)
class AgentAudio:
    """The next piece of a speech, to be played behind the one before.

    Never of a speech that the caller interrupted.
    """

    speech: str
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class AgentText:
    """A piece of the text of a speech. Comes before, with or after its audio."""

    speech: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class AgentDone:
    """The last audio of a speech was sent. Does not come for an interrupted speech.

    Whether the caller heard it is for the carrier to say.
    """

    speech: str


@dataclass(frozen=True, slots=True)
class CallerBegan:
    """The caller began to talk. Every speech before this is void; drop what is unplayed."""

    turn: str


@dataclass(frozen=True, slots=True)
class CallerSaid:
    """What the caller said, or a piece of it. May come after the agent began its answer."""

    turn: str
    text: str = field(repr=False)
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class CallerUnclear:
    """The words of this turn will never be known."""

    turn: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The agent wants to use a tool. `arguments` are unchecked. See `answer_tool`."""

    id: str
    name: str
    arguments: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolCancelled:
    """The engine does not want the answer to this tool call any more."""

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
    """The agent's side of one call. Every failure in it is an EngineLost."""

    async def run(self, on_event: Handler[VoiceEvent]) -> None:
        """Pass on each event, in order. Raises EngineLost when the session ends."""
        ...

    def send_audio(self, payload: bytes) -> None:
        """The caller's voice. Never waits: a slow engine loses it, since old audio is useless."""
        ...

    async def truncate_speech(self, speech: str, heard_ms: int) -> None:
        """Tell the agent that the caller heard only this much of the speech."""
        ...

    async def say(self, text: str) -> None:
        """Make the agent say this, in its voice, as soon as it can."""
        ...

    async def answer_tool(self, call: ToolCall, answer: str) -> None: ...

    async def keep_alive(self) -> None:
        """Called every few seconds while no audio comes from the caller."""
        ...

    async def close(self) -> None: ...


class VoiceEngine(Protocol):
    async def connect(
        self, opening: EngineOpening, tools: Sequence[Tool]
    ) -> VoiceSession:
        """Raises EngineRefused when a retry cannot help, else EngineLost."""
        ...
