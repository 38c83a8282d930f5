"""A server of its own process that is killed in the middle of its calls, and started again at
the same address.
"""

import asyncio
import os
import socket
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import TextIO

from command_process import start_command


class MortalServer:
    """`aftercall serve` on one port, life after life.

    Its settings are the environment it is given.
    """

    def __init__(self, home: Path, **environment: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("AFTERCALL_")
        }
        own = {
            "AFTERCALL_HOME": str(home),
            "AFTERCALL_PUBLIC_URL": self.address,
            # a busy machine is no reason to greet without a briefing
            "AFTERCALL_BRIEFING_TIMEOUT_MS": "10000",
        }
        self._environment = inherited | own | environment
        self._home = home
        self._process: ForkServerProcess | None = None
        self._printed: TextIO | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Returns when it listens; who rings before it is ready waits."""
        self._process, self._printed = start_command(
            ["serve", "--port", str(self._port)], self._environment, self._home
        )
        assert "http://" in await asyncio.to_thread(self._printed.readline)

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        assert await self.wait_stopped() == -9

    async def stop(self) -> None:
        if self._process is not None and self._process.is_alive():
            self.ask_to_stop()
            await self.wait_stopped()

    def ask_to_stop(self) -> None:
        assert self._process is not None
        self._process.terminate()

    async def wait_stopped(self) -> int:
        assert self._process is not None
        assert self._printed is not None
        await asyncio.to_thread(self._process.join)
        self._printed.close()
        assert self._process.exitcode is not None
        return self._process.exitcode
