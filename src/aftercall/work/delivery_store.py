"""The SQL of deliveries: each effect of each sink has a row before it is tried, and its end after.

A delivery is claimed by one process in one statement. Others may claim it when that process has
let go of it or is dead.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, or_, select, update

from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import deliveries
from aftercall.errors import NotFound
from aftercall.journal.presence import Presence
from aftercall.model.followups import Delivery, SinkReceipt, SinkWork
from aftercall.work.sinks.router import Sink


class DeliveryStore:
    def __init__(self, database: Database, presence: Presence) -> None:
        self._database = database
        self._presence = presence

    def find(self, key: str) -> Delivery | None:
        with self._database.read() as connection:
            row = connection.execute(select(deliveries).where(deliveries.c.key == key)).first()
        return None if row is None else _to_delivery(row)

    def get(self, key: str) -> Delivery:
        delivery = self.find(key)
        if delivery is None:
            raise NotFound(
                f"there is no delivery {key!r}; `aftercall followups show ID` names those of "
                "a follow-up"
            )
        return delivery

    def claim(self, work: SinkWork, sink: Sink, followup_id: str | None, now: datetime) -> bool:
        """The intent, on disk before anything happens; False if it is done, or not ours to do.

        What a sink that cannot repeat has begun is not begun again.
        """
        return bool(self.claim_all([(followup_id, work)], sink, now))

    def claim_all(
        self, works: Sequence[tuple[str | None, SinkWork]], sink: Sink, now: datetime
    ) -> list[SinkWork]:
        """The same for several works in one transaction; returns those that were claimed."""
        sending = {
            "state": "sending",
            "reason": "",
            "changed_at": now,
            "owner": self._presence.process,
        }
        over = ("done",) if sink.can_repeat else ("done", "sending")
        free = [
            and_(deliveries.c.state.not_in(over), self._is_free(work.key, now)) for _, work in works
        ]
        claimed = []
        with self._database.write() as connection:
            for (followup_id, work), is_free in zip(works, free, strict=True):
                origin = {
                    "followup_id": followup_id,
                    "conversation": work.conversation,
                    "sink": sink.name,
                    "purpose": work.purpose,
                }
                if upsert(
                    connection,
                    deliveries,
                    {"key": work.key},
                    origin | sending | {"created_at": now, "attempts": 1},
                    changes=sending | {"attempts": deliveries.c.attempts + 1},
                    only_where=is_free,
                ):
                    claimed.append(work)
        return claimed

    def is_claimed_elsewhere(self, key: str, now: datetime) -> bool:
        """Whether another process that is alive has claimed it."""
        owner = self._owner_of(key)
        return owner not in (None, self._presence.process) and self._presence.is_alive(
            str(owner), now
        )

    def _is_free(self, key: str, now: datetime) -> ColumnElement[bool]:
        """Nobody's, this process's, or that of the dead process found here; one that claims it
        meanwhile keeps it.
        """
        owner = self._owner_of(key)
        gone = [owner] if owner and not self._presence.is_alive(owner, now) else []
        return or_(
            deliveries.c.owner.is_(None), deliveries.c.owner.in_([self._presence.process, *gone])
        )

    def _owner_of(self, key: str) -> str | None:
        with self._database.read() as connection:
            owner: str | None = connection.execute(
                select(deliveries.c.owner).where(deliveries.c.key == key)
            ).scalar()
        return owner

    def finish(self, key: str, receipt: SinkReceipt, now: datetime, *, state: str = "done") -> None:
        ended = {
            "state": state,
            "reason": "",
            "link": receipt.link,
            "response": receipt.response,
            "changed_at": now,
            "owner": None,
        }
        with self._database.write() as connection:
            connection.execute(update(deliveries).where(deliveries.c.key == key).values(ended))

    def fail(self, key: str, reason: str, now: datetime, *, is_final: bool) -> bool:
        """It was not done and is known not to have been; or, if final, it is laid aside for a
        person.

        False if another process has claimed it.
        """
        failed = {
            "state": "dead" if is_final else "waiting",
            "reason": reason,
            "changed_at": now,
            "owner": None,
        }
        ours = and_(deliveries.c.key == key, self._is_free(key, now))
        with self._database.write() as connection:
            return connection.execute(update(deliveries).where(ours).values(failed)).rowcount == 1

    def of_followup(self, followup_id: str) -> list[Delivery]:
        return self._select(deliveries.c.followup_id == followup_id)

    def of_conversation(self, conversation: str) -> list[Delivery]:
        return self._select(deliveries.c.conversation == conversation)

    def dead(self) -> list[Delivery]:
        return self._select(deliveries.c.state == "dead")

    def _select(self, wanted: Any) -> list[Delivery]:
        query = select(deliveries).where(wanted).order_by(deliveries.c.created_at, deliveries.c.key)
        with self._database.read() as connection:
            return [_to_delivery(row) for row in connection.execute(query)]


def _to_delivery(row: Row[Any]) -> Delivery:
    return Delivery(**{name: row._mapping[name] for name in Delivery.__dataclass_fields__})
