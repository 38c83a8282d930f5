"""What both emulated model servers share: bodies read, sockets broken, answers that take too
long.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from aftercall.lab.models.script import Fault, ModelScript


class ModelRefusal(Exception):
    """The server's door stays shut: a status, its kind, and why."""

    def __init__(
        self, status: int, kind: str, message: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.headers = headers or {}


class BrokenResponse(Response):
    """Begins an answer and breaks off in the middle of its body."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"id": "msg', "more_body": False})


async def read_json(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body())
    except ValueError:
        raise ModelRefusal(400, "invalid_request_error", "The body is not valid JSON") from None
    if not isinstance(body, dict):
        raise ModelRefusal(400, "invalid_request_error", "The body is not an object")
    return body


def require_fields(body: dict[str, Any], *names: str) -> None:
    for name in names:
        if name not in body:
            raise ModelRefusal(400, "invalid_request_error", f"{name}: Field required")


def refuse_unknown(body: dict[str, Any], known: frozenset[str]) -> None:
    for name in body:
        if name not in known:
            raise ModelRefusal(
                400, "invalid_request_error", f"{name}: Extra inputs are not permitted"
            )


async def inject_fault(
    script: ModelScript,
    fault: Fault | None,
    failures: Mapping[str, tuple[int, str]],
    refuse: Callable[[ModelRefusal], Response],
) -> Response | None:
    """What was ordered instead of an answer, if anything was; a slow answer is still one."""
    if fault is not None and fault in failures:
        status, kind = failures[fault]
        headers = {"retry-after": str(script.retry_after_s)} if fault == "rate_limit" else {}
        return refuse(ModelRefusal(status, kind, "as ordered", headers))
    if fault == "slow":
        await asyncio.sleep(script.slow_s)
    return BrokenResponse() if fault == "reset" else None
