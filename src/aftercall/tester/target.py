"""What is tested: a target opens a fresh session for every run, and a session holds its calls."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from aftercall.clock import Clock
from aftercall.tester.call import CallRig, ScriptedCall, run_call
from aftercall.tester.call_audio import Recognise
from aftercall.tester.drivers.text_agent import TextAgentConnection
from aftercall.tester.line import AgentConnection, TextAgent, TickPace
from aftercall.tester.record import CallRecord
from aftercall.tester.voice import CallerVoice, ToneVoice

Connect = Callable[[TickPace], AgentConnection]
"""Makes the connection of one call."""
TargetSession = Callable[[ScriptedCall], Awaitable[CallRecord]]
"""Holds the calls of one run: they share what the agent remembers."""


@dataclass(frozen=True)
class CallSetup:
    """How test calls sound and how fast they go."""

    clock: Clock
    voice: CallerVoice = field(default_factory=ToneVoice)
    agent_voice: CallerVoice = field(default_factory=lambda: ToneVoice(350))
    is_live: bool = False
    clips: Path = field(default_factory=Path)
    recognise: Recognise | None = None

    async def hold_call(self, connect: Connect, call: ScriptedCall) -> CallRecord:
        pace = TickPace(self.clock, is_live=self.is_live)
        rig = CallRig(self.voice, pace, self.clips, self.recognise)
        return await run_call(rig, connect(pace), call)


@dataclass(frozen=True)
class AgentTarget:
    """The agent under test and how to reach it."""

    name: str
    is_live: bool
    """Whether calls take real time."""
    open: Callable[[], AbstractAsyncContextManager[TargetSession]]
    keeps_time: bool = True
    """Whether a pause between two calls takes real time."""

    @classmethod
    def of_connection(
        cls, name: str, setup: CallSetup, connect: Connect
    ) -> "AgentTarget":
        """An agent that needs nothing but a new connection for each call."""
        session = partial(setup.hold_call, connect)
        return cls(name, setup.is_live, lambda: nullcontext(session))

    @classmethod
    def of_agent(
        cls, name: str, setup: CallSetup, make: Callable[[], TextAgent]
    ) -> "AgentTarget":
        """A text agent with a voice."""
        return cls.of_connection(
            name,
            setup,
            lambda pace: TextAgentConnection(make(), setup.agent_voice, pace),
        )
