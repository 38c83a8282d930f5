"""The composition root: settings in, wired parts out. The only file that names concrete adapters."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from aftercall.clock import Clock, SystemClock
from aftercall.config import Settings
from aftercall.db.connect import Database
from aftercall.db.durability import check_durable_engine
from aftercall.db.revision import prepare
from aftercall.errors import AftercallError, ConfigError
from aftercall.journal.archive import Archive
from aftercall.journal.place import Folder
from aftercall.journal.presence import BEAT_S, Presence
from aftercall.journal.record import Journal
from aftercall.journal.recover import EVERY_S, recover
from aftercall.journal.resume import ResumeDesk
from aftercall.journal.store import CallStore, Pen
from aftercall.log import get_logger

log = get_logger("app")


@dataclass(frozen=True)
class App:
    """The parts of one running Aftercall."""

    settings: Settings
    clock: Clock
    database: Database
    store: CallStore
    archive: Archive
    presence: Presence
    journal: Journal
    resume: ResumeDesk

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
    store = CallStore(database)
    folder = Folder(settings.home / "archive")
    folder.sweep()
    archive = Archive(folder)
    presence = Presence(settings.home / "run", store, clock)
    journal = Journal(store, Pen(database), archive, presence, clock)
    return App(settings, clock, database, store, archive, presence, journal, ResumeDesk(store, settings.reconnect_window_s))


@asynccontextmanager
async def running(app: App) -> AsyncIterator[App]:
    """The app at work: recovered, beating, and at the end with every live call sealed."""
    await asyncio.to_thread(recover, app.journal)
    upkeep = [asyncio.create_task(_keep_beating(app)), asyncio.create_task(_keep_recovering(app))]
    try:
        yield app
    finally:
        for task in upkeep:
            task.cancel()
        await asyncio.gather(*upkeep, return_exceptions=True)
        for record in app.journal.live:
            with suppress(AftercallError):  # recovery will seal it at the next start
                await app.journal.seal(record, end_reason="server_stopped")
        await app.journal.close()


async def _keep_beating(app: App) -> None:
    while True:
        await app.clock.sleep(BEAT_S)
        await _attempt(app.presence.beat)


async def _keep_recovering(app: App) -> None:
    while True:
        await app.clock.sleep(EVERY_S)
        await _attempt(lambda: recover(app.journal))
        await _attempt(lambda: app.resume.sweep(app.clock.now()))


async def _attempt(job: Callable[[], object]) -> None:
    """Upkeep is tried again at its next turn; trouble is told, never fatal."""
    try:
        await asyncio.to_thread(job)
    except AftercallError as error:
        log.warning("upkeep failed", error=error.code)
