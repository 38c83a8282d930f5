"""Preparing a database: the schema of this version, and the home it belongs to."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sqlalchemy import Connection, delete, inspect, select, text

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.statements import lock_name, upsert
from aftercall.db.tables import archive_chain, calls, home_claim, processes, upkeep
from aftercall.disk import close_to_others, create_once
from aftercall.encryption import KEY_FILE, make_fingerprint
from aftercall.errors import (
    AftercallError,
    ConfigError,
    DatabaseNewer,
    DatabaseOfAnotherHome,
    DatabaseOutdated,
    DatabaseUnreachable,
)
from aftercall.ids import new_id
from aftercall.log import get_logger
from aftercall.settings import Settings

if TYPE_CHECKING:  # loaded when there is something to upgrade
    from alembic.config import Config

log = get_logger("home")

# A revision's name says from which one on a version survives it.
KNOWN_REVISIONS = ("0001", "0002", "0003_survived_by_0002")
NEWEST_REVISION = KNOWN_REVISIONS[-1]
SURVIVED_BY = "_survived_by_"
HOME_ID_FILE = "home.id"
UNFINISHED_RESTORE = "restore"  # a row of `upkeep` in a database without its home
ARCHIVE_CLAIM = "archive"  # a row of `upkeep`: the archive and the key of this database
HOME_FOLDER = "the folder `archive` of the home"
HEARTBEAT_TIMEOUT = timedelta(seconds=60)
Purpose = Literal["use", "move", "rebuild"]
"""What a process wants of the archive: `archive move` changes where it is, and `rebuild` makes
the database of an archive whose own one is lost."""
_UPGRADE_LOCK = (
    4_772_035_511  # any fixed number: processes that upgrade one Postgres queue up
)


def open_database(settings: Settings, clock: Clock, *, claims_home: bool) -> Database:
    """Make the home and bring its database up to date."""
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"home: {settings.home} cannot be used as a folder ({error.strerror}); set "
            "AFTERCALL_HOME"
        ) from None
    _close_home(settings.home)
    database = Database(settings.database_url, settings.database.connections)
    try:
        database.refuse_transaction_pool()
        prepare_database(database)
        if claims_home:
            claim_home(database, settings.home, clock.now())
    except AftercallError as error:
        database.close()
        if isinstance(error, DatabaseUnreachable):
            where = database.engine.url.render_as_string(hide_password=True)
            raise DatabaseUnreachable(f"{error}; tried {where}") from error
        raise
    return database


def _close_home(home: Path) -> None:
    """Whoever may write to the home may replace its token and its key."""
    try:
        was_open = close_to_others(home.resolve())
    except OSError as error:
        raise ConfigError(
            f"home: other users can open {home} ({error.strerror}); run `chmod 700` as its owner"
        ) from None
    if was_open:
        log.warning("other users could open the home; its mode is 700 now")


def prepare_database(database: Database) -> None:
    """Builds a new database and upgrades an embedded one.

    A shared Postgres is upgraded only by `aftercall db upgrade`: other machines may still run
    the old version.
    """
    with database.read() as connection:
        current = current_revision(connection)
    if can_use(current):
        return
    refuse_newer(current)
    if current is not None and database.dialect == "postgresql":
        raise DatabaseOutdated(
            f"the database is at revision {current}, this version needs {NEWEST_REVISION}: "
            "run `aftercall db upgrade`"
        )
    upgrade(database)


def upgrade(database: Database) -> str:
    """Runs the missing migrations in one transaction; returns the revision."""
    from alembic import command

    with database.write() as connection:
        if database.dialect == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})")
        current = current_revision(connection)
        if current is not None and can_use(current):
            return current
        refuse_newer(current)
        command.upgrade(make_alembic_config(connection), NEWEST_REVISION)
    return NEWEST_REVISION


def make_alembic_config(connection: Connection | None = None) -> "Config":
    from alembic.config import Config

    config = Config()
    migrations = Path(__file__).parent / "migrations"
    config.set_main_option("script_location", str(migrations).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def current_revision(connection: Connection) -> str | None:
    """None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def can_use(revision: str | None) -> bool:
    """Whether this version works on a database of this revision: its own, or a newer one that
    it survives, so that machines are upgraded one after the other.
    """
    if revision is None or revision == NEWEST_REVISION:
        return revision is not None
    if revision in KNOWN_REVISIONS:
        return False
    _, _, oldest = revision.partition(SURVIVED_BY)
    return oldest in {known.partition(SURVIVED_BY)[0] for known in KNOWN_REVISIONS}


def refuse_newer(current: str | None) -> None:
    if current is not None and current not in KNOWN_REVISIONS:
        raise DatabaseNewer(
            f"the database is at revision {current}, newer than this version knows "
            f"({NEWEST_REVISION}): install the Aftercall that made it, or name another database"
        )


def claim_home(database: Database, home: Path, now: datetime) -> None:
    """Binds the database to this home, whose archive gets its calls; the first home wins.

    The id of a home is a file in it and moves with it. Raises DatabaseOfAnotherHome.
    """
    file = home / HOME_ID_FILE
    try:
        # before the row: a claim without its file would lock every home out
        create_once(file, f"{new_id()}\n".encode())
        own = file.read_text("ascii").strip()
    except OSError as error:
        raise ConfigError(
            f"{file}: cannot be used ({error.strerror}); set AFTERCALL_HOME"
        ) from None
    with database.read() as connection:
        claimed = _read_claim(connection)
    if claimed is None:
        claim = {"home_id": own, "claimed_at": now}
        with database.write() as connection:
            upsert(connection, home_claim, {"only": 1}, claim, changes={})
            claimed = _read_claim(connection)
    if claimed != own:
        raise _refusal(claimed, home)
    finish_restore(database)


