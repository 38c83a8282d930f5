"""Who may log in to the pages; the audit log: who revealed, changed or erased what; and the chain
of an archive in object storage.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    LargeBinary,
    Table,
    Text,
    insert,
    select,
)

from aftercall.clock import Clock
from aftercall.db.columns import InstantColumn, Number
from aftercall.db.connect import Database
from aftercall.db.tables import metadata
from aftercall.log import get_logger

browser_sessions = Table(
    "browser_sessions",
    metadata,
    Column("key", Text, primary_key=True),  # hash of a cookie, or of a link's code
    Column("kind", Text, nullable=False),  # session, link, invitation
    Column("credentials", Text, nullable=False),  # hash of token and password
    Column("ends_at", InstantColumn, nullable=False),
    Column("user_id", Text),  # none: the owner
)

users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("login", Text, nullable=False),  # the name in lower case
    Column("role", Text, nullable=False),  # viewer, operator, admin
    Column("password_hash", Text),  # none until the invitation is used
    Column("invited_at", InstantColumn, nullable=False),
)

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


# The chain of an archive in object storage, line by line; the file of a line is here until it
# has been uploaded, so that any process can upload it.
archive_chain = Table(
    "archive_chain",
    metadata,
    Column("n", Number, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("line", Text, nullable=False),
    Column("is_erased", Boolean, nullable=False),  # a tombstone
    Column("stored", LargeBinary),  # the file while it waits
    Column("is_uploaded", Boolean, nullable=False),
    Column("etag", Text),  # of the object when its hash was checked
    Column("is_published", Boolean, nullable=False),  # the line is in the bucket
    Column("sealed_at", InstantColumn, nullable=False),
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
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [AuditEntry(row.at, row.who, row.deed, row.subject) for row in rows]

    def list_people(self) -> list[str]:
        """Everybody who is in the log."""
        query = select(audit.c.who).distinct().order_by(audit.c.who)
        with self._database.read() as connection:
            return [str(row.who) for row in connection.execute(query)]
