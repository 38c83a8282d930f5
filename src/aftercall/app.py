"""The composition root: settings in, wired parts out.

The only file that names concrete adapters.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial

import httpx2
from pydantic import SecretStr

from aftercall.bridge.pending_calls import PendingCalls
from aftercall.bridge.turn_call import TurnCallParts
from aftercall.bridge.voice_call import VoiceCallParts
from aftercall.briefing import compose
from aftercall.briefing.cache import BriefingCache
from aftercall.briefing.compose import Composer
from aftercall.briefing.render import make_instructions
from aftercall.carrier.control import CarrierControl, TelnyxRest, TwilioRest
from aftercall.clock import Clock, SystemClock, format_instant
from aftercall.db.audit_log import AuditLog
from aftercall.db.connect import Database
from aftercall.db.upgrade import check_durable_engine, claim_home, prepare_database
from aftercall.engine.deepgram_agent import DeepgramAgent
from aftercall.engine.openai_realtime import OpenAIRealtime
from aftercall.engine.receptionist import ModelReceptionist, Receptionist
from aftercall.engine.spoken_turns import SpokenTurnEngine
from aftercall.engine.voice import VoiceEngine
from aftercall.errors import AftercallError, ConfigError
from aftercall.journal.archive import Archive, ArchiveFolder
from aftercall.journal.presence import HEARTBEAT_TIMEOUT_S, Presence, ProcessStore
from aftercall.journal.record import Journal
from aftercall.journal.recording_files import RecordingStore
from aftercall.journal.resume import ResumeState, ResumeStates
from aftercall.journal.spill import SpillFolder
from aftercall.journal.store import CallStore, JournalInserter
from aftercall.keys import load_key
from aftercall.llm.model.client import ModelClient, choose_model
from aftercall.llm.model.reader import ModelReader
from aftercall.llm.reader import MaskedReader, Reader
from aftercall.llm.rules.reader import RulesReader
from aftercall.log import get_logger
from aftercall.memory.document_store import DocumentStore
from aftercall.memory.embedding import Embedder, load_embedder
from aftercall.memory.extraction import Extractor
from aftercall.memory.fact_store import FactStore
from aftercall.memory.pins.board import PinBoard
from aftercall.memory.remem import RememClient
from aftercall.memory.search import FactRecall, MemorySearch
from aftercall.memory.vault import open_vault
from aftercall.model.briefing import Briefing
from aftercall.model.calls import LiveCall
from aftercall.phone.signature import StreamTokens
from aftercall.postcall.answer_store import AnswerStore
from aftercall.postcall.office import Office
from aftercall.postcall.recording_desk import RecordingDesk
from aftercall.postcall.steps import FIRST, Desk
from aftercall.postcall.store import StepStore
from aftercall.privacy.erase import Eraser
from aftercall.privacy.export import Exporter
from aftercall.privacy.rebuild import Rebuilder
from aftercall.privacy.retention import Retention
from aftercall.settings import Settings
from aftercall.speech.kit import SpeechKit, find_missing, make_speech_kit
from aftercall.who.identity import CallerReception
from aftercall.who.introduction import find_stated_name
from aftercall.who.passcode import PasscodeTryLedger
from aftercall.who.register import CallerRegister
from aftercall.work.context import WorkContext
from aftercall.work.health import HealthReport, HealthStore, report
from aftercall.work.run_store import RunStore
from aftercall.work.sinks.router import make_sinks
from aftercall.work.store import DeliveryStore, FollowUpStore
from aftercall.work.trust import PasscodeMask, TrustPolicy
from aftercall.work.upkeep import Upkeep, format_failure
from aftercall.work.view import FollowUpNews

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
    resume: ResumeStates
    reader: Reader
    composer: Composer
    briefings: BriefingCache
    facts: FactStore
    documents: DocumentStore
    register: CallerRegister
    model_client: ModelClient | None = None
    remem: RememClient | None = None
    transport: httpx2.AsyncBaseTransport | None = None
    """How carriers are reached; tests put the lab here."""
    speech_kit: SpeechKit | None = None
    """The receptionist's own ear and mouth; None where it has none, or another speaks."""

    @cached_property
    def twilio(self) -> TwilioRest | None:
        """Twilio's REST address; None without an account and its token."""
        set_up = self.settings.twilio.account_sid and self.settings.twilio.auth_token
        return TwilioRest(self.settings.twilio, self.clock, self.transport) if set_up else None

    @cached_property
    def telnyx(self) -> TelnyxRest | None:
        """Telnyx' REST address; None without a key."""
        return (
            TelnyxRest(self.settings.telnyx, self.clock, self.transport)
            if self.settings.telnyx.api_key
            else None
        )

    async def close_carriers(self) -> None:
        for carrier in (self.twilio, self.telnyx):
            if carrier is not None:
                await carrier.close()

    @cached_property
    def office(self) -> Office:
        extractor = Extractor(self.settings, self.facts, self.clock)
        desk = Desk(
            self.settings,
            self.reader,
            self.clock,
            self.database,
            self.documents,
            extractor,
            self.remem,
            self.embedder,
            self.pins,
        )
        desk = replace(
            desk,
            as_party=self.register.resolve_party,
            as_parties=self.register.resolve_parties,
            stated_name=find_stated_name,
        )
        desk = replace(
            desk, is_handed_in=self.store.is_handed_in, has_later_call=self.steps.has_later_call
        )
        desk = replace(
            desk,
            summary_state=partial(self.steps.state_of, name=FIRST),
            last_greeting=self.steps.last_greeting,
        )
        desk = replace(desk, remote_id=partial(self.steps.result_of, name="remem"))
        return Office(desk, self.store, self.steps, self.archive, self.presence)

    @cached_property
    def pins(self) -> PinBoard:
        return PinBoard(self.settings, self.database, self.facts, self.clock)

    @cached_property
    def search(self) -> MemorySearch:
        return MemorySearch(self.database, self.clock, embedder=self.embedder)

    @cached_property
    def embedder(self) -> Embedder | None:
        return load_embedder(self.settings.memory.embedder, self.settings.openai)

    @cached_property
    def work(self) -> WorkContext:
        runs, followups = RunStore(self.database), FollowUpStore(self.database)
        deliveries = DeliveryStore(self.database, self.presence)
        sinks = make_sinks(self.settings, self.clock)
        return WorkContext(
            self.settings, self.reader, self.clock, self.archive, runs, followups, deliveries, sinks
        )

    @cached_property
    def audit(self) -> AuditLog:
        return AuditLog(self.database, self.clock)

    @cached_property
    def eraser(self) -> Eraser:
        return Eraser(
            self.settings,
            self.database,
            self.archive,
            self.audit,
            self.clock,
            has_remote=self.remem is not None,
        )

    @cached_property
    def exporter(self) -> Exporter:
        return Exporter(
            self.settings,
            self.database,
            self.archive,
            self.facts,
            self.work.followups,
            self.audit,
            self.clock,
            self.pins,
        )

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

    def report_health(self) -> HealthReport:
        return report(
            self.health,
            self.clock.now(),
            self.settings.reconnect_window_s,
            self._find_failing_upkeep(),
        )

    def _find_failing_upkeep(self) -> list[str]:
        """What fails here, and in other processes as far as they can say so."""
        outage = self.journal.outage.reason
        others = [row for row in self.presence.find_others() if row.failures is not None]
        silent = [
            row
            for row in others
            if self.clock.now() - row.beat_at > timedelta(seconds=HEARTBEAT_TIMEOUT_S)
        ]
        return [
            *([f"live calls cannot be written to the database: {outage}"] if outage else []),
            *(
                format_failure(failure)
                for failure in [
                    *self.upkeep.failures,
                    *(failure for row in others for failure in row.failures or ()),
                ]
            ),
            *(
                (
                    f"a running process has written nothing since {format_instant(row.beat_at)}; "
                    "is the disk full?"
                )
                for row in silent
            ),
        ]

    @cached_property
    def recording_desk(self) -> RecordingDesk:
        return RecordingDesk(self.settings, self.recordings, self.clock)

    @cached_property
    def turn_parts(self) -> TurnCallParts:
        receptionist = Receptionist(RulesReader(), self.clock, self.settings.zone)
        engine = (
            ModelReceptionist(self.model_client, receptionist, self.settings.zone)
            if self.model_client
            else receptionist
        )
        return TurnCallParts(
            self.journal,
            self.resume,
            engine,
            self.brief,
            self.settings.receptionist.greeting,
            self.clock,
            self.reception.start_identity,
        )

    def warm_up(self) -> None:
        """Load what takes seconds to load before the first call, not in the middle of it."""
        if self.model_client is not None:
            self.model_client.open()
        if self.speech_kit is not None:
            try:
                self.speech_kit.open()
            except (
                AftercallError
            ) as error:  # it is tried again with the first call, whose caller hears that
                log.warning(
                    "the receptionist's own speech does not start",
                    error=error.code,
                    reason=str(error),
                )

    @cached_property
    def pending_calls(self) -> PendingCalls:
        """Calls whose audio comes over a media socket.

        Streams come to the process that answered the webhook.
        """
        passes = StreamTokens(SecretStr(load_key(self.settings).hex()), self.clock)
        return PendingCalls(
            self.journal, self.brief, self.settings.receptionist.greeting, passes, self.clock
        )

    @cached_property
    def voice_parts(self) -> VoiceCallParts | None:
        """What a call of streamed audio stands on; None where the receptionist speaks through
        the carrier.
        """
        engine = _voice_engine(self.settings) or (
            SpokenTurnEngine(self.turn_parts.engine, self.speech_kit, self.clock)
            if self.speech_kit
            else None
        )
        if engine is None:
            return None
        return VoiceCallParts(
            journal=self.journal,
            resume=self.resume,
            engine=engine,
            make_instructions=lambda briefing: make_instructions(briefing, self.settings.zone),
            recall=self._recall,
            hang_up=self._hang_up,
            settings=self.settings.bridge,
            clock=self.clock,
            make_identity=self.reception.start_identity,
        )

    @cached_property
    def recall(self) -> FactRecall:
        return FactRecall(self.settings, self.search, self.facts)

    @cached_property
    def reception(self) -> CallerReception:
        return CallerReception(
            self.register, TrustPolicy(self.settings), self.composer.recompose, self.recall.find
        )

    async def brief(self, call: LiveCall) -> tuple[ResumeState | None, Briefing]:
        """What a call that rings now is told, in time; a greeting that was left is used up."""
        return await compose.brief_ring(self.composer, call, self.clock)

    async def _recall(self, call: LiveCall, query: str) -> Sequence[str]:
        """For whoever pays no attention to who is on the line: the number's owner, as far as
        the number is trusted.
        """
        trust = self.reception.policy.trust(call, has_passcode=False)
        return await asyncio.to_thread(self.recall.find, call.agent_id, call.caller, trust, query)

    async def _hang_up(self, call: LiveCall) -> None:
        """For carriers that keep a call open when its media socket closes."""
        carriers: dict[str, CarrierControl | None] = {"twilio": self.twilio, "telnyx": self.telnyx}
        if carrier := carriers.get(call.source):
            await carrier.hang_up(str(call.metadata.get("call_sid", call.sid)))

    def close(self) -> None:
        """Stop as a process that leaves nothing behind."""
        if self.speech_kit is not None:
            self.speech_kit.close()
        if self.model_client is not None:
            self.model_client.close()
        if self.remem is not None:
            self.remem.close()
        with suppress(AftercallError):
            self.presence.close()
        self.database.close()


