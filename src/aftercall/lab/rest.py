"""What the emulated REST services share: refusals, broken answers, and a loopback server."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

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
