"""The composition root: settings in, wired parts out. The only file that names concrete adapters."""

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from pydantic import SecretStr

from aftercall.bridge.answer import VoiceParts
from aftercall.bridge.lobby import Lobby
from aftercall.bridge.turn_call import Parts
from aftercall.briefing.compose import Composer
from aftercall.briefing.instructions import instruct
from aftercall.clock import Clock, SystemClock
from aftercall.db.connect import Database
from aftercall.db.durability import check_durable_engine
from aftercall.db.prepare import prepare
from aftercall.engine.deepgram_agent import DeepgramAgent
from aftercall.engine.openai_realtime import OpenAIRealtime
from aftercall.engine.receptionist import Receptionist
from aftercall.engine.voice import VoiceEngine
from aftercall.errors import AftercallError, ConfigError
from aftercall.journal.archive import Archive
from aftercall.journal.place import Folder
from aftercall.journal.presence import Presence
from aftercall.journal.record import Journal
from aftercall.journal.resume import ResumeDesk
from aftercall.journal.store import CallStore, Pen, ResumeState
from aftercall.llm.reader import Reader
from aftercall.llm.rules.reader import RulesReader
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.phone.passes import StreamPasses
from aftercall.postcall.office import Office
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
    def turn_parts(self) -> Parts:
        receptionist = Receptionist(self.reader, self.clock)
        return Parts(self.journal, self.resume, receptionist, self._brief, self.settings.receptionist.greeting, self.clock)

    @cached_property
    def lobby(self) -> Lobby:
        """Calls whose audio comes over a media socket. Streams come to the process that answered the webhook."""
        key = self.settings.secret_key or SecretStr(secrets.token_urlsafe(32))
        passes = StreamPasses(key, self.clock)
        return Lobby(self.journal, self.resume, self._brief, self.settings.receptionist.greeting, passes, self.clock)

    @cached_property
    def voice_parts(self) -> VoiceParts | None:
        """What a call of streamed audio stands on; None where the receptionist speaks."""
        engine = _voice_engine(self.settings)
        if engine is None:
            return None
        return VoiceParts(
            journal=self.journal,
            resume=self.resume,
            engine=engine,
            instruct=lambda briefing: instruct(briefing, self.settings.zone),
            recall=_recall_nothing,
            hang_up=_leave_to_the_carrier,
            settings=self.settings.bridge,
            clock=self.clock,
        )

    async def _brief(self, call: LiveCall, state: ResumeState | None) -> Briefing:
        return await asyncio.to_thread(self.composer.compose, call, state)

    def close(self) -> None:
        """Stop as a process that leaves nothing behind."""
        with suppress(AftercallError):
            self.presence.leave()
        self.database.close()


def _check_engine(settings: Settings) -> None:
    keys = {"deepgram": settings.deepgram.api_key, "openai": settings.openai.api_key, "receptionist": SecretStr("needs none")}
    if keys[settings.speaks] is None:
        raise ConfigError(f"engine: {settings.speaks} needs a key; set {settings.speaks.upper()}_API_KEY, or another engine")


def _voice_engine(settings: Settings) -> VoiceEngine | None:
    match settings.speaks:
        case "deepgram":
            return DeepgramAgent(settings.deepgram)
        case "openai":
            return OpenAIRealtime(settings.openai)
        case _:
            return None


async def _recall_nothing(call: LiveCall, query: str) -> Sequence[str]:
    """The hook of memory: what is known of this caller about the query. Until memory is there, nothing is."""
    return ()


async def _leave_to_the_carrier(call: LiveCall) -> None:
    """The hook of call control, for carriers that keep a call open when its media socket closes."""


def build(settings: Settings, clock: Clock | None = None) -> App:
    """Wire the parts, and make the database ready; raises an AftercallError that says what to do."""
    clock = clock or SystemClock()
    _check_engine(settings)
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
        archive=archive,
        presence=presence,
        journal=Journal(store, Pen(database), archive, presence, clock),
        resume=resume,
        reader=RulesReader(),
        composer=Composer(settings, store, steps, archive, resume, clock),
    )
