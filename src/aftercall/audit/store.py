"""The SQL of the audit log. Lines are added and never changed; none holds a number, a name or anything that was said."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import insert, select

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.tables import audit
from aftercall.log import get_logger

Deed = Literal["revealed", "approved", "rejected", "retried", "resent", "restored", "edited", "exported", "erased"]

log = get_logger("audit")


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

    def note(self, who: str, deed: Deed, subject: str) -> None:
        """Before the deed is shown or done: what cannot be written down is not done."""
        with self._database.write() as connection:
            connection.execute(insert(audit), {"at": self._clock.now(), "who": who, "deed": deed, "subject": subject})
        log.warning("audit", deed=deed, subject=subject)

    def recent(self, limit: int = 50) -> list[Line]:
        query = select(audit).order_by(audit.c.n.desc()).limit(limit)
        with self._database.read() as connection:
            return [Line(row.at, row.who, row.deed, row.subject) for row in connection.execute(query)]
