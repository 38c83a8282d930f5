"""What an emulated model says, and how it fails: answers by question, faults in a queue, and
what it was asked.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Fault = Literal[
    "rate_limit",
    "quota",
    "overloaded",
    "server_error",
    "slow",
    "reset",
    "cut_off",
    "refusal",
    "fenced",
    "wrong_shape",
    "prose",
    "empty",
    "no_schema",
]
PROSE_ANSWER = (
    "I would be glad to help you with this call! It seems to me that the caller was quite friendly."
)


@dataclass(frozen=True)
class ScriptedQuestion:
    """One request that got past the door, as every dialect of model server understands it."""

    model: str
    system: str
    messages: tuple[tuple[str, str], ...]
    schema: dict[str, Any] | None
    body: dict[str, Any]

    @property
    def data(self) -> str:
        return next((text for role, text in self.messages if role == "user"), "")

    @property
    def is_repair(self) -> bool:
        return len(self.messages) > 1


@dataclass
class ModelScript:
    """Shared by the servers of one lab.

    `always` fails every request; `faults` fail one each, in order.
    """

    answer: Callable[[ScriptedQuestion], str]
    faults: deque[Fault] = field(default_factory=deque)
    permanent_fault: Fault | None = None
    slow_s: float = 30.0
    retry_after_s: int = 1
    questions: list[ScriptedQuestion] = field(default_factory=list)

    def next_fault(self) -> Fault | None:
        return self.faults.popleft() if self.faults else self.permanent_fault

    def make_text(self, asked: ScriptedQuestion, fault: Fault | None) -> str:
        """The model's words, spoilt if that was ordered."""
        match fault:
            case "prose":
                return PROSE_ANSWER
            case "empty" | "refusal":
                return ""
            case "wrong_shape":
                return '{"something": ["else"]}'
        said = self.answer(asked)
        if fault == "fenced":
            return f"Here you are:\n```json\n{said}\n```\nAnything else?"
        return said[: len(said) // 2] if fault == "cut_off" else said
