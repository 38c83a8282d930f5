"""A mail server that keeps what it is given, or breaks off where it is told to."""

import socketserver
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self

from server_thread import serving_in_thread


@dataclass
class Postman:
    fault: Literal["", "drop_after_data", "refuse", "busy"] = ""
    letters: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        postman = self

        class Line(socketserver.StreamRequestHandler):
            def say(self, text: str) -> None:
                self.wfile.write(f"{text}\r\n".encode())

            def handle(self) -> None:
                self.say("220 post.example")
                while line := self.rfile.readline().decode().strip():
                    command = line.split(":")[0].split()[0].upper()
                    if command == "RCPT" and postman.fault in ("refuse", "busy"):
                        self.say("550 no" if postman.fault == "refuse" else "451 later")
                    elif command == "DATA":
                        self.say("354 go on")
                        postman.letters.append(self.read_letter())
                        if postman.fault == "drop_after_data":
                            return
                        self.say("250 kept")
                    elif command == "QUIT":
                        self.say("221 bye")
                        return
                    else:
                        self.say("250 ok")

            def read_letter(self) -> str:
                lines = []
                while (line := self.rfile.readline().decode()) != ".\r\n":
                    lines.append(line)
                return "".join(lines)

        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Line)
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
