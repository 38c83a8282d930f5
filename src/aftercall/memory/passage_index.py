"""Facts as passages: what the ledger of facts tells, written where search finds it, in the
ledger's own transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sqlalchemy import Connection

from aftercall.memory import passage_store
from aftercall.model.facts import MemoryKey
from aftercall.model.passages import Passage
from aftercall.model.reading import Category, Visibility


@dataclass(frozen=True)
class FactPassage:
    """A fact as it was said once, with the words around it. Never a secret."""

    ref: str
    key: MemoryKey
    category: Category
    visibility: Visibility
    call_id: str
    first_turn: int
    at: datetime
    text: str
    around: str


class FactIndex(Protocol):
    def add(self, connection: Connection, passages: Sequence[FactPassage]) -> None: ...

    def retire(self, connection: Connection, refs: Sequence[str]) -> None:
        """These facts are believed no longer."""
        ...

    def remove(self, connection: Connection, refs: Sequence[str]) -> None:
        """These facts have become secrets: nothing of them may be found."""
        ...


class PassageIndex:
    """A fact is one passage however often it was said; each time adds the words around it."""

    def add(self, connection: Connection, passages: Sequence[FactPassage]) -> None:
        passage_store.record_mentions(connection, [_fact(told) for told in passages])

    def retire(self, connection: Connection, refs: Sequence[str]) -> None:
        passage_store.retire(connection, passage_store.fetch_fact_ends(connection, refs))

    def remove(self, connection: Connection, refs: Sequence[str]) -> None:
        passage_store.remove(connection, refs=refs)


def _fact(told: FactPassage) -> Passage:
    return Passage(
        kind="fact",
        agent_id=told.key.agent_id,
        caller=told.key.caller,
        call_id=told.call_id,
        text=told.text,
        at=told.at,
        seq=told.first_turn,
        ref=told.ref,
        category=told.category,
        visibility=told.visibility,
        around=told.around,
    )
