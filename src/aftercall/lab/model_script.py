"""What the emulated model servers share: a script of answers, faults in a queue, request checks."""

import asyncio
import hmac
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from aftercall.lab.rest import BrokenResponse, Refusal

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
    "I would be glad to help you with this call! "
    "It seems to me that the caller was quite friendly."
)


@dataclass(frozen=True)
class ScriptedQuestion:
    """One valid request, the same for every provider's form."""

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

    @property
    def token_count(self) -> int:
        return sum(len(text) for _, text in self.messages) // 4


@dataclass
class ModelScript:
    """Answers the questions of one or more servers.

    `permanent_fault` spoils every request; `faults` spoil one each, in order.
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
        """The model's words, spoilt by the fault."""
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


MakeRefusal = Callable[[int, str, str], Refusal]
"""Status, kind of error, message → a refusal in the provider's form."""


@dataclass(frozen=True)
class ModelApi:
    """One provider's API: its key, its models, and the form of its refusals."""

    script: ModelScript
    key: str
    models: tuple[str, ...]
    refuse: MakeRefusal
    faults: Mapping[str, tuple[int, str]]
    """Fault → status and kind of error."""

    def is_key(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.key.encode())

    def refuse_invalid(self, message: str) -> Refusal:
        return self.refuse(400, "invalid_request_error", message)

    async def read_json(self, request: Request, *required: str) -> dict[str, Any]:
        try:
            body = json.loads(await request.body())
        except ValueError:
            raise self.refuse_invalid("The body is not valid JSON") from None
        if not isinstance(body, dict):
            raise self.refuse_invalid("The body is not an object")
        for name in required:
            if name not in body:
                raise self.refuse_invalid(f"{name}: Field required")
        return body

    async def answer(
        self,
        asked: ScriptedQuestion,
        respond: Callable[[ScriptedQuestion, str, Fault | None], Response],
    ) -> Response:
        """The scripted answer, or what the next fault makes of it."""
        self.script.questions.append(asked)
        fault = self.script.next_fault()
        if fault is not None and fault in self.faults:
            refusal = self.refuse(*self.faults[fault], "as ordered")
            if fault == "rate_limit":
                refusal.answer.headers["retry-after"] = str(self.script.retry_after_s)
            raise refusal
        if fault == "slow":
            await asyncio.sleep(self.script.slow_s)
        if fault == "reset":
            return BrokenResponse()
        return respond(asked, self.script.make_text(asked, fault), fault)
