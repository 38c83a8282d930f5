"""A server on a free loopback port, in a thread, for clients that open sockets of their own."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from aftercall.lab.server import Lab, make_lab, make_server

TOKEN, ACCOUNT, KEY = "lab-token", "AC" + "1" * 32, "KEYlab"


@contextmanager
def listening() -> Iterator[tuple[socket.socket, str]]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)  # early callers wait
    try:
        yield listener, f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


@contextmanager
def lab_box(*, in_real_time: bool = False) -> Iterator[Lab]:
    with listening() as (listener, address):
        lab = make_lab(address, TOKEN, ACCOUNT, KEY, in_real_time=in_real_time)
        for _ in serve(make_server(lab), listener, address):
            yield lab


def serve(app: object, listener: socket.socket, address: str) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))  # type: ignore[arg-type]
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join()
