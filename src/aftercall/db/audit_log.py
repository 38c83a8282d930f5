"""The audit log: who revealed, changed or erased what."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, insert, select

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.tables import audit
from aftercall.log import get_logger

Deed = Literal[
    "revealed",
    "approved",
    "rejected",
    "retried",
    "resent",
    "restored",
    "settled",
    "edited",
    "corrected",
    "undone",
    "exported",
    "backed up",
    "erased",
]

log = get_logger("audit")


def write_audit(
    connection: Connection, at: datetime, who: str, deed: Deed, subject: str
) -> None:
    connection.execute(
        insert(audit), {"at": at, "who": who, "deed": deed, "subject": subject}
    )
    log.info("audit", deed=deed, subject=subject)


@dataclass(frozen=True)
class AuditEntry:
    at: datetime
    who: str
    deed: Deed
    subject: str


class AuditLog:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def make_writer(
        self, who: str, deed: Deed, subject: str
    ) -> Callable[[Connection], None]:
        """Returns a function that writes the entry in the transaction of the deed."""
        return lambda connection: write_audit(
            connection, self._clock.now(), who, deed, subject
        )

    def record(self, who: str, deed: Deed, subject: str) -> None:
        """Writes the entry of a deed that has no transaction, such as revealing a secret."""
        with self._database.write() as connection:
            write_audit(connection, self._clock.now(), who, deed, subject)

    def list_recent(self, limit: int = 50) -> list[AuditEntry]:
        query = select(audit).order_by(audit.c.n.desc()).limit(limit)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [AuditEntry(row.at, row.who, row.deed, row.subject) for row in rows]
