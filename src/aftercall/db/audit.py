"""One line of the audit log, written in the transaction of the deed that it tells of."""

from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, insert

from aftercall.db.tables import audit
from aftercall.log import get_logger

Deed = Literal["revealed", "approved", "rejected", "retried", "resent", "restored", "edited", "exported", "erased"]

log = get_logger("audit")


def write_audit(connection: Connection, at: datetime, who: str, deed: Deed, subject: str) -> None:
    connection.execute(insert(audit), {"at": at, "who": who, "deed": deed, "subject": subject})
    log.info("audit", deed=deed, subject=subject)
