"""Which home a database belongs to.

Its calls are sealed into that home's archive, and found nowhere else.

The home's id is a file in it, and moves with it. The first home that uses a database claims it.
"""

from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, inspect, select

from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import home_claim
from aftercall.disk import create_if_missing
from aftercall.errors import ConfigError, DatabaseOfAnotherHome
from aftercall.ids import new_id

HOME_ID_FILE = "home.id"


def claim_home(database: Database, home: Path, now: datetime) -> None:
    """Claim the database for this home. Raises DatabaseOfAnotherHome if another has."""
    file = home / HOME_ID_FILE
    try:
        create_if_missing(
            file, new_id() + "\n"
        )  # before the row: a claim without its file would lock everybody out
        own = file.read_text("ascii").strip()
    except OSError as error:
        raise ConfigError(
            f"{file}: cannot be used ({error.strerror}); set AFTERCALL_HOME"
        ) from None
    with database.read() as connection:
        claimed = _read_claim(connection)
    if claimed is None:
        with database.write() as connection:
            upsert(
                connection, home_claim, {"only": 1}, {"home_id": own, "claimed_at": now}, changes={}
            )
            claimed = _read_claim(connection)
    if claimed != own:
        raise _refusal(claimed, home)


def check_home(connection: Connection, home: Path) -> None:
    """Raises DatabaseOfAnotherHome; claims and writes nothing."""
    claimed = _read_claim(connection) if inspect(connection).has_table(home_claim.name) else None
    file = home / HOME_ID_FILE
    if claimed and (not file.exists() or file.read_text("ascii").strip() != claimed):
        raise _refusal(claimed, home)


def _read_claim(connection: Connection) -> str | None:
    return connection.execute(select(home_claim.c.home_id)).scalar()


def _refusal(claimed: str | None, home: Path) -> DatabaseOfAnotherHome:
    return DatabaseOfAnotherHome(
        f"the database belongs to another home, {claimed}, whose archive holds its calls: set "
        "AFTERCALL_HOME to that folder "
        "(shared, if it is another machine's), or name another database; if that home is "
        f"lost, write {claimed} into {home / HOME_ID_FILE}"
    )
