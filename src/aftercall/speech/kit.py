"""Speech recognition and synthesis on this machine, for engines that have neither.

Each recogniser and synthesiser runs in a child process, which answers one request at a time. A
process that died or hangs is replaced at the next request.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

from aftercall.errors import EngineLost
from aftercall.speech.sound import read_wav

INSTALL = "install aftercall[speech]"
MAX_RECOGNISERS = 4  # each takes 200 MB
ANSWER_TIMEOUT_S = 20.0
START_TIMEOUT_S = 60.0
ESPEAK_TIMEOUT_S = 30.0


class Recogniser(Protocol):
    async def recognise(self, sound: bytes) -> str:
        """The words in 8 kHz μ-law; empty without words. Raises EngineLost on failure."""
        ...


class Synthesiser(Protocol):
    async def speak(self, text: str) -> bytes:
        """8 kHz μ-law of these words. Raises EngineLost on failure."""
        ...


@dataclass(frozen=True)
class SpeechKit:
    recogniser: Recogniser
    synthesiser: Synthesiser
    open: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None


def make_speech_kit(voice: str) -> SpeechKit:
    """A kit whose processes start when it is opened, or at the first request."""
    recogniser = LocalRecogniser(
        min(MAX_RECOGNISERS, max(1, (os.cpu_count() or 2) // 2))
    )
    synthesiser = LocalSynthesiser(voice)

    def open_both() -> None:
        synthesiser.open()
        recogniser.open()

    def close_both() -> None:
        synthesiser.close()
        recogniser.close()

    return SpeechKit(recogniser, synthesiser, open_both, close_both)


def find_missing() -> str | None:
    """What must be installed for local speech; None if nothing is missing."""
    parts = {
        "moonshine-voice": find_spec("moonshine_voice"),
        "espeak-ng": find_espeak(),
    }
    missing = [name for name, found in parts.items() if not found]
    return f"{' and '.join(missing)} not installed; {INSTALL}" if missing else None


class LocalRecogniser:
    """Several processes; a request goes to the one with the shortest queue."""

    def __init__(self, processes: int) -> None:
        self._processes = [
            SpeechProcess("recogniser", child_command("recogniser"))
            for _ in range(processes)
        ]

    async def recognise(self, sound: bytes) -> str:
        chosen = min(self._processes, key=lambda process: process.queue_length)
        return (await chosen.ask(sound)).decode("utf-8", "replace")

    def open(self) -> None:
        for process in self._processes:
            process.open()

    def close(self) -> None:
        for process in self._processes:
            process.close()


class LocalSynthesiser:
    def __init__(self, voice: str) -> None:
        self._process = SpeechProcess(
            "synthesiser", child_command("synthesiser", voice)
        )
        self.open = self._process.open
        self.close = self._process.close

    async def speak(self, text: str) -> bytes:
        return await self._process.ask(text.encode())


def child_command(kind: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "aftercall.speech.child", kind, *options]


class SpeechProcess:
    """A child process that answers as `child.py` does, asked from an event loop that must not
    wait for it.
    """

    def __init__(self, kind: str, command: Sequence[str]) -> None:
        self._kind = kind
        self._command = command
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"aftercall-{kind}")
        self._process: subprocess.Popen[bytes] | None = None
        self.queue_length = 0

    def open(self) -> None:
        """Start the process and load its model, which takes a second or two."""
        self._thread.submit(self._ensure_process).result()

    async def ask(self, body: bytes) -> bytes:
        """Raises EngineLost when there is no answer."""
        self.queue_length += 1
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._exchange, body)
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

    def _ensure_process(self) -> subprocess.Popen[bytes]:
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
            raise EngineLost(f"the process of the {self._kind} is gone") from None
        return self._read(process, ANSWER_TIMEOUT_S)

    def _read(self, process: subprocess.Popen[bytes], timeout_s: float) -> bytes:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        alarm = threading.Timer(timeout_s, process.kill)
        alarm.daemon = True
        alarm.start()
        try:
            head = process.stdout.read(5)
            body = (
                process.stdout.read(int.from_bytes(head[1:])) if len(head) == 5 else b""
            )
        finally:
            alarm.cancel()
        if len(head) < 5:
            self._drop(process)
            raise EngineLost(
                f"the process of the {self._kind} died or took longer than {timeout_s:g} s; "
                "run `aftercall doctor`"
            )
        if not head[0]:
            raise EngineLost(
                f"the {self._kind} failed ({body.decode('ascii', 'replace')[:40]})"
            )
        return body

    def _drop(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # the unwritten rest is of no use
                    continue
        if self._process is process:
            self._process = None


@dataclass(frozen=True)
class Espeak:
    command: tuple[str, ...]
    language: str = "en"
    words_per_minute: int = 165
    pitch: int = 50

    def speak(self, text: str) -> bytes:
        """Raises OSError, SubprocessError or ValueError on failure."""
        rate, pitch = str(self.words_per_minute), str(self.pitch)
        options = ["-v", self.language, "-s", rate, "-p", pitch, "--stdin", "--stdout"]
        answer = subprocess.run(
            [*self.command, *options],
            input=text.encode(),
            capture_output=True,
            check=True,
            timeout=ESPEAK_TIMEOUT_S,
        )
        return read_wav(_fix_data_size(answer.stdout))[0]


def find_espeak() -> tuple[str, ...] | None:
    """The command that starts espeak-ng; None without it."""
    if program := shutil.which("espeak-ng"):
        return (program,)
    if find_spec("espeakng_loader"):
        return tuple(child_command("espeak"))
    return None


def _fix_data_size(wav: bytes) -> bytes:
    """espeak-ng writes to a pipe before it knows the length, so its size field is too large."""
    at = wav.find(b"data")
    if at < 0:
        return wav
    size = len(wav) - at - 8
    return wav[: at + 4] + size.to_bytes(4, "little") + wav[at + 8 :]
