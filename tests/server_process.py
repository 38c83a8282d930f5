"""`aftercall serve` in a process of its own, for tests that look at it from outside."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from command_process import start_command


@contextmanager
def serving(home: Path, **environment: str) -> Iterator[str]:
    """A server on a free port; its address."""
    with serving_on(0, home, environment) as address:
        yield address


@contextmanager
def serving_on(port: int, home: Path, environment: dict[str, str]) -> Iterator[str]:
    with _start(port, home, environment) as (address, _):
        yield address


@contextmanager
def serving_pages(home: Path, **environment: str) -> Iterator[tuple[str, str]]:
    """A server on a free port; its address, and the link that logs a browser in once."""
    with _start(0, home, environment) as found:
        yield found


@contextmanager
def _start(
    port: int, home: Path, environment: dict[str, str]
) -> Iterator[tuple[str, str]]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AFTERCALL_")
    }
    own = {
        "AFTERCALL_HOME": str(home),
        "AFTERCALL_BRIDGE_FINISH_S": "1",  # for calls that a test leaves open
        "COLUMNS": "200",
    }
    process, printed = start_command(
        ["serve", "--port", str(port)],
        clean | own | environment,
        Path.cwd(),
    )
    try:
        told = re.search(r"http://[\d.:]+", printed.readline())
        link = re.search(r"https?://\S+", printed.readline())
        assert told
        # a token from outside: output may be kept, so no link is printed
        assert link or "AFTERCALL_API_TOKEN" in environment
        yield told[0], link[0] if link else ""
    finally:
        process.terminate()
        process.join(20)
        printed.close()
