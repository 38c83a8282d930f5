"""What the emulated services share: refusals, broken answers, a loopback server, and of the model
servers a script of answers, faults in a queue and checks of requests.
"""

import asyncio
import hmac
import json
import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Literal

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from aftercall.model.json_fields import Json

STOP_TIMEOUT_S = 10.0


class Refusal(Exception):
    """Raised while a request is read; `answer` is what the client gets."""

    def __init__(self, answer: Response) -> None:
        super().__init__(f"refused with status {answer.status_code}")
        self.answer = answer


async def answer_refusal(_: Request, refusal: Exception) -> Response:
    if not isinstance(refusal, Refusal):
        raise refusal
    return refusal.answer


REFUSALS: dict[Any, Any] = {Refusal: answer_refusal}
"""The exception handlers of an app that serves emulated routes."""


class BrokenResponse(Response):
    """Starts an answer and closes the connection in the middle of its body."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send(
            {"type": "http.response.body", "body": b'{"id": "msg', "more_body": False}
        )


@contextmanager
def serve_on_loopback(app: Any) -> Iterator[str]:
    """Serves an ASGI app in a thread, on a free port; yields its address."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(256)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="websockets-sansio",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    sockets = {"sockets": [listening]}
    thread = Thread(
        target=server.run, kwargs=sockets, name="aftercall-lab", daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(STOP_TIMEOUT_S)
        listening.close()


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
    schema: Json | None
    body: Json

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

    async def read_json(self, request: Request, *required: str) -> Json:
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
