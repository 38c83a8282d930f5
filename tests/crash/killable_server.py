"""A server of its own process that is killed in the middle of its calls, and started again at
the same address.
"""

import asyncio
import os
import socket
import sys
from pathlib import Path


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
        own = {"AFTERCALL_HOME": str(home), "AFTERCALL_PUBLIC_URL": self.address}
        self._environment = inherited | own | environment
        self._home = home
        self._process: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Returns when it listens; who rings before it is ready waits."""
        arguments = (
            sys.executable,
            "-m",
            "aftercall",
            "serve",
            "--port",
            str(self._port),
        )
        self._process = await asyncio.create_subprocess_exec(
            *arguments,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=self._home,
        )
        assert self._process.stdout is not None
        assert b"http://" in await self._process.stdout.readline()

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        assert await self._process.wait() == -9

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self.ask_to_stop()
            await self.wait_stopped()

    def ask_to_stop(self) -> None:
        assert self._process is not None
        self._process.terminate()

    async def wait_stopped(self) -> int:
        assert self._process is not None
        return await self._process.wait()
