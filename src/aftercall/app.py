"""The app: settings in, connected parts out."""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial

import httpx2

from aftercall.bridge.hosted_calls import HostedCalls
from aftercall.briefing.composer import Composer
from aftercall.clock import Clock, SystemClock
from aftercall.compose import (
    Phone,
    build_journal,
    check_engine,
    load_speech_kit,
    make_model_client,
    make_reader,
)
from aftercall.corrections import Corrections
from aftercall.db.audit_log import AuditLog
from aftercall.db.briefing_cache import BriefingCache
from aftercall.db.connect import Database
from aftercall.db.corrections import CorrectionStore
from aftercall.db.upgrade import Purpose, open_database
from aftercall.errors import AftercallError, ConfigError
from aftercall.journal.archive import Archive
from aftercall.journal.handover import Presence
from aftercall.journal.journal import DATABASE_TIMEOUT_S, Journal
from aftercall.journal.recorder import ResumeStates
from aftercall.journal.recording_files import RecordingStore, open_bucket
from aftercall.journal.store import CallStore
from aftercall.llm.long_calls import ReadingProcess
from aftercall.llm.model.client import ModelClient
from aftercall.llm.reader import Reader
from aftercall.log import get_logger
from aftercall.memory.documents import DocumentStore, RememClient
from aftercall.memory.embedding import Embedder, load_embedder
from aftercall.memory.extraction import Extractor
from aftercall.memory.fact_store import FactStore
from aftercall.memory.judge import CallJudge, load_judge
from aftercall.memory.pins.board import PinBoard
from aftercall.memory.search import FactRecall, MemorySearch, find_similar_facts
from aftercall.overload import LoadLimits
from aftercall.postcall.recordings import RecordingFetcher
from aftercall.postcall.runner import StepRunner
from aftercall.postcall.steps import StepContext
from aftercall.postcall.store import StepStore
from aftercall.privacy.erase import Eraser
from aftercall.privacy.export import Exporter
from aftercall.privacy.ledger_copies import LedgerCopies
from aftercall.privacy.rebuild import Rebuilder
from aftercall.privacy.retention import Retention
from aftercall.reconcile import Reconciler
from aftercall.settings import Settings
from aftercall.speech.kit import SpeechKit
from aftercall.stores import Stores, mount_workspace
from aftercall.upkeep import Upkeep, format_failure, list_reported_failures
from aftercall.who.register import CallerRegister
from aftercall.work.context import WorkContext, make_sinks
from aftercall.work.events import EventView, Webhooks, make_webhooks
from aftercall.work.health import HealthReport, HealthStore, report
from aftercall.work.run_store import RunStore
from aftercall.work.store import DeliveryStore, FollowUpStore
from aftercall.workspace.pages import PageTable

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
    reading_process: ReadingProcess
    briefings: BriefingCache
    facts: FactStore
    documents: DocumentStore
    register: CallerRegister
    pins: PinBoard
    composer: Composer
    model_client: ModelClient | None = None
    remem: RememClient | None = None
    transport: httpx2.AsyncBaseTransport | None = None
    """How carriers are reached; tests put the lab here."""
    speech_kit: SpeechKit | None = None
    """The receptionist's own speech; None if it has none or another engine speaks."""
    pages: PageTable | None = None
    """The pages of the workspace; None where they are files only."""

    @cached_property
    def phone(self) -> Phone:
        return Phone(
            self.settings,
            self.clock,
            self.journal,
            self.resume,
            self.composer,
            self.register,
            self.recall,
            self.model_client,
            self.speech_kit,
            self.transport,
        )

    @cached_property
    def step_runner(self) -> StepRunner:
        context = StepContext(
            settings=self.settings,
            reader=self.reader,
            clock=self.clock,
            database=self.database,
            calls=self.store,
            steps=self.steps,
            register=self.register,
            documents=self.documents,
            extractor=Extractor(self.settings, self.facts, self.clock),
            pins=self.pins,
            remem=self.remem,
            embedder=self.embedder,
            judging=self.judging,
        )
        return StepRunner(context, self.archive)

    @cached_property
    def recording_fetcher(self) -> RecordingFetcher:
        return RecordingFetcher(self.settings, self.recordings, self.clock)

    @cached_property
    def work(self) -> WorkContext:
        return WorkContext(
            self.settings,
            self.reader,
            self.clock,
            self.archive,
            RunStore(self.database),
            FollowUpStore(self.database),
            DeliveryStore(self.database, self.presence),
            make_sinks(self.settings, self.clock)
            | {hook.name: hook for hook in self.webhooks.hooks},
            CorrectionStore(self.database),
            self.webhooks,
        )

    @cached_property
    def webhooks(self) -> Webhooks:
        view = EventView(self.store, FollowUpStore(self.database), self.facts)
        return make_webhooks(self.settings.events, self.database, view, self.clock)

    @cached_property
    def corrections(self) -> Corrections:
        return Corrections(
            self.settings,
            self.database,
            self.clock,
            self.facts,
            self.work,
            self.step_runner,
        )

    @cached_property
    def search(self) -> MemorySearch:
        return MemorySearch(self.database, self.clock, embedder=self.embedder)

    @cached_property
    def recall(self) -> FactRecall:
        return FactRecall(self.settings, self.search, self.facts)

    @cached_property
    def embedder(self) -> Embedder | None:
        return load_embedder(self.settings.memory.embedder, self.settings.openai)

    @cached_property
    def judging(self) -> CallJudge | None:
        judge = load_judge(self.settings)
        find = partial(find_similar_facts, self.search, self.facts, self.settings)
        return CallJudge(judge, self.facts, find) if judge else None

    @cached_property
    def audit(self) -> AuditLog:
        return AuditLog(self.database, self.clock)

    @cached_property
    def eraser(self) -> Eraser:
        copies = self.ledger_copies
        return Eraser(
            self.settings,
            self.database,
            self.archive,
            self.audit,
            self.clock,
            has_remote=self.remem is not None,
            remove_copies=copies.remove if copies else None,
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
        return Rebuilder(self.database, self.step_runner, self.work, self.ledger_copies)

    @cached_property
    def ledger_copies(self) -> LedgerCopies | None:
        """None without object storage."""
        bucket = open_bucket(self.settings.archive)
        cipher = self.archive.place.cipher
        if bucket is None:
            return None
        return LedgerCopies(bucket, cipher, self.database, self.clock)

    @cached_property
    def hosted_calls(self) -> HostedCalls:
        return HostedCalls(
            self.phone.remote_calls, self.journal, self.settings, self.recordings
        )

    @cached_property
    def reconciler(self) -> Reconciler:
        return Reconciler(
            self.settings,
            self.database,
            self.clock,
            self.hosted_calls.take_report,
            self.transport,
        )

    @cached_property
    def health(self) -> HealthStore:
        return HealthStore(self.database)

    @cached_property
    def upkeep(self) -> Upkeep:
        return Upkeep(self.clock)

    @cached_property
    def load(self) -> LoadLimits:
        return LoadLimits(
            self.settings.limits,
            self.clock,
            lambda: {
                (one.call.source, one.call.sid) for one in self.journal.live_recorders
            },
            self.steps.count_due,
        )

    def report_health(self, *, only_open: bool = False) -> HealthReport:
        return report(
            self.health,
            self.clock.now(),
            self.settings.reconnect_window_s,
            self._list_upkeep_failures(),
            only_open=only_open,
        )

    def _list_upkeep_failures(self) -> list[str]:
        """The failures of this process and those that other processes have reported."""
        outage = self.journal.outage.reason
        lines = (
            [f"live calls cannot be written to the database: {outage}"]
            if outage
            else []
        )
        own = (*self.upkeep.failures, *self.load.refusals)
        lines += [format_failure(failure) for failure in own]
        return lines + list_reported_failures(self.presence, self.clock.now())

    def warm_up(self) -> None:
        """Load what takes seconds before the first call comes."""
        if self.model_client is not None:
            self.model_client.open()
        if self.speech_kit is not None:
            try:
                self.speech_kit.open()
            except AftercallError as error:  # the first call tries again
                log.warning(
                    "the receptionist's own speech does not start",
                    error=error.code,
                    reason=str(error),
                )

    def close(self) -> None:
        for part in (
            vars(self).get("judging"),  # only if it was loaded
            self.speech_kit,
            self.model_client,
            self.remem,
            self.reading_process,
        ):
            if part is not None:
                part.close()
        with suppress(AftercallError):
            self.presence.close()
        if self.pages is not None:
            self.pages.unmount()
        self.database.close()


def build(
    settings: Settings,
    clock: Clock | None = None,
    *,
    database_timeout_s: float = DATABASE_TIMEOUT_S,
    purpose: Purpose = "use",
) -> App:
    """Connect the parts and prepare the database. An AftercallError says what to do.

    A live call waits `database_timeout_s` for the database before it goes on without.
    """
    clock = clock or SystemClock()
    check_engine(settings)
    database = open_database(settings, clock, claims_home=True)
    stores = Stores(settings, clock, database, purpose)
    try:
        archive = stores.archive
        store = stores.store
        facts = stores.facts
    except AftercallError:
        database.close()
        raise
    presence = stores.presence
    model_client = make_model_client(settings)
    process = ReadingProcess()
    app = App(
        settings=settings,
        clock=clock,
        database=database,
        store=store,
        steps=stores.steps,
        recordings=stores.recordings,
        archive=archive,
        presence=presence,
        journal=build_journal(
            settings, store, database, archive, presence, clock, database_timeout_s
        ),
        resume=stores.composer.resume,
        reader=make_reader(
            settings, model_client, database, clock, stores.vault, process
        ),
        reading_process=process,
        briefings=stores.composer.cache,
        facts=facts,
        documents=DocumentStore(database),
        register=stores.register,
        pins=stores.pins,
        composer=stores.composer,
        model_client=model_client,
        remem=RememClient(settings.remem) if settings.remem.api_key else None,
        speech_kit=load_speech_kit(settings),
        pages=mount_workspace(settings, database, clock),
    )
    try:
        app.work.check()
    except ConfigError:
        app.close()
        raise
    return app