def _check_engine(settings: Settings) -> None:
    keys = {
        "deepgram": settings.deepgram.api_key,
        "openai": settings.openai.api_key,
        "receptionist": SecretStr("needs none"),
    }
    if keys[settings.voice_engine] is None:
        raise ConfigError(
            f"engine: {settings.voice_engine} needs a key; set "
            f"{settings.voice_engine.upper()}_API_KEY, or another engine"
        )


def _voice_engine(settings: Settings) -> VoiceEngine | None:
    match settings.voice_engine:
        case "deepgram":
            return DeepgramAgent(settings.deepgram)
        case "openai":
            return OpenAIRealtime(settings.openai)
        case _:
            return None


def _make_speech_kit(settings: Settings) -> SpeechKit | None:
    wanted = settings.voice_engine == "receptionist" and settings.receptionist.speech
    return (
        make_speech_kit(settings.receptionist.voice) if wanted and find_missing() is None else None
    )


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
        raise ConfigError(
            f"home: {settings.home} cannot be used as a folder ({error.strerror}); set "
            "AFTERCALL_HOME"
        ) from None
    database = Database(settings.database_url)
    try:
        prepare_database(database)
        if claims_home:
            claim_home(database, settings.home, clock.now())
    except AftercallError:
        database.close()
        raise
    store, steps = CallStore(database), StepStore(database)
    folder = ArchiveFolder(settings.home / "archive")
    folder.remove_stale_files()
    archive = Archive(folder)
    presence = Presence(settings.home / "run", ProcessStore(database), clock)
    resume = ResumeStates(database, settings.reconnect_window_s)
    line, vault = make_model_client(settings), open_vault(settings)
    facts, teller = (
        FactStore(database, vault, settings.memory.list_others_in_group),
        FollowUpNews(settings, FollowUpStore(database)),
    )
    register = CallerRegister(
        settings, store, PasscodeTryLedger(settings, RunStore(database), clock)
    )
    briefings, board = BriefingCache(database), PinBoard(settings, database, facts, clock)
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
            JournalInserter(database),
            archive,
            presence,
            clock,
            SpillFolder(settings.home / "spill"),
            timedelta(seconds=settings.reconnect_window_s),
        ),
        resume=resume,
        reader=_masked(
            ModelReader(line, AnswerStore(database, clock, vault)) if line else RulesReader(),
            settings,
        ),
        composer=Composer(
            settings,
            store,
            steps,
            archive,
            resume,
            clock,
            teller,
            facts,
            board,
            briefings,
            register,
        ),
        briefings=briefings,
        facts=facts,
        documents=DocumentStore(database),
        register=register,
        model_client=line,
        remem=RememClient(settings.remem) if settings.remem.api_key else None,
        speech_kit=_make_speech_kit(settings),
    )
    try:
        app.work.check()
    except ConfigError:
        app.close()
        raise
    return app


def make_model_client(settings: Settings) -> ModelClient | None:
    """The line to the model of the settings; None where calls are read by rules."""
    choice = choose_model(settings)
    return ModelClient(choice) if choice else None


def _masked(reader: Reader, settings: Settings) -> Reader:
    """Nobody who reads a call reads the passcode."""
    passcode = settings.work.passcode
    return MaskedReader(reader, PasscodeMask(passcode.get_secret_value())) if passcode else reader
