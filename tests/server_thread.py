"""Runs a server of the standard library in a thread, on a free port of this machine."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def serving_in_thread(server: socketserver.TCPServer) -> Iterator[int]:
    """Gives the port."""
    loop = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    loop.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        loop.join()
