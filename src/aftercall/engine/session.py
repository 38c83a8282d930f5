"""What a turn engine does for the bridge: it gets finished text and answers with text.

The receptionist is one. It serves lines on which the carrier or the browser listens and speaks.
`voice.py` holds the interface of engines that stream audio.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from aftercall.model.briefing import Briefing


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
