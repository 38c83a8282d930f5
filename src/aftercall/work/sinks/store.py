"""The SQL of deliveries: each effect of each sink has a row before it is tried, and its end after."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select, update

from aftercall.db.connect import Database
from aftercall.db.tables import deliveries
from aftercall.db.upsert import upsert
from aftercall.errors import NotFound
from aftercall.model.followups import Delivery, Receipt, Work


class DeliveryStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, key: str) -> Delivery | None:
        with self._database.read() as connection:
            row = connection.execute(select(deliveries).where(deliveries.c.key == key)).first()
        return None if row is None else _to_delivery(row)

    def get(self, key: str) -> Delivery:
        delivery = self.find(key)
        if delivery is None:
            raise NotFound(f"there is no delivery {key!r}; `aftercall followups show ID` names those of a follow-up")
        return delivery

    def begin(self, work: Work, sink: str, followup_id: str | None, now: datetime) -> None:
        """The intent, on disk before anything happens."""
        with self._database.write() as connection:
            _begin(connection, work, sink, followup_id, now)

    def begin_all(self, works: Mapping[str, Work], sink: str, now: datetime) -> None:
        """The same for the work of several follow-ups, by their ids, in one transaction."""
        with self._database.write() as connection:
            for followup_id, work in works.items():
                _begin(connection, work, sink, followup_id, now)

    def finish(self, key: str, receipt: Receipt, now: datetime, *, state: str = "done") -> None:
        self._set(key, {"state": state, "reason": "", "link": receipt.link, "response": receipt.response, "changed_at": now})

    def fail(self, key: str, reason: str, now: datetime, *, is_final: bool) -> None:
        """It was not done and is known not to have been; or, if final, it is laid aside for a person."""
        self._set(key, {"state": "dead" if is_final else "waiting", "reason": reason, "changed_at": now})

    def _set(self, key: str, values: dict[str, Any]) -> None:
        with self._database.write() as connection:
            connection.execute(update(deliveries).where(deliveries.c.key == key).values(values))

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


def _begin(connection: Connection, work: Work, sink: str, followup_id: str | None, now: datetime) -> None:
    origin = {
        "followup_id": followup_id,
        "conversation": work.conversation,
        "sink": sink,
        "purpose": work.purpose,
        "created_at": now,
    }
    sending = {"state": "sending", "reason": "", "changed_at": now}
    again = sending | {"attempts": deliveries.c.attempts + 1}
    upsert(connection, deliveries, {"key": work.key}, origin | sending | {"attempts": 1}, changes=again)


def _to_delivery(row: Row[Any]) -> Delivery:
    return Delivery(**{name: row._mapping[name] for name in Delivery.__dataclass_fields__})
