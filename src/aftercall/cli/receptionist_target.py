"""The built-in receptionist as an agent under test: every run gets a new app and home in this
process.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from aftercall.app import App, build
from aftercall.bridge.turn_call import TurnCall
from aftercall.clock import SystemClock
from aftercall.engine.voice import AgentReply as TurnReply
from aftercall.ids import new_id
from aftercall.model.calls import LiveCall
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from aftercall.tester.caller import Caller
from aftercall.tester.drivers.text_agent import TextAgentConnection
from aftercall.tester.line import AgentAnswer, DialedCall
from aftercall.tester.record import CallLog, CallRecord
from aftercall.tester.scenario import Scenario
from aftercall.tester.target import CallSetup, ConnectionSession, TargetSession

DATABASE_TIMEOUT_S = (
    60.0  # nobody is on the phone: a busy machine changes no test's result
)


class SkippingClock(SystemClock):
    """Real time, but pauses between two calls can be skipped."""

    def __init__(self) -> None:
        self._skipped = timedelta()

    def now(self) -> datetime:
        return super().now() + self._skipped

    def skip(self, seconds: float) -> None:
        self._skipped += timedelta(seconds=seconds)


@contextmanager
def open_receptionist(
    setup: CallSetup, settings: Settings
) -> Iterator["ReceptionistTarget"]:
    """Each run copies one prepared home: making a home takes longer than a call."""
    with tempfile.TemporaryDirectory(prefix="aftercall-test-") as template:
        build(_settings(settings, Path(template))).close()
        shutil.rmtree(Path(template) / "run", ignore_errors=True)
        yield ReceptionistTarget(setup, settings, Path(template))


def _settings(settings: Settings, home: Path) -> Settings:
    """The defaults, with the configured receptionist and time zone."""
    return Settings(
        home=home, receptionist=settings.receptionist, timezone=settings.timezone
    )


@dataclass(frozen=True)
class ReceptionistTarget:
    setup: CallSetup
    settings: Settings
    template: Path

    @property
    def name(self) -> str:
        return "receptionist"

    @property
    def is_live(self) -> bool:
        return self.setup.is_live

    @property
    def keeps_time(self) -> bool:
        return self.setup.is_live

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TargetSession]:
        with tempfile.TemporaryDirectory(prefix="aftercall-test-") as home:
            clock = SkippingClock()
            shutil.copytree(self.template, home, dirs_exist_ok=True)
            app = await asyncio.to_thread(
                build,
                _settings(self.settings, Path(home)),
                clock,
                database_timeout_s=DATABASE_TIMEOUT_S,
            )
            try:
                yield _ReceptionistSession(self.setup, app, clock)
            finally:
                await app.journal.close()
                app.close()


@dataclass(frozen=True)
class _ReceptionistSession:
    setup: CallSetup
    app: App
    clock: SkippingClock

    async def call(
        self,
        caller: Caller,
        scenario: Scenario,
        number: int,
        run: int,
        log: CallLog | None = None,
    ) -> CallRecord:
        if not self.setup.is_live:
            self.clock.skip(scenario.calls[number - 1].pause_s)
        agent = ReceptionistAgent(self.app)
        line = ConnectionSession(
            self.setup,
            lambda pace: TextAgentConnection(agent, self.setup.agent_voice, pace),
        )
        record = await line.call(caller, scenario, number, run, log)
        if number < len(scenario.calls) and agent.call_id:
            await asyncio.to_thread(self._run_steps, agent.call_id)
        return record

    def _run_steps(self, call_id: str) -> None:
        """Runs the post-call steps at once, so that the next call knows of this one."""
        for name in STEPS:
            self.app.step_runner.run(call_id, name)


class ReceptionistAgent:
    def __init__(self, app: App) -> None:
        self._app = app
        self._call: TurnCall | None = None

    @property
    def call_id(self) -> str:
        return self._call.call.id if self._call else ""

    async def start(self, dial: DialedCall) -> Sequence[AgentAnswer]:
        app = self._app
        live = LiveCall(
            source="tester",
            sid=new_id(),
            agent_id=app.settings.agent_id,
            caller=dial.caller,
            started_at=app.clock.now(),
        )
        self._call = TurnCall(app.phone.turn_parts, live)
        return self._spoken(await self._call.start())

    async def respond(self, text: str) -> Sequence[AgentAnswer]:
        if self._call is None or self._call.end_reason is not None:
            return ()
        return self._spoken(await self._call.answer(text))

    async def press(self, digits: str) -> Sequence[AgentAnswer]:
        return await self.respond(f"[keys {digits}]")

    async def idle(self, seconds: int) -> Sequence[AgentAnswer]:
        return ()

    async def hang_up(self) -> None:
        if self._call is not None:
            await self._call.end("caller_hung_up")

    def _spoken(self, reply: TurnReply) -> Sequence[AgentAnswer]:
        return [AgentAnswer(reply.text, reply.ends_call)]
