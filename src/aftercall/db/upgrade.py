"""Bringing a database to the form this version needs, and refusing one that is ahead of it."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from aftercall.db.connect import Database
from aftercall.errors import DatabaseNewer, DatabaseOutdated

_UPGRADE_LOCK = 4_772_035_511  # any fixed number: two processes that upgrade one Postgres wait for each other


def upgrade(database: Database) -> str:
    """Bring the database to our newest form, whole or not at all; returns its revision."""
    with database.write() as connection:
        if database.dialect == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})")
        _refuse_newer(connection)
        command.upgrade(_config(connection), "head")
    return newest_revision()


def prepare(database: Database) -> None:
    """Make the database ready for use at start.

    A new one is built, an embedded one is upgraded in passing. A shared Postgres is upgraded only by
    `aftercall db upgrade`: other machines may still run the old version.
    """
    with database.read() as connection:
        _refuse_newer(connection)
        current = current_revision(connection)
    if current == newest_revision():
        return
    if current is not None and database.dialect == "postgresql":
        raise DatabaseOutdated(f"the database is at revision {current}, this version needs {newest_revision()}: run `aftercall db upgrade`")
    upgrade(database)


def current_revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def newest_revision() -> str:
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def _refuse_newer(connection: Connection) -> None:
    current = current_revision(connection)
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if current is not None and current not in known:
        raise DatabaseNewer(
            f"the database is at revision {current}, newer than this version knows ({newest_revision()}): "
            "install the Aftercall that made it, or name another database"
        )


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
