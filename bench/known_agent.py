"""An agent whose timing is known to the sample: it answers so long after the caller's last loud
frame, with so much silence first.

Nothing but the standard library, as it also runs inside other people's testers.
"""

import math
import wave
from array import array
from collections.abc import Iterator
from pathlib import Path

FRAME_S = 0.02
DELAY_S = 0.8
QUESTION_S = 2.0
REPLY_S = 1.0


def hum(seconds: float, rate: int) -> bytes:
    """16-bit samples that are loud from the first to the last."""
    return array(
        "h",
        (
            int(9000 * math.cos(2 * math.pi * 400 * n / rate))
            for n in range(round(seconds * rate))
        ),
    ).tobytes()


def write_question(path: Path, rate: int) -> Path:
    """What the caller says: whole frames of it, no silence at either end."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(hum(QUESTION_S, rate))
    return path


class KnownAgent:
    """Frame by frame: told whether the caller is loud, gives 20 ms of 16-bit sound, or nothing
    where the line is not kept open.
    """

    def __init__(self, rate: int, lead_s: float, *, is_open_line: bool) -> None:
        self.lead_s = lead_s
        self.truth_s = DELAY_S + lead_s
        self.is_answering = False
        self._frame = 2 * round(rate * FRAME_S)
        self._silence = bytes(2 * round(rate * lead_s))
        self._reply = self._silence + hum(REPLY_S, rate)
        self._is_open_line = is_open_line
        self._was_loud = False
        self._quiet = 0
        self._frames: Iterator[bytes] = iter(())

    def tick(self, is_loud: bool) -> bytes | None:
        self._quiet = 0 if is_loud else self._quiet + 1
        self._was_loud = self._was_loud or is_loud
        if self._was_loud and self._quiet == 1 + round(DELAY_S / FRAME_S):
            # this frame follows so many quiet ones
            self._was_loud = False
            self._frames = iter(
                self._reply[at : at + self._frame]
                for at in range(0, len(self._reply), self._frame)
            )
        sound = next(self._frames, None)
        self.is_answering = sound is not None
        if sound is None and self._is_open_line:
            return bytes(self._frame)
        return sound.ljust(self._frame, b"\0") if sound else None
