"""Which form the database has, and which one this version needs. Changing it is upgrade.py's work."""

from sqlalchemy import Connection, inspect, text

from aftercall.errors import DatabaseNewer

KNOWN = (*(f"{number:04}" for number in range(1, 14)), "0018")
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
