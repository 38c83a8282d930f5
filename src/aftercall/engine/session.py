"""What an engine owes the bridge.

A turn engine is given finished text and answers with text: the receptionist, and every line on
which a carrier or a browser does the listening and speaking. Engines of streamed audio get an
interface of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from aftercall.model.briefing import Briefing


@dataclass(frozen=True)
class AgentReply:
    """What the agent says next, and whether it hangs up afterwards.

    `taken` is a request that the words claim to have taken down. The bridge writes it down
    before they are said.
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
        """More is known of who is calling.

        If it is another than was thought, nothing of what was told before may be used any more.
        """
        ...

    async def close(self) -> None: ...


class TurnEngine(Protocol):
    async def connect(self, briefing: Briefing) -> TurnSession:
        """Raises EngineLost when nobody can speak for the agent."""
        ...
