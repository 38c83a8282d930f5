"""The SQL of the audit log. Lines are added and never changed; none holds a number, a name or anything that was said."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from aftercall.clock import Clock
from aftercall.db.audit import Deed, write_audit
from aftercall.db.connect import Database
from aftercall.db.tables import audit


@dataclass(frozen=True)
class Line:
    at: datetime
    who: str
    deed: Deed
    subject: str


class AuditLog:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def entry(self, who: str, deed: Deed, subject: str) -> Callable[[Connection], None]:
        """Writes the line in the transaction it is given: with the deed, or not at all."""
        return lambda connection: write_audit(connection, self._clock.now(), who, deed, subject)

    def note(self, who: str, deed: Deed, subject: str) -> None:
        """Write down a deed of no transaction, once it is done. What is revealed is read first, and shown after this."""
        with self._database.write() as connection:
            write_audit(connection, self._clock.now(), who, deed, subject)

    def recent(self, limit: int = 50) -> list[Line]:
        query = select(audit).order_by(audit.c.n.desc()).limit(limit)
        with self._database.read() as connection:
            return [Line(row.at, row.who, row.deed, row.subject) for row in connection.execute(query)]
