"""espeak-ng: words in, sound of a phone line out. The program where it is installed, else the library that a wheel brings.

The library runs in a process of its own: it has one state for everybody, and its licence is not ours (decision 19).
What is to be said goes in by standard input: arguments can be read by everybody on the machine.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec

from aftercall.speech.sound import read_wav

WITHIN_S = 30.0


@dataclass(frozen=True)
class Espeak:
    command: tuple[str, ...]
    language: str = "en"
    words_per_minute: int = 165
    pitch: int = 50

    def speak(self, text: str) -> bytes:
        """Raises OSError, SubprocessError or ValueError when nothing can be said."""
        how = ["-v", self.language, "-s", str(self.words_per_minute), "-p", str(self.pitch), "--stdin", "--stdout"]
        answer = subprocess.run([*self.command, *how], input=text.encode(), capture_output=True, check=True, timeout=WITHIN_S)
        return read_wav(_mended(answer.stdout))[0]


def find_espeak() -> tuple[str, ...] | None:
    """How espeak-ng is started here; None where there is none."""
    if program := shutil.which("espeak-ng"):
        return (program,)
    return (sys.executable, "-m", "aftercall.speech.library") if find_spec("espeakng_loader") else None


def _mended(wav: bytes) -> bytes:
    """espeak-ng writes to a pipe before it knows the length, and leaves a size that is too large."""
    at = wav.find(b"data")
    if at < 0:
        return wav
    size = len(wav) - at - 8
    return wav[: at + 4] + size.to_bytes(4, "little") + wav[at + 8 :]
