"""Making a database ready for use at start."""

from aftercall.db.connect import Database
from aftercall.db.revision import NEWEST, current_revision, refuse_newer
from aftercall.errors import DatabaseOutdated


def prepare(database: Database) -> None:
    """A new database is built, an embedded one is upgraded in passing.

    A shared Postgres is upgraded only by `aftercall db upgrade`: other machines may still run the old version.
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
