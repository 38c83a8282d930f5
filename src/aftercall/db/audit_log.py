"""The audit log: who revealed, changed or erased what."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import (
    Column,
    Connection,
    Table,
    Text,
    insert,
    select,
)

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.statements import InstantColumn, Number
from aftercall.db.tables import metadata
from aftercall.log import get_logger

Deed = Literal[
    "revealed",
    "listened",
    "approved",
    "rejected",
    "retried",
    "resent",
    "restored",
    "retired",
    "settled",
    "edited",
    "corrected",
    "undone",
    "exported",
    "backed up",
    "erased",
    "invited",
    "joined",
    "changed",
    "removed",
    "set",
    "tested",
    "scheduled",
]

log = get_logger("audit")

audit = Table(
    "audit",
    metadata,
    Column("n", Number, primary_key=True, autoincrement=True),
    Column("at", InstantColumn, nullable=False),
    Column("who", Text, nullable=False),
    Column("deed", Text, nullable=False),  # a Deed
    Column("subject", Text, nullable=False),  # an id; no number, name or speech
)


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
    """Who did what; rows are only added."""

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

    def list_recent(self, limit: int = 50, who: str = "") -> list[AuditEntry]:
        """Newest first; of one person, if `who` is given."""
        query = select(audit).order_by(audit.c.n.desc()).limit(limit)
        if who:
            query = query.where(audit.c.who == who)
        rows = self._database.fetch(query)
        return [AuditEntry(row.at, row.who, row.deed, row.subject) for row in rows]

    def list_people(self) -> list[str]:
        """Everybody who is in the log."""
        query = select(audit.c.who).distinct().order_by(audit.c.who)
        return [str(row.who) for row in self._database.fetch(query)]
