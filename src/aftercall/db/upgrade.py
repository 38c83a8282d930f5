"""Preparing a database: the schema of this version, and the home it belongs to."""

import sqlite3
import sys
from datetime import datetime
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, delete, inspect, select, text

from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import home_claim, upkeep
from aftercall.disk import create_once
from aftercall.errors import (
    ConfigError,
    DatabaseNewer,
    DatabaseOfAnotherHome,
    DatabaseOutdated,
)
from aftercall.ids import new_id

KNOWN_REVISIONS = ("0001",)
NEWEST_REVISION = KNOWN_REVISIONS[-1]
MIN_SQLITE_VERSION = (3, 42)
HOME_ID_FILE = "home.id"
UNFINISHED_RESTORE = "restore"  # a row of `upkeep` in a database without its home
_UPGRADE_LOCK = (
    4_772_035_511  # any fixed number: processes that upgrade one Postgres queue up
)


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
    with database.write() as connection:
        if database.dialect == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})")
        refuse_newer(current_revision(connection))
        command.upgrade(make_alembic_config(connection), NEWEST_REVISION)
    return NEWEST_REVISION


def make_alembic_config(connection: Connection | None = None) -> Config:
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


def check_durable_engine(
    database_url: str,
    python: tuple[int, ...] = tuple(sys.version_info[:3]),
    sqlite: tuple[int, ...] = sqlite3.sqlite_version_info,
) -> None:
    """From Python 3.12 on, DBOS uses `unixepoch('subsec')`, which is new in SQLite 3.42."""
    if (
        database_url.startswith("sqlite")
        and python >= (3, 12)
        and sqlite < MIN_SQLITE_VERSION
    ):
        have = ".".join(map(str, sqlite))
        raise ConfigError(
            f"Python {python[0]}.{python[1]} here brings SQLite {have}, and the durable "
            "engine needs 3.42 or newer with it: "
            "use Python 3.11, a Python linked to a newer SQLite, or a Postgres database"
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
