"""A pooler in transaction mode before a Postgres server: all clients share one connection, which
each has while its transaction lasts.
"""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ENCRYPTION_REQUESTS = (80877103, 80877104)
READY, IDLE = b"Z", b"I"
SIMPLE_QUERY, SYNC, TERMINATE = b"Q", b"S", b"X"
ACCEPTED = b"R" + struct.pack("!ii", 8, 0)
KEY = b"K" + struct.pack("!iii", 12, 1, 1)
IS_READY = b"Z" + struct.pack("!i", 5) + IDLE


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise OSError("closed")
        data += more
    return data


def _read_message(connection: socket.socket) -> tuple[bytes, bytes]:
    """Its kind, and all of it."""
    head = _read_exactly(connection, 5)
    (size,) = struct.unpack("!i", head[1:])
    return head[:1], head + _read_exactly(connection, size - 4)


def _read_startup(client: socket.socket) -> bytes:
    while True:
        head = _read_exactly(client, 8)
        size, code = struct.unpack("!ii", head)
        if code not in ENCRYPTION_REQUESTS:
            return head + _read_exactly(client, size - 8)
        client.sendall(b"N")


class TransactionPooler:
    def __init__(self, target: Path) -> None:
        self._target = target
        self._server: socket.socket | None = None
        self._greeting = b""
        self._turn = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]

    def accept_clients(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                serving = threading.Thread(target=self._serve, args=(client,))
                serving.daemon = True
                serving.start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        if self._server is not None:
            self._server.close()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            startup = _read_startup(client)
            with self._turn:
                server = self._server = self._server or self._connect(startup)
            client.sendall(ACCEPTED + self._greeting + KEY + IS_READY)
            while True:
                kind, message = _read_message(client)
                if kind == TERMINATE:
                    return
                with self._turn:
                    self._run_transaction(client, server, kind, message)

    def _connect(self, startup: bytes) -> socket.socket:
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self._target))
        server.sendall(startup)
        kind = b""
        while kind != READY:
            kind, message = _read_message(server)
            if kind == b"S":  # a parameter, which clients want to know
                self._greeting += message
        return server

    def _run_transaction(
        self, client: socket.socket, server: socket.socket, kind: bytes, message: bytes
    ) -> None:
        while True:
            server.sendall(message)
            if kind in (SIMPLE_QUERY, SYNC):
                answer, state = b"", b""
                while answer != READY:
                    answer, told = _read_message(server)
                    client.sendall(told)
                    state = told[-1:]
                if state == IDLE:
                    return
            kind, message = _read_message(client)


@contextmanager
def pooling(target: Path) -> Iterator[int]:
    """The port of a pooler before this server."""
    pooler = TransactionPooler(target)
    accepting = threading.Thread(target=pooler.accept_clients)
    accepting.start()
    try:
        yield pooler.port
    finally:
        pooler.close()
        accepting.join()
