"""What a line does to the caller's words: noise, loss, volume.

Drawn from a seed, so that a bad call can be had again.
"""

import math
import random
from array import array
from functools import cache, lru_cache

from aftercall.speech.sound import (
    FRAME_BYTES,
    SAMPLE_RATE_HZ,
    SILENCE,
    cached_loudness,
    decode,
    encode,
)
from aftercall.tester.scenario import LineNoise, LineQuality
from aftercall.tester.voice import VoiceClip

SPEECH_LEVEL = 3800  # the mean size of a sample while our voices speak
_BED_FRAMES = 150


class LineQualityFilter:
    """One direction of one call."""

    def __init__(self, line: LineQuality, noise: LineNoise, seed: int) -> None:
        self._line = line
        self._random = random.Random(seed)
        self._bed = _noise_bed(noise.kind, noise.snr_db, seed)
        self._at = 0
        self._losing = 0
        self.lost_s: list[float] = []

    @property
    def is_clean(self) -> bool:
        return not self._bed and self._line.loss == 0 and self._line.volume_db == 0

    def apply(self, frame: bytes, at_s: float) -> bytes:
        """The frame as it arrives; a lost one is silence, and if it held speech the loss is
        noted.
        """
        if self.is_clean:
            return frame
        if self._is_lost():
            if cached_loudness(frame) > 0:
                self.lost_s.append(at_s)
            return SILENCE
        gain = 10 ** (self._line.volume_db / 20)
        bed = self._bed[self._at % len(self._bed)] if self._bed else None
        self._at += 1
        if bed is None and (gain == 1 or frame == SILENCE):
            return frame
        return _mix(frame, gain, bed)

    def find_arrived_words(self, clip: VoiceClip, start_s: float) -> str:
        """The words of something said of which at least half arrived."""
        lost = [
            round((at_s - start_s) * SAMPLE_RATE_HZ)
            for at_s in self.lost_s
            if at_s >= start_s - FRAME_BYTES / SAMPLE_RATE_HZ / 2
        ]
        ends = [*(at for at, _ in clip.words[1:]), len(clip.sound)]
        kept = []
        for (at, word), end in zip(clip.words, ends, strict=True):
            gone = sum(FRAME_BYTES for place in lost if at - FRAME_BYTES < place < end)
            if gone * 2 < end - at:
                kept.append(word)
        return " ".join(kept)

    def _is_lost(self) -> bool:
        if self._losing:
            self._losing -= 1
            return True
        if self._line.loss and self._random.random() < self._line.loss / self._line.burst:
            self._losing = self._line.burst - 1
            return True
        return False


@lru_cache(maxsize=20_000)
def _mix(frame: bytes, gain: float, bed: bytes | None) -> bytes:
    """Kept, because voices of tones and a bed that is played over and over meet again and again."""
    behind = array("h", bed or bytes(2 * FRAME_BYTES))
    return encode(
        array(
            "h",
            (
                max(-32_000, min(32_000, int(near * gain + far)))
                for near, far in zip(decode(frame), behind, strict=False)
            ),
        )
    )


@cache
def _noise_bed(kind: str, snr_db: float, seed: int) -> tuple[bytes, ...]:
    """Three seconds of noise that are played over and over."""
    if kind == "none":
        return ()
    draw = random.Random(f"{kind}/{seed}")
    size = SPEECH_LEVEL / 10 ** (snr_db / 20) * 1.57
    samples = [_sample(kind, at, draw) for at in range(_BED_FRAMES * FRAME_BYTES)]
    mean = sum(abs(sample) for sample in samples) / len(samples) or 1.0
    scaled = array(
        "h", (max(-32_000, min(32_000, int(sample / mean * size * 0.64))) for sample in samples)
    )
    return tuple(
        scaled[at : at + FRAME_BYTES].tobytes() for at in range(0, len(scaled), FRAME_BYTES)
    )


def _sample(kind: str, at: int, draw: random.Random) -> float:
    t = at / SAMPLE_RATE_HZ
    if kind == "hum":
        return (
            math.sin(2 * math.pi * 50 * t)
            + 0.4 * math.sin(2 * math.pi * 150 * t)
            + 0.05 * draw.gauss(0, 1)
        )
    if kind == "babble":
        return sum(
            math.sin(2 * math.pi * pitch * t) * (0.6 + 0.4 * math.sin(pace * t))
            for pitch, pace in ((180, 9), (240, 11), (320, 7))
        )
    if kind == "street":
        return draw.gauss(0, 1) * (0.5 + 0.5 * math.sin(2 * math.pi * 0.3 * t) ** 2)
    return draw.gauss(0, 1)
