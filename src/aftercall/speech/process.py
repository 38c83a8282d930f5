"""An ear or a mouth in a process of its own, asked from an event loop that must not wait for it.

One thing at a time: what is asked meanwhile waits in line. A process that died or hangs is
replaced when the next one asks.
"""

import asyncio
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec

from aftercall.errors import EngineLost
from aftercall.speech.sound import read_wav

ANSWER_TIMEOUT_S = 20.0
START_TIMEOUT_S = 60.0


class SpeechProcess:
    def __init__(self, kind: str, *options: str) -> None:
        self._kind = kind
        self._command = [sys.executable, "-m", "aftercall.speech.child", kind, *options]
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"aftercall-{kind}")
        self._process: subprocess.Popen[bytes] | None = None
        self.queue_length = 0

    def open(self) -> None:
        """Start and load, which takes a second or two."""
        self._thread.submit(self._ensure_process).result()

    async def ask(self, body: bytes) -> bytes:
        """Raises EngineLost when there is no answer to be had."""
        self.queue_length += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, self._exchange, body
            )
        finally:
            self.queue_length -= 1

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._thread.shutdown()
        if self._process is not None:
            self._drop(self._process)

    def _ensure_process(self) -> "subprocess.Popen[bytes]":
        if self._process is not None:
            if self._process.poll() is None:
                return self._process
            self._drop(self._process)
        pipe = subprocess.PIPE
        process = self._process = subprocess.Popen(
            self._command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        )
        self._read(process, START_TIMEOUT_S)
        return process

    def _exchange(self, body: bytes) -> bytes:
        process = self._ensure_process()
        assert process.stdin is not None  # noqa: S101 - a pipe was asked for
        try:
            process.stdin.write(len(body).to_bytes(4) + body)
            process.stdin.flush()
        except OSError:
            self._drop(process)
            raise EngineLost(f"the process of our {self._kind} is gone") from None
        return self._read(process, ANSWER_TIMEOUT_S)

    def _read(self, process: "subprocess.Popen[bytes]", timeout_s: float) -> bytes:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        alarm = threading.Timer(timeout_s, process.kill)
        alarm.daemon = True
        alarm.start()
        try:
            head = process.stdout.read(5)
            body = process.stdout.read(int.from_bytes(head[1:])) if len(head) == 5 else b""
        finally:
            alarm.cancel()
        if len(head) < 5:
            self._drop(process)
            raise EngineLost(
                f"the process of our {self._kind} died or took longer than {timeout_s:g} s; "
                "`aftercall doctor` tells more"
            )
        if not head[0]:
            raise EngineLost(f"our {self._kind} failed ({body.decode('ascii', 'replace')[:40]})")
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


ESPEAK_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Espeak:
    command: tuple[str, ...]
    language: str = "en"
    words_per_minute: int = 165
    pitch: int = 50

    def speak(self, text: str) -> bytes:
        """Raises OSError, SubprocessError or ValueError when nothing can be said."""
        how = [
            "-v",
            self.language,
            "-s",
            str(self.words_per_minute),
            "-p",
            str(self.pitch),
            "--stdin",
            "--stdout",
        ]
        answer = subprocess.run(
            [*self.command, *how],
            input=text.encode(),
            capture_output=True,
            check=True,
            timeout=ESPEAK_TIMEOUT_S,
        )
        return read_wav(_fix_data_size(answer.stdout))[0]


def find_espeak() -> tuple[str, ...] | None:
    """How espeak-ng is started here; None where there is none."""
    if program := shutil.which("espeak-ng"):
        return (program,)
    return (
        (sys.executable, "-m", "aftercall.speech.library") if find_spec("espeakng_loader") else None
    )


def _fix_data_size(wav: bytes) -> bytes:
    """espeak-ng writes to a pipe before it knows the length, and leaves a size that is too
    large.
    """
    at = wav.find(b"data")
    if at < 0:
        return wav
    size = len(wav) - at - 8
    return wav[: at + 4] + size.to_bytes(4, "little") + wav[at + 8 :]
