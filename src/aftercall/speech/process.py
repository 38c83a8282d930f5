"""An ear or a mouth in a process of its own, asked from an event loop that must not wait for it.

One thing at a time: what is asked meanwhile waits in line. A process that died or hangs is replaced when the next one asks.
"""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from aftercall.errors import EngineLost

WITHIN_S = 20.0
OPEN_WITHIN_S = 60.0


class SpeechProcess:
    def __init__(self, organ: str, *options: str) -> None:
        self._organ = organ
        self._command = [sys.executable, "-m", "aftercall.speech.child", organ, *options]
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"aftercall-{organ}")
        self._process: subprocess.Popen[bytes] | None = None
        self.waiting = 0

    def open(self) -> None:
        """Start and load, which takes a second or two."""
        self._thread.submit(self._running).result()

    async def ask(self, body: bytes) -> bytes:
        """Raises EngineLost when there is no answer to be had."""
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._exchange, body)
        finally:
            self.waiting -= 1

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._thread.shutdown()
        if self._process is not None:
            self._drop(self._process)

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is not None:
            if self._process.poll() is None:
                return self._process
            self._drop(self._process)
        pipe = subprocess.PIPE
        process = self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self._read(process, OPEN_WITHIN_S)
        return process

    def _exchange(self, body: bytes) -> bytes:
        process = self._running()
        assert process.stdin is not None  # noqa: S101 - a pipe was asked for
        try:
            process.stdin.write(len(body).to_bytes(4) + body)
            process.stdin.flush()
        except OSError:
            self._drop(process)
            raise EngineLost(f"the process of our {self._organ} is gone") from None
        return self._read(process, WITHIN_S)

    def _read(self, process: "subprocess.Popen[bytes]", within_s: float) -> bytes:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        alarm = threading.Timer(within_s, process.kill)
        alarm.daemon = True
        alarm.start()
        try:
            head = process.stdout.read(5)
            body = process.stdout.read(int.from_bytes(head[1:])) if len(head) == 5 else b""
        finally:
            alarm.cancel()
        if len(head) < 5:
            self._drop(process)
            raise EngineLost(f"the process of our {self._organ} died or took longer than {within_s:g} s; `aftercall doctor` tells more")
        if not head[0]:
            raise EngineLost(f"our {self._organ} failed ({body.decode('ascii', 'replace')[:40]})")
        return body

    def _drop(self, process: "subprocess.Popen[bytes]") -> None:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was not written yet is of no use to anybody
                    continue
        if self._process is process:
            self._process = None
