"""The composition root: settings in, wired parts out. The only file that names concrete adapters."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial

import httpx2
from pydantic import SecretStr

from aftercall.audit.store import AuditLog
from aftercall.bridge.answer import VoiceParts
from aftercall.bridge.lobby import Lobby
from aftercall.bridge.turn_call import Parts
from aftercall.briefing import ring
from aftercall.briefing.compose import Composer
from aftercall.briefing.instructions import instruct
from aftercall.briefing.store import BriefingStore
from aftercall.carrier.control import CarrierControl, TelnyxRest, TwilioRest
from aftercall.clock import Clock, SystemClock
from aftercall.custody.erase import Eraser
from aftercall.custody.export import Exporter
from aftercall.custody.rebuild import Rebuilder
from aftercall.custody.retention import Retention
from aftercall.db.connect import Database
from aftercall.db.durability import check_durable_engine
from aftercall.db.home import claim_home
from aftercall.db.prepare import prepare
from aftercall.engine.aloud import Aloud
from aftercall.engine.deepgram_agent import DeepgramAgent
from aftercall.engine.openai_realtime import OpenAIRealtime
from aftercall.engine.receptionist import Receptionist
from aftercall.engine.spoken_by_model import SpokenByModel
from aftercall.engine.voice import VoiceEngine
from aftercall.errors import AftercallError, ConfigError
from aftercall.journal.archive import Archive
from aftercall.journal.place import Folder
from aftercall.journal.presence import SILENCE_S, Presence
from aftercall.journal.record import Journal
from aftercall.journal.recordings.store import RecordingStore
from aftercall.journal.resume import ResumeDesk
from aftercall.journal.spill import SpillFolder
from aftercall.journal.store import CallStore, Pen, ResumeState
from aftercall.keys import load_key
from aftercall.llm.masked import MaskedReader
from aftercall.llm.model.choice import choose
from aftercall.llm.model.line import ModelLine
from aftercall.llm.model.reader import ModelReader
from aftercall.llm.reader import Reader
from aftercall.llm.rules.reader import RulesReader
from aftercall.log import get_logger
from aftercall.memory.documents.store import DocumentStore
from aftercall.memory.embedding import Embedder, load_embedder
from aftercall.memory.extraction import Extractor
from aftercall.memory.passages.index import PassageIndex
from aftercall.memory.pins.board import Pinboard
from aftercall.memory.recall import Recall
from aftercall.memory.remem import Remem
from aftercall.memory.search import Search
from aftercall.memory.store import FactStore
from aftercall.memory.vault import open_vault
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.model.instants import format_instant
from aftercall.phone.passes import StreamPasses
from aftercall.postcall.answers.store import AnswerStore
from aftercall.postcall.office import Office
from aftercall.postcall.recording_desk import RecordingDesk
from aftercall.postcall.steps import FIRST, Desk
from aftercall.postcall.store import StepStore
from aftercall.settings import Settings
from aftercall.speech.organs import Organs, find_missing, make_organs
from aftercall.who.attention import Reception
from aftercall.who.introduction import stated_name
from aftercall.who.register import Register
from aftercall.who.tries import TryLedger
from aftercall.work.desk import WorkDesk
from aftercall.work.health.report import Report, report
from aftercall.work.health.store import HealthStore
from aftercall.work.health.upkeep import Upkeep, tell
from aftercall.work.passcode import Mask
from aftercall.work.policy import Policy
from aftercall.work.runs.store import RunStore
from aftercall.work.sinks.choose import make_sinks
from aftercall.work.sinks.store import DeliveryStore
from aftercall.work.store import FollowUpStore
from aftercall.work.told import Teller

log = get_logger("app")


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
    briefings: BriefingStore
    facts: FactStore
    documents: DocumentStore
    register: Register
    line: ModelLine | None = None
    remem: Remem | None = None
    transport: httpx2.AsyncBaseTransport | None = None
    """How carriers are reached; tests put the lab here."""
    organs: Organs | None = None
    """The receptionist's own ear and mouth; None where it has none, or another speaks."""

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
        extractor = Extractor(self.settings, self.facts, self.clock)
        desk = Desk(self.settings, self.reader, self.clock, self.database, self.documents, extractor, self.remem, self.embedder, self.pins)
        desk = replace(desk, as_party=self.register.as_party, as_parties=self.register.as_parties, stated_name=stated_name)
        desk = replace(desk, is_handed_in=self.store.is_handed_in, has_later_call=self.steps.has_later_call)
        desk = replace(desk, summary_state=partial(self.steps.state_of, name=FIRST), last_greeting=self.steps.last_greeting)
        desk = replace(desk, remote_id=partial(self.steps.result_of, name="remem"))
        return Office(desk, self.store, self.steps, self.archive, self.presence)

    @cached_property
    def pins(self) -> Pinboard:
        return Pinboard(self.settings, self.database, self.facts, self.clock)

    @cached_property
    def search(self) -> Search:
        return Search(self.database, self.clock, embedder=self.embedder)

    @cached_property
    def embedder(self) -> Embedder | None:
        return load_embedder(self.settings.memory.embedder, self.settings.openai)

    @cached_property
    def work(self) -> WorkDesk:
        runs, followups = RunStore(self.database), FollowUpStore(self.database)
        deliveries = DeliveryStore(self.database, self.presence)
        sinks = make_sinks(self.settings, self.clock)
        return WorkDesk(self.settings, self.reader, self.clock, self.archive, runs, followups, deliveries, sinks)

    @cached_property
    def audit(self) -> AuditLog:
        return AuditLog(self.database, self.clock)

    @cached_property
    def eraser(self) -> Eraser:
        return Eraser(self.settings, self.database, self.archive, self.audit, self.clock, has_remote=self.remem is not None)

    @cached_property
    def exporter(self) -> Exporter:
        return Exporter(self.settings, self.database, self.archive, self.facts, self.work.followups, self.audit, self.clock, self.pins)

    @cached_property
    def retention(self) -> Retention:
        return Retention(self.settings, self.database, self.archive, self.clock)

    @cached_property
    def rebuilder(self) -> Rebuilder:
        return Rebuilder(self.database, self.office)

    @cached_property
    def health(self) -> HealthStore:
        return HealthStore(self.database)

    @cached_property
    def upkeep(self) -> Upkeep:
        return Upkeep(self.clock)

    def report_health(self) -> Report:
        return report(self.health, self.clock.now(), self.settings.reconnect_window_s, self._find_failing_upkeep())

    def _find_failing_upkeep(self) -> list[str]:
        """What fails here, and in other processes as far as they can say so."""
        outage = self.journal.outage.reason
        others = [row for row in self.presence.find_others() if row.failures is not None]
        silent = [row for row in others if self.clock.now() - row.beat_at > timedelta(seconds=SILENCE_S)]
        return [
            *([f"live calls cannot be written to the database: {outage}"] if outage else []),
            *(tell(failure) for failure in [*self.upkeep.failures, *(failure for row in others for failure in row.failures or ())]),
            *(f"a running process has written nothing since {format_instant(row.beat_at)}; is the disk full?" for row in silent),
        ]

    @cached_property
    def recording_desk(self) -> RecordingDesk:
        return RecordingDesk(self.settings, self.recordings, self.clock)

    @cached_property
    def turn_parts(self) -> Parts:
        receptionist = Receptionist(RulesReader(), self.clock, self.settings.zone)
        engine = SpokenByModel(self.line, receptionist, self.settings.zone) if self.line else receptionist
        return Parts(self.journal, self.resume, engine, self.brief, self.settings.receptionist.greeting, self.clock, self.reception.attend)

    def warm_up(self) -> None:
        """Load what takes seconds to load before the first call, not in the middle of it."""
        if self.line is not None:
            self.line.open()
        if self.organs is not None:
            try:
                self.organs.open()
            except AftercallError as error:  # it is tried again with the first call, whose caller hears that
                log.warning("the receptionist's own speech does not start", error=error.code, reason=str(error))

    @cached_property
    def lobby(self) -> Lobby:
        """Calls whose audio comes over a media socket. Streams come to the process that answered the webhook."""
        passes = StreamPasses(SecretStr(load_key(self.settings).hex()), self.clock)
        return Lobby(self.journal, self.brief, self.settings.receptionist.greeting, passes, self.clock)

    @cached_property
    def voice_parts(self) -> VoiceParts | None:
        """What a call of streamed audio stands on; None where the receptionist speaks through the carrier."""
        engine = _voice_engine(self.settings) or (Aloud(self.turn_parts.engine, self.organs, self.clock) if self.organs else None)
        if engine is None:
            return None
        return VoiceParts(
            journal=self.journal,
            resume=self.resume,
            engine=engine,
            instruct=lambda briefing: instruct(briefing, self.settings.zone),
            recall=self._recall,
            hang_up=self._hang_up,
            settings=self.settings.bridge,
            clock=self.clock,
            attend=self.reception.attend,
        )

    @cached_property
    def recall(self) -> Recall:
        return Recall(self.settings, self.search, self.facts)

    @cached_property
    def reception(self) -> Reception:
        return Reception(self.register, Policy(self.settings), self.composer.compose_anew, self.recall.find)

    async def brief(self, call: LiveCall) -> tuple[ResumeState | None, Briefing]:
        """What a call that rings now is told, in time; a greeting that was left is used up."""
        return await ring.brief(self.composer, call, self.clock)

    async def _recall(self, call: LiveCall, query: str) -> Sequence[str]:
        """For whoever pays no attention to who is on the line: the number's owner, as far as the number is trusted."""
        trust = self.reception.policy.trust(call, has_passcode=False)
        return await asyncio.to_thread(self.recall.find, call.agent_id, call.caller, trust, query)

    async def _hang_up(self, call: LiveCall) -> None:
        """For carriers that keep a call open when its media socket closes."""
        carriers: dict[str, CarrierControl | None] = {"twilio": self.twilio, "telnyx": self.telnyx}
        if carrier := carriers.get(call.source):
            await carrier.hang_up(str(call.metadata.get("call_sid", call.sid)))

    def close(self) -> None:
        """Stop as a process that leaves nothing behind."""
        if self.organs is not None:
            self.organs.close()
        if self.line is not None:
            self.line.close()
        if self.remem is not None:
            self.remem.close()
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


