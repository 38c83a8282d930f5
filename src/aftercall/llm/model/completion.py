"""What is put to a model and what it says, in our own words: no provider's types."""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, Protocol

Finish = Literal["whole", "cut_off", "declined"]


@dataclass(frozen=True)
class Prompt:
    """One request: what to do, the data to do it with, and the form of the answer."""

    instructions: str
    data: str
    schema: dict[str, Any]
    name: str
    repair: tuple[str, str] | None = None
    """The answer that did not fit, and what was wrong with it."""


@dataclass(frozen=True)
class Completion:
    text: str
    finish: Finish = "whole"
    usage: "Usage" = field(default_factory=lambda: Usage())


@dataclass(frozen=True)
class Usage:
    """What an answer cost; the price is None where nobody knows it."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: "Usage") -> "Usage":
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            sum(costs) if costs else None,
        )


@dataclass(frozen=True)
class CachedAnswer:
    """A checked answer as JSON, and what it cost when it was given."""

    text: str
    usage: Usage


class AnswerCache(Protocol):
    def find(self, key: str) -> CachedAnswer | None: ...

    def keep(self, key: str, call_id: str, kept: CachedAnswer) -> None:
        """The first answer to a question stays."""
        ...


class NullAnswerCache:
    """For reading without storing."""

    def find(self, key: str) -> CachedAnswer | None:
        return None

    def keep(self, key: str, call_id: str, kept: CachedAnswer) -> None:
        return


def make_answer_key(question: str, data: str, model: str) -> str:
    """The same question about the same words to the same model."""
    return sha256(
        "\n".join((question, sha256(data.encode()).hexdigest(), model)).encode()
    ).hexdigest()
