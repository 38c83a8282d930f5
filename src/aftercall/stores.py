"""What is stored in one home: the database, the archive, and what reads them.

Each part is imported and made when it is first used, so that a command that lists calls loads
neither the memory nor the telephone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from sqlalchemy import select

from aftercall.clock import Clock, SystemClock
from aftercall.db.connect import Database
from aftercall.db.tables import archive_chain, calls, facts, followups, pins
from aftercall.db.upgrade import (
    HOME_FOLDER,
    Purpose,
    claim_archive,
    note_moved_archive,
    open_database,
    read_archive_claim,
)
from aftercall.errors import ConfigError, RefusedInput
from aftercall.settings import Settings

if TYPE_CHECKING:
    from aftercall.briefing.composer import Composer
    from aftercall.db.audit_log import AuditLog
    from aftercall.db.corrections import CorrectionStore
    from aftercall.db.event_log import EventLog
    from aftercall.encryption import Vault
    from aftercall.journal.archive import Archive, ArchiveFolder
    from aftercall.journal.archive_bucket import ArchiveBucket
    from aftercall.journal.handover import Presence
    from aftercall.journal.recording_files import RecordingStore
    from aftercall.journal.store import CallStore
    from aftercall.memory.embedding import Embedder
    from aftercall.memory.fact_store import FactStore
    from aftercall.memory.pins.board import PinBoard
    from aftercall.memory.search import MemorySearch
    from aftercall.postcall.store import StepStore
    from aftercall.who.register import CallerRegister
    from aftercall.work.events import EventView
    from aftercall.work.health import HealthStore
    from aftercall.work.run_store import RunStore
    from aftercall.work.store import DeliveryStore, FollowUpStore
    from aftercall.workspace.pages import PageTable

MAX_NAMED_IDS = 3
LAST = "last"
Kind = Literal["call", "fact", "follow-up", "correction", "pin"]
_TABLES = {"call": calls, "fact": facts, "follow-up": followups, "pin": pins}


def find_id(database: Database, kind: Kind, given: str) -> str:
    """The whole id, for the beginning of one that no other has, or for `last`.

    What fits none is returned as it is: the store says that there is no such thing.
    """
    if kind == "correction":
        from aftercall.db.corrections import corrections

        column = corrections.c.id
    else:
        column = _TABLES[kind].c.id
    newest = (calls.c.started_at.desc(),) if kind == "call" else ()
    query = select(column).order_by(*newest, column.desc()).limit(MAX_NAMED_IDS)
    if given != LAST:
        query = query.where(column.startswith(given, autoescape=True))
    found: list[str] = list(database.fetch_column(query))
    if given == LAST and found:
        return found[0]
    if given in found or not found:
        return given
    if len(found) > 1:
        names = ", ".join(found)
        raise RefusedInput(
            "ID", f"begins more than one id ({names} …); write more of it"
        )
    return found[0]


@contextmanager
def open_stores(
    settings: Settings, *, claims_home: bool = True, purpose: Purpose = "use"
) -> Iterator["Stores"]:
    """Without `claims_home` the database may belong to another home: for rows alone."""
    clock = SystemClock()
    database = open_database(settings, clock, claims_home=claims_home)
    stores = Stores(settings, clock, database, purpose)
    pages = mount_workspace(settings, database, clock)
    try:
        yield stores
    finally:
        if "presence" in vars(stores):
            stores.presence.close()
        if pages is not None:
            pages.unmount()
        database.close()


def mount_workspace(
    settings: Settings, database: Database, clock: Clock
) -> "PageTable | None":
    """On Postgres, where several machines work, pages are rows; on SQLite they are files."""
    if database.dialect != "postgresql":
        return None
    from aftercall.workspace.pages import PageTable

    return PageTable.mount(settings, database, clock)


@dataclass(frozen=True)
class Stores:
    """The database and what reads it, without server, engine or phone.

    Commands that only read open this instead of the whole application.
    """

    settings: Settings
    clock: Clock
    database: Database
    purpose: Purpose = "use"

    def find_id(self, kind: Kind, given: str) -> str:
        return find_id(self.database, kind, given)

    @cached_property
    def store(self) -> "CallStore":
        from aftercall.journal.store import CallStore

        return CallStore(self.database)

    @cached_property
    def steps(self) -> "StepStore":
        from aftercall.postcall.store import StepStore

        return StepStore(self.database)

    @cached_property
    def recordings(self) -> "RecordingStore":
        from aftercall.journal.recording_files import RecordingStore

        return RecordingStore(self.database)

    @cached_property
    def archive(self) -> "Archive":
        from aftercall.encryption import open_cipher
        from aftercall.journal.archive import Archive, ArchiveFolder

        folder = ArchiveFolder(
            self.settings.home / "archive", open_cipher(self.settings)
        )
        folder.check_key()
        folder.remove_stale_files()
        now = self.clock.now()
        database_id = claim_archive(self.database, self.settings, now, self.purpose)
        return Archive(self._open_bucket(folder, database_id) or folder)

    def move_archive(self) -> None:
        """Makes `archive.url` the place of the calls of this database.

        What is in another bucket must have been copied: the copy is proven first.
        """
        place, url = self.archive.place, self.settings.archive.url.rstrip("/")
        with self.database.read() as connection:
            before = (read_archive_claim(connection) or {}).get("archive")
        if before == url:
            return
        if before != HOME_FOLDER:
            from aftercall.journal.verify import verify_archive

            if faults := verify_archive(place, self.store).faults:
                raise ConfigError(
                    f"{url} does not hold the calls of {before}: copy all objects there first, "
                    f"then run this again ({faults[0].name}: {faults[0].reason})"
                )
        note_moved_archive(self.database, url, self.clock.now())

    def _open_bucket(
        self, folder: "ArchiveFolder", database_id: str
    ) -> "ArchiveBucket | None":
        """None if calls are sealed into the folder.

        With a bucket, the folder keeps the files that have not been moved there.
        """
        from aftercall.journal.recording_files import open_bucket

        bucket = open_bucket(self.settings.archive)
        if bucket is None:
            self._refuse_bucket_chain()
            return None
        from aftercall.journal.archive_bucket import ArchiveBucket

        prepare = partial(
            bucket.prepare,
            folder.cipher,
            database_id,
            takes_over=self.purpose == "rebuild",
        )
        place = ArchiveBucket(bucket, self.database, self.clock, folder, prepare)
        place.open()
        return place

    def _refuse_bucket_chain(self) -> None:
        """A second chain in the folder would belong to the same calls."""
        if self.database.fetch_first(select(archive_chain.c.n).limit(1)):
            raise ConfigError(
                "calls of this database are in object storage; set archive.url to it"
            )

    @cached_property
    def presence(self) -> "Presence":
        from aftercall.journal.handover import Presence, ProcessStore

        run = self.settings.home / "run"
        return Presence(run, ProcessStore(self.database), self.clock)

    @cached_property
    def vault(self) -> "Vault":
        from aftercall.encryption import open_vault

        return open_vault(self.settings)

    @cached_property
    def facts(self) -> "FactStore":
        from aftercall.memory.fact_store import FactStore

        is_listed = self.settings.memory.list_others_in_group
        return FactStore(self.database, self.vault, is_listed, self.clock)

    @cached_property
    def pins(self) -> "PinBoard":
        from aftercall.memory.pins.board import PinBoard

        return PinBoard(self.settings, self.database, self.facts, self.clock)

    @cached_property
    def register(self) -> "CallerRegister":
        from aftercall.who.register import CallerRegister
        from aftercall.who.trust import PasscodeTryLedger

        tries = PasscodeTryLedger(self.settings, self.database, self.clock)
        return CallerRegister(self.settings, self.store, tries)

    @cached_property
    def composer(self) -> "Composer":
        from aftercall.briefing.composer import Composer
        from aftercall.briefing.render import FollowUpNews
        from aftercall.db.briefing_cache import BriefingCache
        from aftercall.journal.recorder import ResumeStates

        return Composer(
            self.settings,
            self.store,
            self.steps,
            self.archive,
            ResumeStates(self.database, self.settings.reconnect_window_s),
            self.clock,
            FollowUpNews(self.settings, self.followups),
            self.facts,
            self.pins,
            BriefingCache(self.database),
            self.register,
        )

    @cached_property
    def events(self) -> "EventLog":
        from aftercall.db.event_log import EventLog

        return EventLog(self.database)

    @cached_property
    def event_view(self) -> "EventView":
        from aftercall.work.events import EventView

        return EventView(self.store, self.followups, self.facts)

    @cached_property
    def search(self) -> "MemorySearch":
        from aftercall.memory.search import MemorySearch

        return MemorySearch(self.database, self.clock, embedder=self.embedder)

    @cached_property
    def embedder(self) -> "Embedder | None":
        if not self.settings.memory.embedder:
            return None
        from aftercall.memory.embedding import load_embedder

        return load_embedder(self.settings.memory.embedder, self.settings.openai)

    @cached_property
    def followups(self) -> "FollowUpStore":
        from aftercall.work.store import FollowUpStore

        return FollowUpStore(self.database)

    @cached_property
    def deliveries(self) -> "DeliveryStore":
        from aftercall.work.store import DeliveryStore

        return DeliveryStore(self.database, self.presence)

    @cached_property
    def runs(self) -> "RunStore":
        from aftercall.work.run_store import RunStore

        return RunStore(self.database)

    @cached_property
    def corrections(self) -> "CorrectionStore":
        from aftercall.db.corrections import CorrectionStore

        return CorrectionStore(self.database)

    @cached_property
    def health(self) -> "HealthStore":
        from aftercall.work.health import HealthStore

        return HealthStore(self.database)

    @cached_property
    def audit(self) -> "AuditLog":
        from aftercall.db.audit_log import AuditLog

        return AuditLog(self.database, self.clock)
