"""A web address that writes down what is posted to it, and answers as it is told."""

from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from server_thread import serving_in_thread


@dataclass(frozen=True)
class Posted:
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """`answers` are the next status codes; 0 hangs up after having written down.

    Afterwards it is 204.
    """

    posted: list[Posted] = field(default_factory=list)
    answers: deque[int] = field(default_factory=deque)

    def __enter__(self) -> Self:
        receiver = self

        class Line(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                receiver.posted.append(
                    Posted(
                        {name.lower(): value for name, value in self.headers.items()},
                        body,
                    )
                )
                self.close_connection = True
                if status := receiver.answers.popleft() if receiver.answers else 204:
                    self.send_response(status)
                    self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Line)
        server.daemon_threads = True
        self._serving = serving_in_thread(server)
        self.port = self._serving.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._serving.__exit__(kind, error, trace)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"
