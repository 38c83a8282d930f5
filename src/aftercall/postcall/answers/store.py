"""The SQL of kept answers."""

from sqlalchemy import select

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.tables import answers
from aftercall.db.upsert import upsert
from aftercall.llm.model.answers import Kept
from aftercall.llm.model.exchange import Paid


class AnswerStore:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def find(self, key: str) -> Kept | None:
        with self._database.read() as connection:
            row = connection.execute(select(answers).where(answers.c.key == key)).first()
        return Kept(row.answer, Paid(row.input_tokens, row.output_tokens, row.cost)) if row else None

    def keep(self, key: str, call_id: str, kept: Kept) -> None:
        values = {
            "call_id": call_id,
            "answer": kept.text,
            "input_tokens": kept.paid.input_tokens,
            "output_tokens": kept.paid.output_tokens,
            "cost": kept.paid.cost,
            "kept_at": self._clock.now(),
        }
        with self._database.write() as connection:
            upsert(connection, answers, {"key": key}, values, changes={})
