"""Which form the database has, and which one this version needs. Changing it is upgrade.py's work."""

from sqlalchemy import Connection, inspect, text

from aftercall.errors import DatabaseNewer

KNOWN = (
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
