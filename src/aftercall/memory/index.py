"""What finding needs of facts, handed over in the transaction that writes them. Memory keeps the truth, an index finds it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sqlalchemy import Connection

from aftercall.model.knowledge import MemoryKey
from aftercall.model.reading import Category, Visibility


@dataclass(frozen=True)
class Passage:
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


class Index(Protocol):
    def add(self, connection: Connection, passages: Sequence[Passage]) -> None: ...

    def retire(self, connection: Connection, refs: Sequence[str]) -> None:
        """These facts are believed no longer."""
        ...

    def remove(self, connection: Connection, refs: Sequence[str]) -> None:
        """These facts have become secrets: nothing of them may be found."""
        ...
