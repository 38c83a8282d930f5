"""What is tested: opens a fresh session for every run, so that runs do not remember each other, and holds calls in it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from aftercall.clock import Clock
from aftercall.tester.call import Bench, hold_call
from aftercall.tester.call_log import CallLog
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.spoken import SpokenEnd
from aftercall.tester.line import FarEnd, Pace, TextAgent
from aftercall.tester.planted import BY_NAME, FaultyCaller, interruption_of, make_agent
from aftercall.tester.practice import Clinic
from aftercall.tester.record import CallRecord
from aftercall.tester.scenario import Scenario
from aftercall.tester.voice import ToneVoice, Voice


class Session(Protocol):
    """One run: its calls share whatever the agent remembers."""

    async def call(self, caller: Caller, scenario: Scenario, number: int, run: int, log: CallLog | None = None) -> CallRecord: ...


class Target(Protocol):
    """An agent, however it is reached. `is_live`: it keeps real time, and calls cannot be hurried."""

    @property
    def name(self) -> str: ...

    @property
    def is_live(self) -> bool: ...

    @property
    def keeps_time(self) -> bool:
        """Whether a pause between two calls must really be waited for."""
        ...

    def open(self) -> AbstractAsyncContextManager[Session]: ...


@dataclass(frozen=True)
class Studio:
    """How test calls sound and how fast they go."""

    clock: Clock
    voice: Voice = field(default_factory=ToneVoice)
    agent_voice: Voice = field(default_factory=lambda: ToneVoice(350))
    is_live: bool = False
    clips: Path = field(default_factory=Path)

    def pace(self) -> Pace:
        return Pace(self.clock, is_live=self.is_live)


@dataclass(frozen=True)
class EndSession:
    """Calls over far ends that are made anew for each call."""

    studio: Studio
    make_end: Callable[[Pace], FarEnd]

    async def call(self, caller: Caller, scenario: Scenario, number: int, run: int, log: CallLog | None = None) -> CallRecord:
        pace = self.studio.pace()
        bench = Bench(self.studio.voice, pace, self.studio.clips)
        return await hold_call(bench, self.make_end(pace), caller, scenario, number=number, run=run, log=log)


@dataclass(frozen=True)
class EndTarget:
    """An agent whose far end is made anew for each call: a function of sound, a media socket, or a text agent that is given a voice."""

    name: str
    studio: Studio
    make_end: Callable[[Pace], FarEnd]
    keeps_time: bool = True

    @classmethod
    def of_agent(cls, name: str, studio: Studio, make: Callable[[], TextAgent]) -> "EndTarget":
        return cls(name, studio, lambda pace: SpokenEnd(make(), studio.agent_voice, pace))

    @property
    def is_live(self) -> bool:
        return self.studio.is_live

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Session]:
        yield EndSession(self.studio, self.make_end)


@dataclass(frozen=True)
class PracticeTarget:
    """The practice clinic, sound or with faults; a fresh clinic for every run. Time spent thinking does not count: it thinks in no time."""

    studio: Studio
    faults: tuple[str, ...] = ()
    keeps_time: bool = False

    @property
    def name(self) -> str:
        return "practice" + (":" + ",".join(self.faults) if self.faults else "")

    @property
    def is_live(self) -> bool:
        return self.studio.is_live

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Session]:
        yield _PracticeSession(self.studio, self.faults, Clinic())


@dataclass(frozen=True)
class _PracticeSession:
    studio: Studio
    faults: tuple[str, ...]
    clinic: Clinic

    async def call(self, caller: Caller, scenario: Scenario, number: int, run: int, log: CallLog | None = None) -> CallRecord:
        planted = [BY_NAME[name] for name in self.faults]
        for fault in planted:
            if fault.place == "line":
                scenario = scenario.model_copy(update={"line": fault.line})
            if fault.place == "tester":
                caller = FaultyCaller(fault.name, scenario, scenario.calls[number - 1], scenario.seed + run)
        return await EndSession(self.studio, self._end).call(caller, scenario, number, run, log)

    def _end(self, pace: Pace) -> FarEnd:
        agent = make_agent(self.clinic, *self.faults)
        interruption = interruption_of(*self.faults)
        return SpokenEnd(agent, self.studio.agent_voice, pace, kind="audio", counts_work=False, interruption=interruption)
