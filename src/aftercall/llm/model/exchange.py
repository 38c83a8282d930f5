"""What is put to a model and what it says, in our own words: no provider's types."""

from dataclasses import dataclass, field
from typing import Any, Literal

Finish = Literal["whole", "cut_off", "declined"]


@dataclass(frozen=True)
class Put:
    """One request: what to do, the data to do it with, and the form of the answer."""

    instructions: str
    data: str
    schema: dict[str, Any]
    name: str
    repair: tuple[str, str] | None = None
    """The answer that did not fit, and what was wrong with it."""


@dataclass(frozen=True)
class Said:
    text: str
    finish: Finish = "whole"
    paid: "Paid" = field(default_factory=lambda: Paid())


@dataclass(frozen=True)
class Paid:
    """What an answer cost; the price is None where nobody knows it."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: "Paid") -> "Paid":
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Paid(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens, sum(costs) if costs else None)
