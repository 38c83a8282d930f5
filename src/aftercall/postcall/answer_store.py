"""The SQL of cached model answers. An answer may hold secrets, so it is sealed with our key."""

from sqlalchemy import delete, select

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import answers
from aftercall.errors import SecretUnreadable
from aftercall.llm.model.completion import CachedAnswer, Usage
from aftercall.memory.vault import Vault


class AnswerStore:
    def __init__(self, database: Database, clock: Clock, vault: Vault) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault

    def find(self, key: str) -> CachedAnswer | None:
        """An answer that was sealed with another key is lost: the question is asked again."""
        with self._database.read() as connection:
            row = connection.execute(
                select(answers).where(answers.c.key == key)
            ).first()
        if row is None:
            return None
        usage = Usage(row.input_tokens, row.output_tokens, row.cost)
        try:
            return CachedAnswer(self._vault.open(row.answer), usage)
        except SecretUnreadable:
            with self._database.write() as connection:
                connection.execute(delete(answers).where(answers.c.key == key))
            return None

    def keep(self, key: str, call_id: str, kept: CachedAnswer) -> None:
        values = {
            "call_id": call_id,
            "answer": self._vault.seal(kept.text),
            "input_tokens": kept.usage.input_tokens,
            "output_tokens": kept.usage.output_tokens,
            "cost": kept.usage.cost,
            "kept_at": self._clock.now(),
        }
        with self._database.write() as connection:
            upsert(connection, answers, {"key": key}, values, changes={})
