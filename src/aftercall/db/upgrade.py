"""Bringing a database to the form this version needs, whole or not at all."""

import sqlite3
import sys
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, inspect, text

from aftercall.db.connect import Database
from aftercall.errors import ConfigError, DatabaseNewer, DatabaseOutdated

_UPGRADE_LOCK = (
    4_772_035_511  # any fixed number: two processes that upgrade one Postgres wait for each other
)


def upgrade(database: Database) -> str:
    """Run the migrations that are missing, in one transaction; returns the revision."""
    with database.write() as connection:
        if database.dialect == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})")
        refuse_newer(current_revision(connection))
        command.upgrade(make_alembic_config(connection), NEWEST_REVISION)
    return NEWEST_REVISION


def make_alembic_config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option(
        "script_location", str(Path(__file__).parent / "migrations").replace("%", "%%")
    )
    config.attributes["connection"] = connection
    return config


def prepare_database(database: Database) -> None:
    """A new database is built, an embedded one is upgraded in passing.

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


MIN_SQLITE_VERSION = (3, 42)


def check_durable_engine(
    database_url: str,
    python: tuple[int, ...] = tuple(sys.version_info[:3]),
    sqlite: tuple[int, ...] = sqlite3.sqlite_version_info,
) -> None:
    """From Python 3.12 on, the durable engine asks SQLite for `unixepoch('subsec')`, which came
    with 3.42.
    """
    if database_url.startswith("sqlite") and python >= (3, 12) and sqlite < MIN_SQLITE_VERSION:
        have = ".".join(map(str, sqlite))
        raise ConfigError(
            f"Python {python[0]}.{python[1]} here brings SQLite {have}, and the durable "
            "engine needs 3.42 or newer with it: "
            "use Python 3.11, a Python linked to a newer SQLite, or a Postgres database"
        )


KNOWN_REVISIONS = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
    "0018",
)
NEWEST_REVISION = KNOWN_REVISIONS[-1]


def current_revision(connection: Connection) -> str | None:
    """None for a database that is still empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def refuse_newer(current: str | None) -> None:
    if current is not None and current not in KNOWN_REVISIONS:
        raise DatabaseNewer(
            f"the database is at revision {current}, newer than this version knows "
            f"({NEWEST_REVISION}): "
            "install the Aftercall that made it, or name another database"
        )
