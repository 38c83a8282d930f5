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
from functools import partial
from pathlib import Path

from aftercall.app import App, build
from aftercall.bridge.turn_call import TurnCall
from aftercall.clock import SystemClock
from aftercall.engine.voice import AgentReply as TurnReply
from aftercall.ids import new_id
from aftercall.model.calls import LiveCall
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from aftercall.tester.call import ScriptedCall
from aftercall.tester.drivers.text_agent import TextAgentConnection
from aftercall.tester.line import AgentAnswer, DialedCall, TextAgent
from aftercall.tester.record import CallRecord
from aftercall.tester.target import AgentTarget, CallSetup, TargetSession

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
def open_receptionist(setup: CallSetup, settings: Settings) -> Iterator[AgentTarget]:
    """Each run copies one prepared home: making a home takes longer than a call."""
    with tempfile.TemporaryDirectory(prefix="aftercall-test-") as template:
        build(_settings(settings, Path(template))).close()
        shutil.rmtree(Path(template) / "run", ignore_errors=True)
        home, is_live = ReceptionistHome(setup, settings, Path(template)), setup.is_live
        yield AgentTarget("receptionist", is_live, home.open, keeps_time=is_live)


def _settings(settings: Settings, home: Path) -> Settings:
    """The defaults, with the configured receptionist and time zone."""
    return Settings(
        home=home, receptionist=settings.receptionist, timezone=settings.timezone
    )


@dataclass(frozen=True)
class ReceptionistHome:
    """A prepared home, and the settings of the receptionist in it."""

    setup: CallSetup
    settings: Settings
    template: Path

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
                yield partial(self._call, app, clock)
            finally:
                await app.journal.close()
                app.close()

    async def _call(
        self, app: App, clock: SkippingClock, call: ScriptedCall
    ) -> CallRecord:
        if not self.setup.is_live:
            clock.skip(call.plan.pause_s)
        agent = ReceptionistAgent(app)
        record = await self.setup.hold_call(
            lambda pace: TextAgentConnection(agent, self.setup.agent_voice, pace), call
        )
        if call.number < len(call.scenario.calls) and agent.call_id:
            await asyncio.to_thread(_run_steps, app, agent.call_id)
        return record


def _run_steps(app: App, call_id: str) -> None:
    """Runs the post-call steps at once, so that the next call knows of this one."""
    for name in STEPS:
        app.step_runner.run(call_id, name)


class ReceptionistAgent(TextAgent):
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

    async def hang_up(self) -> None:
        if self._call is not None:
            await self._call.end("caller_hung_up")

    def _spoken(self, reply: TurnReply) -> Sequence[AgentAnswer]:
        return [AgentAnswer(reply.text, reply.ends_call)]
