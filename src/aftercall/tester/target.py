"""What is tested: a target opens a fresh session for every run, and a session holds its calls."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from aftercall.clock import Clock
from aftercall.tester.call import CallRig, run_call
from aftercall.tester.call_audio import Recognise
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.text_agent import TextAgentConnection
from aftercall.tester.line import AgentConnection, TextAgent, TickPace
from aftercall.tester.practice_agent import (
    BY_NAME,
    INTERRUPTION,
    FaultyCaller,
    PracticeAgent,
    PracticeClinic,
)
from aftercall.tester.record import CallLog, CallRecord
from aftercall.tester.scenario import Scenario
from aftercall.tester.voice import CallerVoice, ToneVoice


class TargetSession(Protocol):
    """One run: its calls share what the agent remembers."""

    async def call(
        self,
        caller: Caller,
        scenario: Scenario,
        number: int,
        run: int,
        log: CallLog | None = None,
    ) -> CallRecord: ...


class AgentTarget(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def is_live(self) -> bool:
        """Whether calls take real time."""
        ...

    @property
    def keeps_time(self) -> bool:
        """Whether a pause between two calls takes real time."""
        ...

    def open(self) -> AbstractAsyncContextManager[TargetSession]: ...


@dataclass(frozen=True)
class CallSetup:
    """How test calls sound and how fast they go."""

    clock: Clock
    voice: CallerVoice = field(default_factory=ToneVoice)
    agent_voice: CallerVoice = field(default_factory=lambda: ToneVoice(350))
    is_live: bool = False
    clips: Path = field(default_factory=Path)
    recognise: Recognise | None = None


@dataclass(frozen=True)
class ConnectionSession:
    """Makes a new connection for each call."""

    setup: CallSetup
    make_connection: Callable[[TickPace], AgentConnection]

    async def call(
        self,
        caller: Caller,
        scenario: Scenario,
        number: int,
        run: int,
        log: CallLog | None = None,
    ) -> CallRecord:
        setup = self.setup
        pace = TickPace(setup.clock, is_live=setup.is_live)
        rig = CallRig(setup.voice, pace, setup.clips, setup.recognise)
        connection = self.make_connection(pace)
        return await run_call(
            rig, connection, caller, scenario, number=number, run=run, log=log
        )


@dataclass(frozen=True)
class ConnectionTarget:
    """An agent without memory between runs: a sound function, or a text agent with a voice."""

    name: str
    setup: CallSetup
    make_connection: Callable[[TickPace], AgentConnection]
    keeps_time: bool = True

    @classmethod
    def of_agent(
        cls, name: str, setup: CallSetup, make: Callable[[], TextAgent]
    ) -> "ConnectionTarget":
        return cls(
            name,
            setup,
            lambda pace: TextAgentConnection(make(), setup.agent_voice, pace),
        )

    @property
    def is_live(self) -> bool:
        return self.setup.is_live

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TargetSession]:
        yield ConnectionSession(self.setup, self.make_connection)


@dataclass(frozen=True)
class PracticeTarget:
    """The practice clinic with the given faults; it answers without thinking time."""

    setup: CallSetup
    faults: tuple[str, ...] = ()
    keeps_time: bool = False

    @property
    def name(self) -> str:
        return "practice" + (":" + ",".join(self.faults) if self.faults else "")

    @property
    def is_live(self) -> bool:
        return self.setup.is_live

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TargetSession]:
        yield _PracticeSession(self.setup, self.faults, PracticeClinic())


@dataclass(frozen=True)
class _PracticeSession:
    setup: CallSetup
    faults: tuple[str, ...]
    clinic: PracticeClinic

    async def call(
        self,
        caller: Caller,
        scenario: Scenario,
        number: int,
        run: int,
        log: CallLog | None = None,
    ) -> CallRecord:
        for fault in (BY_NAME[name] for name in self.faults):
            if fault.line is not None:
                scenario = scenario.model_copy(update={"line": fault.line})
            if fault.who == "tester":
                plan = scenario.calls[number - 1]
                caller = FaultyCaller(fault.name, scenario, plan, scenario.seed + run)
        session = ConnectionSession(self.setup, self._connect)
        return await session.call(caller, scenario, number, run, log)

    def _connect(self, pace: TickPace) -> AgentConnection:
        return TextAgentConnection(
            PracticeAgent(self.clinic, *self.faults),
            self.setup.agent_voice,
            pace,
            kind="audio",
            counts_work=False,
            interruption=INTERRUPTION if "talks_over" in self.faults else None,
        )
