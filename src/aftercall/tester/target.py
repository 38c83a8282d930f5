"""What is tested: opens a fresh session for every run, so that runs do not remember each other,
and holds calls in it.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from aftercall.clock import Clock
from aftercall.tester.call import CallRig, run_call
from aftercall.tester.call_log import CallLog
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.text_agent import TextAgentConnection
from aftercall.tester.faulty_agent import BY_NAME, FaultyCaller, interruption_of, make_agent
from aftercall.tester.line import AgentConnection, TextAgent, TickPace
from aftercall.tester.practice_agent import PracticeClinic
from aftercall.tester.record import CallRecord
from aftercall.tester.scenario import Scenario
from aftercall.tester.voice import CallerVoice, ToneVoice


class TargetSession(Protocol):
    """One run: its calls share whatever the agent remembers."""

    async def call(
        self, caller: Caller, scenario: Scenario, number: int, run: int, log: CallLog | None = None
    ) -> CallRecord: ...


class AgentTarget(Protocol):
    """An agent, however it is reached.

    `is_live`: it keeps real time, and calls cannot be hurried.
    """

    @property
    def name(self) -> str: ...

    @property
    def is_live(self) -> bool: ...

    @property
    def keeps_time(self) -> bool:
        """Whether a pause between two calls must really be waited for."""
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

    def pace(self) -> TickPace:
        return TickPace(self.clock, is_live=self.is_live)


@dataclass(frozen=True)
class ConnectionSession:
    """Calls over far ends that are made anew for each call."""

    setup: CallSetup
    make_connection: Callable[[TickPace], AgentConnection]

    async def call(
        self, caller: Caller, scenario: Scenario, number: int, run: int, log: CallLog | None = None
    ) -> CallRecord:
        pace = self.setup.pace()
        bench = CallRig(self.setup.voice, pace, self.setup.clips)
        return await run_call(
            bench, self.make_connection(pace), caller, scenario, number=number, run=run, log=log
        )


@dataclass(frozen=True)
class ConnectionTarget:
    """An agent whose far end is made anew for each call: a function of sound, a media socket,
    or a text agent that is given a voice.
    """

    name: str
    setup: CallSetup
    make_connection: Callable[[TickPace], AgentConnection]
    keeps_time: bool = True

    @classmethod
    def of_agent(
        cls, name: str, setup: CallSetup, make: Callable[[], TextAgent]
    ) -> "ConnectionTarget":
        return cls(name, setup, lambda pace: TextAgentConnection(make(), setup.agent_voice, pace))

    @property
    def is_live(self) -> bool:
        return self.setup.is_live

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TargetSession]:
        yield ConnectionSession(self.setup, self.make_connection)


@dataclass(frozen=True)
class PracticeTarget:
    """The practice clinic, sound or with faults; a fresh clinic for every run.

    Time spent thinking does not count: it thinks in no time.
    """

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
        self, caller: Caller, scenario: Scenario, number: int, run: int, log: CallLog | None = None
    ) -> CallRecord:
        planted = [BY_NAME[name] for name in self.faults]
        for fault in planted:
            if fault.place == "line":
                scenario = scenario.model_copy(update={"line": fault.line})
            if fault.place == "tester":
                caller = FaultyCaller(
                    fault.name, scenario, scenario.calls[number - 1], scenario.seed + run
                )
        return await ConnectionSession(self.setup, self._end).call(
            caller, scenario, number, run, log
        )

    def _end(self, pace: TickPace) -> AgentConnection:
        agent = make_agent(self.clinic, *self.faults)
        interruption = interruption_of(*self.faults)
        return TextAgentConnection(
            agent,
            self.setup.agent_voice,
            pace,
            kind="audio",
            counts_work=False,
            interruption=interruption,
        )