def claim_archive(
    database: Database, settings: Settings, now: datetime, purpose: Purpose
) -> str:
    """Binds the database to its archive and its key; returns the id of the database.

    Raises ConfigError if it has others. Until a call is sealed a process that is alone may
    change them, so that a slip of the first start is put right by the next one.
    """
    own = {
        "archive": settings.archive.url.rstrip("/") or HOME_FOLDER,
        "key": make_fingerprint(settings),
    }
    with database.read() as connection:
        known = read_archive_claim(connection)
    if known and known | own == known:
        return known["database"]
    with database.write() as connection:
        lock_name(connection, ARCHIVE_CLAIM)
        known = read_archive_claim(connection)
        if known and not _is_unused(connection, now):
            if purpose == "move":  # it changes the place once the files are there
                own["archive"] = known["archive"]
            if purpose == "rebuild":  # it reads again what the old key has closed
                known["key"] = own["key"]
            _refuse_other_archive(known, own)
        claim = {"database": known["database"] if known else new_id(), **own}
        upsert(connection, upkeep, {"name": ARCHIVE_CLAIM}, {"at": now, "found": claim})
    return claim["database"]


def note_moved_archive(database: Database, url: str, now: datetime) -> None:
    """From here on the calls of this database are there."""
    with database.write() as connection:
        lock_name(connection, ARCHIVE_CLAIM)
        claim = read_archive_claim(connection) or {}
        moved = {"at": now, "found": claim | {"archive": url}}
        upsert(connection, upkeep, {"name": ARCHIVE_CLAIM}, moved)


def read_archive_claim(connection: Connection) -> dict[str, str] | None:
    """The archive, the key's fingerprint and the id of the database; None before its first use."""
    query = select(upkeep.c.found).where(upkeep.c.name == ARCHIVE_CLAIM)
    return connection.execute(query).scalar()


def _is_unused(connection: Connection, now: datetime) -> bool:
    """Whether no call is sealed, and no process runs that would seal one elsewhere."""
    sealed = select(calls.c.id).where(calls.c.state == "sealed").limit(1)
    chained = select(archive_chain.c.n).limit(1)
    is_alive = processes.c.beat_at > now - HEARTBEAT_TIMEOUT
    alive = select(processes.c.id).where(is_alive).limit(1)
    return not any(
        connection.execute(query).first() for query in (sealed, chained, alive)
    )


def _refuse_other_archive(known: dict[str, str], own: dict[str, str]) -> None:
    place = known["archive"]
    wanted = own["archive"]
    if place != wanted:
        here = (
            f"archive.url: the calls of this database are in {place}, not in {wanted}"
        )
        if place == HOME_FOLDER:
            advice = "unset AFTERCALL_ARCHIVE_URL"
        else:
            advice = f"set AFTERCALL_ARCHIVE_URL to {place}"
        if wanted != HOME_FOLDER:
            advice += ", or run `aftercall archive move` to keep them there from now on"
        raise ConfigError(f"{here}; {advice}")
    if known.get("key", own["key"]) != own["key"]:
        raise ConfigError(
            "the secret key is not the one of this database: set AFTERCALL_SECRET_KEY as on the "
            f"other machines, or put {KEY_FILE} of before back into the home. If it is lost, run "
            "`aftercall rebuild`: the database takes the new key, and secrets are read again "
            "from the calls that are not encrypted"
        )


def finish_restore(database: Database) -> None:
    """From here on a restore does not write over this database."""
    marks = upkeep.c.name == UNFINISHED_RESTORE
    if database.fetch_first(select(upkeep.c.name).where(marks)) is None:
        return
    database.execute(delete(upkeep).where(marks))


def check_home(connection: Connection, settings: Settings) -> None:
    """Raises DatabaseOfAnotherHome, or ConfigError for another archive or key; writes nothing."""
    home = settings.home
    if not inspect(connection).has_table(home_claim.name):
        return
    claimed = _read_claim(connection)
    file = home / HOME_ID_FILE
    if claimed and (not file.exists() or file.read_text("ascii").strip() != claimed):
        raise _refusal(claimed, home)
    if known := read_archive_claim(connection):
        own = {"archive": settings.archive.url.rstrip("/") or HOME_FOLDER}
        own["key"] = known["key"]
        if settings.secret_key is not None or (home / KEY_FILE).exists():
            own["key"] = make_fingerprint(settings)
        _refuse_other_archive(known, own)


def _read_claim(connection: Connection) -> str | None:
    return connection.execute(select(home_claim.c.home_id)).scalar()


def _refusal(claimed: str | None, home: Path) -> DatabaseOfAnotherHome:
    return DatabaseOfAnotherHome(
        f"the database belongs to another home, {claimed}, whose archive holds its calls: copy "
        f"{HOME_ID_FILE} of that home into {home} if this is another machine with the same "
        "bucket, set AFTERCALL_HOME to that folder, or name another database; if that home is "
        f"lost, write {claimed} into {home / HOME_ID_FILE}"
    )
