"""What the examples use so that they need no key: their own server, and a model of two rules."""

import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def find_server() -> Iterator[None]:
    """A server while the example runs, unless AFTERCALL_URL names one. `Client()` finds it."""
    if "AFTERCALL_URL" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="aftercall-example-") as folder:
        os.environ["AFTERCALL_API_TOKEN"] = secrets.token_urlsafe(24)
        os.environ["AFTERCALL_SPOOL"] = f"{folder}/spool"
        server = subprocess.Popen(
            [sys.executable, "-m", "aftercall", "serve", "--port", "0"],
            env=os.environ | {"AFTERCALL_HOME": f"{folder}/home", "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            line = server.stdout.readline() if server.stdout else ""
            address = re.search(r"http://\S+\d", line)
            if address is None:
                raise SystemExit(f"the server did not start: {line}")
            os.environ["AFTERCALL_URL"] = address[0]
            wait_until_ready(address[0])
            yield
        finally:
            server.terminate()
            server.wait()


def wait_until_ready(address: str) -> None:
    while True:
        try:
            urllib.request.urlopen(f"{address}/readyz", timeout=30).close()
            return
        except OSError:
            time.sleep(0.1)


def choose_request(said: str) -> dict[str, str] | None:
    """The arguments of `take_request`, if the caller says please."""
    _, please, wish = said.partition("lease ")
    title = wish.rstrip(".").capitalize()
    return {"title": title, "kind": "task"} if please else None


def answer_from(known: str, said: str) -> str:
    """The first line of what the model was told that has the last word of the question."""
    word = said.rstrip("?.").rpartition(" ")[2]
    lines = [line for line in known.splitlines() if word in line]
    return f"I remember: {lines[0]}" if lines else "I do not know that."
