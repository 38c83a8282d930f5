"""The composition root: settings in, wired parts out. The only file that names concrete adapters."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import httpx2

from aftercall.bridge.turn_call import Parts
from aftercall.briefing.compose import Composer
from aftercall.carrier.control import TelnyxRest, TwilioRest
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
from aftercall.journal.recordings.store import RecordingStore
from aftercall.journal.resume import ResumeDesk
from aftercall.journal.store import CallStore, Pen, ResumeState
from aftercall.llm.reader import Reader
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.postcall.office import Office
from aftercall.postcall.recording_desk import RecordingDesk
from aftercall.postcall.steps import Desk
from aftercall.postcall.store import StepStore
from aftercall.settings import Settings


@dataclass(frozen=True)
class App:
    """The parts of one Aftercall."""

    settings: Settings
    clock: Clock
    database: Database
    store: CallStore
    steps: StepStore
    recordings: RecordingStore
    archive: Archive
    presence: Presence
    journal: Journal
    resume: ResumeDesk
    reader: Reader
    composer: Composer
    transport: httpx2.AsyncBaseTransport | None = None
    """How carriers are reached; tests put the lab here."""

    @cached_property
    def twilio(self) -> TwilioRest | None:
        """Twilio's REST address; None without an account and its token."""
        set_up = self.settings.twilio.account_sid and self.settings.twilio.auth_token
        return TwilioRest(self.settings.twilio, self.clock, self.transport) if set_up else None

    @cached_property
    def telnyx(self) -> TelnyxRest | None:
        """Telnyx' REST address; None without a key."""
        return TelnyxRest(self.settings.telnyx, self.clock, self.transport) if self.settings.telnyx.api_key else None

    async def close_carriers(self) -> None:
        for carrier in (self.twilio, self.telnyx):
            if carrier is not None:
                await carrier.close()

    @cached_property
    def office(self) -> Office:
        return Office(Desk(self.settings, self.reader, self.clock), self.store, self.steps, self.archive, self.presence)

    @cached_property
    def recording_desk(self) -> RecordingDesk:
        return RecordingDesk(self.settings, self.recordings, self.clock)

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
    return App(
        settings=settings,
        clock=clock,
        database=database,
        store=store,
        steps=steps,
        recordings=RecordingStore(database),
        archive=archive,
        presence=presence,
        journal=Journal(store, Pen(database), archive, presence, clock),
        resume=resume,
        reader=RulesReader(),
        composer=Composer(settings, store, steps, archive, resume, clock),
    )
