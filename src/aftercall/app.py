"""The composition root: settings in, wired parts out. The only file that names concrete adapters."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from aftercall.bridge.turn_call import Parts
from aftercall.briefing.compose import Composer
from aftercall.clock import Clock, SystemClock
from aftercall.db.connect import Database
from aftercall.db.durability import check_durable_engine
from aftercall.db.prepare import prepare
from aftercall.engine.receptionist import Receptionist
from aftercall.errors import AftercallError, ConfigError
from aftercall.journal.archive import Archive
from aftercall.journal.place import Folder
from aftercall.journal.presence import Presence
from aftercall.journal.record import Journal
from aftercall.journal.resume import ResumeDesk
from aftercall.journal.store import CallStore, Pen, ResumeState
from aftercall.llm.masked import MaskedReader
from aftercall.llm.reader import Reader
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.postcall.office import Office
from aftercall.postcall.steps import Desk
from aftercall.postcall.store import StepStore
from aftercall.settings import Settings
from aftercall.work.desk import WorkDesk
from aftercall.work.health.store import HealthStore
from aftercall.work.passcode import Mask
from aftercall.work.runs.store import RunStore
from aftercall.work.sinks.choose import make_sinks
from aftercall.work.sinks.store import DeliveryStore
from aftercall.work.store import FollowUpStore
from aftercall.work.told import Teller


@dataclass(frozen=True)
class App:
    """The parts of one Aftercall."""

    settings: Settings
    clock: Clock
    database: Database
    store: CallStore
    steps: StepStore
    archive: Archive
    presence: Presence
    journal: Journal
    resume: ResumeDesk
    reader: Reader
    composer: Composer

    @cached_property
    def office(self) -> Office:
        return Office(Desk(self.settings, self.reader, self.clock), self.store, self.steps, self.archive, self.presence)

    @cached_property
    def work(self) -> WorkDesk:
        runs, followups, deliveries = RunStore(self.database), FollowUpStore(self.database), DeliveryStore(self.database)
        sinks = make_sinks(self.settings, self.clock)
        return WorkDesk(self.settings, self.reader, self.clock, self.archive, runs, followups, deliveries, sinks)

    @cached_property
    def health(self) -> HealthStore:
        return HealthStore(self.database)

    @cached_property
    def turn_parts(self) -> Parts:
        async def brief(call: LiveCall, state: ResumeState | None) -> Briefing:
            return await asyncio.to_thread(self.composer.compose, call, state)

        receptionist = Receptionist(self.reader, self.clock)
        return Parts(self.journal, self.resume, receptionist, brief, self.settings.receptionist.greeting, self.clock)

    def close(self) -> None:
        """Stop as a process that leaves nothing behind."""
        with suppress(AftercallError):
            self.presence.leave()
        self.database.close()


def build(settings: Settings, clock: Clock | None = None) -> App:
    """Wire the parts, and make the database ready; raises an AftercallError that says what to do."""
    clock = clock or SystemClock()
    check_durable_engine(settings.database_url)
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"home: {settings.home} cannot be used as a folder ({error.strerror}); set AFTERCALL_HOME") from None
    database = Database(settings.database_url)
    prepare(database)
    store, steps = CallStore(database), StepStore(database)
    folder = Folder(settings.home / "archive")
    folder.sweep()
    archive = Archive(folder)
    presence = Presence(settings.home / "run", store, clock)
    resume = ResumeDesk(store, settings.reconnect_window_s)
    app = App(
        settings=settings,
        clock=clock,
        database=database,
        store=store,
        steps=steps,
        archive=archive,
        presence=presence,
        journal=Journal(store, Pen(database), archive, presence, clock),
        resume=resume,
        reader=_masked(RulesReader(), settings),
        composer=Composer(settings, store, steps, archive, resume, clock, Teller(settings, FollowUpStore(database))),
    )
    try:
        app.work.check()
    except ConfigError:
        app.close()
        raise
    return app


def _masked(reader: Reader, settings: Settings) -> Reader:
    """Nobody who reads a call reads the passcode."""
    passcode = settings.work.passcode
    return MaskedReader(reader, Mask(passcode.get_secret_value())) if passcode else reader
