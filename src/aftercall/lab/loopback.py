"""An ASGI app on a loopback port of its own, for as long as somebody needs it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn

STOP_TIMEOUT_S = 10.0


@contextmanager
def serve_on_loopback(app: Any) -> Iterator[str]:
    """Its address while it runs, in a thread beside you."""
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
    thread = Thread(
        target=server.run, kwargs={"sockets": [listening]}, name="aftercall-lab", daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(STOP_TIMEOUT_S)
        listening.close()