def _find_organs(settings: Settings) -> Organs | None:
    wanted = settings.speaks == "receptionist" and settings.receptionist.speech
    return make_organs(settings.receptionist.voice) if wanted and find_missing() is None else None


def build(settings: Settings, clock: Clock | None = None, *, claims_home: bool = True) -> App:
    """Wire the parts, and make the database ready; raises an AftercallError that says what to do.

    Without `claims_home` the database may be another home's: for whoever only reads rows.
    """
    clock = clock or SystemClock()
    _check_engine(settings)
    check_durable_engine(settings.database_url)
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"home: {settings.home} cannot be used as a folder ({error.strerror}); set AFTERCALL_HOME") from None
    database = Database(settings.database_url)
    try:
        prepare(database)
        if claims_home:
            claim_home(database, settings.home, clock.now())
    except AftercallError:
        database.close()
        raise
    store, steps = CallStore(database), StepStore(database)
    folder = Folder(settings.home / "archive")
    folder.sweep()
    archive = Archive(folder)
    presence = Presence(settings.home / "run", store, clock)
    resume = ResumeDesk(store, settings.reconnect_window_s)
    line, vault = connect(settings), open_vault(settings)
    facts, teller = (
        FactStore(database, vault, PassageIndex(), settings.memory.list_others_in_group),
        Teller(settings, FollowUpStore(database)),
    )
    register = Register(settings, store, TryLedger(settings, RunStore(database), clock))
    briefings, board = BriefingStore(database), Pinboard(settings, database, facts, clock)
    app = App(
        settings=settings,
        clock=clock,
        database=database,
        store=store,
        steps=steps,
        recordings=RecordingStore(database),
        archive=archive,
        presence=presence,
        journal=Journal(
            store,
            Pen(database),
            archive,
            presence,
            clock,
            SpillFolder(settings.home / "spill"),
            timedelta(seconds=settings.reconnect_window_s),
        ),
        resume=resume,
        reader=_masked(ModelReader(line, AnswerStore(database, clock, vault)) if line else RulesReader(), settings),
        composer=Composer(settings, store, steps, archive, resume, clock, teller, facts, board, briefings, register),
        briefings=briefings,
        facts=facts,
        documents=DocumentStore(database),
        register=register,
        line=line,
        remem=Remem(settings.remem) if settings.remem.api_key else None,
        organs=_find_organs(settings),
    )
    try:
        app.work.check()
    except ConfigError:
        app.close()
        raise
    return app


def connect(settings: Settings) -> ModelLine | None:
    """The line to the model of the settings; None where calls are read by rules."""
    choice = choose(settings)
    return ModelLine(choice) if choice else None


def _masked(reader: Reader, settings: Settings) -> Reader:
    """Nobody who reads a call reads the passcode."""
    passcode = settings.work.passcode
    return MaskedReader(reader, Mask(passcode.get_secret_value())) if passcode else reader
