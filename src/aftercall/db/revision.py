"""Which form the database has, and which one this version needs. Changing it is upgrade.py's work."""

from sqlalchemy import Connection, inspect, text

from aftercall.db.connect import Database
from aftercall.errors import DatabaseNewer, DatabaseOutdated

KNOWN = ("0001",)
NEWEST = KNOWN[-1]


def current_revision(connection: Connection) -> str | None:
    """None for a database that is still empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def refuse_newer(current: str | None) -> None:
    if current is not None and current not in KNOWN:
        raise DatabaseNewer(
            f"the database is at revision {current}, newer than this version knows ({NEWEST}): "
            "install the Aftercall that made it, or name another database"
        )


def prepare(database: Database) -> None:
    """Make the database ready for use at start.

    A new one is built, an embedded one is upgraded in passing. A shared Postgres is upgraded only by
    `aftercall db upgrade`: other machines may still run the old version.
    """
    with database.read() as connection:
        current = current_revision(connection)
    refuse_newer(current)
    if current == NEWEST:
        return
    if current is not None and database.dialect == "postgresql":
        raise DatabaseOutdated(f"the database is at revision {current}, this version needs {NEWEST}: run `aftercall db upgrade`")
    from aftercall.db.upgrade import upgrade  # noqa: PLC0415 - Alembic costs every command 0.15 s, and few upgrade

    upgrade(database)
