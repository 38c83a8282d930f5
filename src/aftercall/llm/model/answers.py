"""Answers that were paid for, kept: a step that runs again, or a second step with the same question, pays nothing."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from aftercall.llm.model.exchange import Paid


@dataclass(frozen=True)
class Kept:
    """A checked answer as JSON, and what it cost when it was given."""

    text: str
    paid: Paid


class Answers(Protocol):
    def find(self, key: str) -> Kept | None: ...

    def keep(self, key: str, call_id: str, kept: Kept) -> None:
        """The first answer to a question stays."""
        ...


class NoAnswers:
    """For reading without storing."""

    def find(self, key: str) -> Kept | None:
        return None

    def keep(self, key: str, call_id: str, kept: Kept) -> None:
        return


def key_of(question: str, data: str, model: str) -> str:
    """The same question about the same words to the same model."""
    return sha256("\n".join((question, sha256(data.encode()).hexdigest(), model)).encode()).hexdigest()
