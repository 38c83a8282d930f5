"""Speech that a program can hear: each 20 ms frame of it names the word it belongs to, so no
recogniser is needed.

It is as long as real speech would be (60 ms a character) and travels as ordinary 8 kHz μ-law
bytes: what was cut out of it on the way was not heard. Anything else on the line is silence.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

FRAME = 160
FRAMES_PER_CHARACTER = 3
SILENCE = b"\xff" * FRAME
_MAGIC = b"\x10\x90\x11\x91"
_HEAD = len(_MAGIC) + 5
MAX_WORD_BYTES = FRAME - _HEAD


def utter(text: str, frames_per_word: int | None = None) -> bytes:
    """The audio of a sentence; each word as long as its characters take, or all of the same
    length.
    """
    return b"".join(_voice(word, frames_per_word) for word in text.split())


def _voice(word: str, frames: int | None) -> bytes:
    spelled = word.encode()[:MAX_WORD_BYTES]
    count = frames or FRAMES_PER_CHARACTER * (len(word) + 1)
    return b"".join(_frame(spelled, number, count) for number in range(count))


def _frame(word: bytes, number: int, count: int) -> bytes:
    head = _MAGIC + number.to_bytes(2) + count.to_bytes(2) + len(word).to_bytes(1)
    return (head + word).ljust(FRAME, b"\x30")


@dataclass(frozen=True)
class ToneBegan:
    """Somebody has begun to talk."""


@dataclass(frozen=True)
class ToneEnded:
    """They have stopped; what they said, as far as it was heard."""

    text: str = field(repr=False)


class ToneDetector:
    """Listens to audio in pieces of any size. A word counts when more than half of it was heard."""

    def __init__(self, quiet_frames: int = 10) -> None:
        self._quiet_frames = quiet_frames
        self._rest = b""
        self._quiet = 0
        self._words: list[str] = []
        self._word: tuple[bytes, int] = (b"", 0)
        self._heard = 0
        self._last = -1
        self.is_speech_active = False

    def detect(self, payload: bytes) -> Iterator[ToneBegan | ToneEnded]:
        audio = self._rest + payload
        whole = len(audio) - len(audio) % FRAME
        self._rest = audio[whole:]
        for start in range(0, whole, FRAME):
            yield from self._read_frame(audio[start : start + FRAME])

    def finish(self) -> str:
        """What has been heard so far, whether it was over or not."""
        self._end_word()
        text, self._words = " ".join(self._words), []
        self.is_speech_active = False
        return text

    def _read_frame(self, frame: bytes) -> Iterator[ToneBegan | ToneEnded]:
        if frame.startswith(_MAGIC):
            if not self.is_speech_active:
                self.is_speech_active = True
                yield ToneBegan()
            self._quiet = 0
            self._read_word(frame)
        elif self.is_speech_active:
            self._quiet += 1
            if self._quiet >= self._quiet_frames:
                yield ToneEnded(self.finish())

    def _read_word(self, frame: bytes) -> None:
        number, count = int.from_bytes(frame[4:6]), int.from_bytes(frame[6:8])
        word = (frame[_HEAD : _HEAD + frame[8]], count)
        if word != self._word or number <= self._last:
            self._end_word()
            self._word = word
        self._heard += 1
        self._last = number

    def _end_word(self) -> None:
        spelled, count = self._word
        if count and self._heard * 2 > count:
            self._words.append(spelled.decode("utf-8", "replace"))
        self._word, self._heard, self._last = (b"", 0), 0, -1
