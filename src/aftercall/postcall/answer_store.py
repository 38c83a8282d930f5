"""The SQL of kept answers.

A model's answer may hold what was told in confidence, so each stands sealed with this
installation's key.
"""

from sqlalchemy import delete, select, update

from aftercall.clock import Clock
from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import answers
from aftercall.errors import SecretUnreadable
from aftercall.llm.model.completion import CachedAnswer, Usage
from aftercall.memory.vault import Vault, is_sealed


class AnswerStore:
    def __init__(self, database: Database, clock: Clock, vault: Vault) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault

    def find(self, key: str) -> CachedAnswer | None:
        """What was sealed with another key is lost: the question is put again, and its answer
        takes the place of the lost one.
        """
        with self._database.read() as connection:
            row = connection.execute(select(answers).where(answers.c.key == key)).first()
        if row is None:
            return None
        if not is_sealed(row.answer):  # kept before answers were sealed
            with self._database.write() as connection:
                connection.execute(
                    update(answers)
                    .where(answers.c.key == key)
                    .values(answer=self._vault.seal(row.answer))
                )
            return CachedAnswer(row.answer, Usage(row.input_tokens, row.output_tokens, row.cost))
        try:
            return CachedAnswer(
                self._vault.open(row.answer), Usage(row.input_tokens, row.output_tokens, row.cost)
            )
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
