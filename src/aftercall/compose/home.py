"""The home folder, its database and the journal of calls."""

import stat
from datetime import timedelta
from pathlib import Path

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.upgrade import check_durable_engine, claim_home, prepare_database
from aftercall.encryption import open_cipher
from aftercall.errors import AftercallError, ConfigError
from aftercall.journal.archive import Archive, ArchiveFolder
from aftercall.journal.inserter import JournalInserter
from aftercall.journal.journal import Journal
from aftercall.journal.presence import Presence
from aftercall.journal.spill import SpillFolder
from aftercall.journal.store import CallStore
from aftercall.log import get_logger
from aftercall.settings import Settings

OTHER_USERS = 0o077

log = get_logger("home")


def open_database(settings: Settings, clock: Clock, *, claims_home: bool) -> Database:
    """Make the home and bring its database up to date."""
    check_durable_engine(settings.database_url)
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"home: {settings.home} cannot be used as a folder ({error.strerror}); set "
            "AFTERCALL_HOME"
        ) from None
    _close_to_others(settings.home)
    database = Database(settings.database_url)
    try:
        prepare_database(database)
        if claims_home:
            claim_home(database, settings.home, clock.now())
    except AftercallError:
        database.close()
        raise
    return database


def _close_to_others(home: Path) -> None:
    """Whoever may write to the home may replace its token and its key."""
    mode = stat.S_IMODE(home.stat().st_mode)
    if not mode & OTHER_USERS:
        return
    try:
        home.chmod(mode & ~OTHER_USERS)
    except OSError as error:
        raise ConfigError(
            f"home: other users can open {home} ({error.strerror}); run `chmod 700` as its owner"
        ) from None
    log.warning("other users could open the home; its mode is 700 now")


def open_archive(settings: Settings) -> Archive:
    folder = ArchiveFolder(settings.home / "archive", open_cipher(settings))
    folder.check_key()
    folder.remove_stale_files()
    return Archive(folder)


def build_journal(
    settings: Settings,
    store: CallStore,
    database: Database,
    archive: Archive,
    presence: Presence,
    clock: Clock,
    database_timeout_s: float,
) -> Journal:
    return Journal(
        store,
        JournalInserter(database),
        archive,
        presence,
        clock,
        SpillFolder(settings.home / "spill"),
        timedelta(seconds=settings.reconnect_window_s),
        database_timeout_s,
    )
