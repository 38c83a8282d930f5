"""Preparing a database: the schema of this version, and the home it belongs to."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, inspect, select, text

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import home_claim, upkeep
from aftercall.disk import close_to_others, create_once
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

KNOWN_REVISIONS = ("0001", "0002", "0003")
NEWEST_REVISION = KNOWN_REVISIONS[-1]
HOME_ID_FILE = "home.id"
UNFINISHED_RESTORE = "restore"  # a row of `upkeep` in a database without its home
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
    refuse_newer(current)
    if current == NEWEST_REVISION:
        return
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
        refuse_newer(current_revision(connection))
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


def finish_restore(database: Database) -> None:
    """From here on a restore does not write over this database."""
    marks = upkeep.c.name == UNFINISHED_RESTORE
    with database.read() as connection:
        if connection.execute(select(upkeep.c.name).where(marks)).first() is None:
            return
    with database.write() as connection:
        connection.execute(delete(upkeep).where(marks))


def check_home(connection: Connection, home: Path) -> None:
    """Raises DatabaseOfAnotherHome; writes nothing."""
    claimed = (
        _read_claim(connection)
        if inspect(connection).has_table(home_claim.name)
        else None
    )
    file = home / HOME_ID_FILE
    if claimed and (not file.exists() or file.read_text("ascii").strip() != claimed):
        raise _refusal(claimed, home)


def _read_claim(connection: Connection) -> str | None:
    return connection.execute(select(home_claim.c.home_id)).scalar()


def _refusal(claimed: str | None, home: Path) -> DatabaseOfAnotherHome:
    return DatabaseOfAnotherHome(
        f"the database belongs to another home, {claimed}, whose archive holds its calls: set "
        "AFTERCALL_HOME to that folder (shared, if it is another machine's), or name another "
        f"database; if that home is lost, write {claimed} into {home / HOME_ID_FILE}"
    )
