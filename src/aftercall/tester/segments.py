"""Stretches of sound in a recording: where one begins and ends."""

from dataclasses import dataclass
from typing import Literal

from aftercall.speech.sound import (
    FRAME_BYTES,
    LOUDNESS,
    SAMPLE_RATE_HZ,
    SILENCE_LEVEL,
    cached_loudness,
)

Side = Literal["agent", "caller"]

HOP = FRAME_BYTES // 2


ABOVE_NOISE = 2.2  # noise that swells and fades reaches twice its quieter fifth


MIN_SEGMENT_S = 0.04


@dataclass(frozen=True)
class Segment:
    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s

    def overlap_s(self, other: "Segment") -> float:
        return max(0.0, min(self.end_s, other.end_s) - max(self.start_s, other.start_s))


def find_segments(sound: bytes, merge_s: float) -> list[Segment]:
    """Stretches in which something is heard; gaps of up to `merge_s` belong to the speech
    around them.
    """
    hops = [cached_loudness(sound[at : at + HOP]) for at in range(0, len(sound), HOP)]
    threshold = _threshold(hops)
    found: list[Segment] = []
    start: int | None = None
    for number, loud in enumerate([*hops, 0.0]):
        if loud > threshold and start is None:
            start = number
        elif loud <= threshold and start is not None:
            found.append(_sharpen(sound, start * HOP, number * HOP, threshold))
            start = None
    return [segment for segment in _merge(found, merge_s) if segment.seconds >= MIN_SEGMENT_S]


def _threshold(hops: list[float]) -> float:
    """Above the noise, which is what the quieter fifth of the channel sounds like; never so
    high that speech is lost.
    """
    if not hops:
        return SILENCE_LEVEL
    ordered = sorted(hops)
    noise, loudest = ordered[len(ordered) // 5], ordered[-1 - len(ordered) // 50]
    return max(SILENCE_LEVEL, min(noise * ABOVE_NOISE, loudest / 3))


def _sharpen(sound: bytes, start: int, end: int, threshold: float) -> Segment:
    """The first and the last sample that are clearly above the threshold."""
    edge = threshold * 1.2
    low = next((at for at in range(max(0, start - HOP), end) if LOUDNESS[sound[at]] > edge), start)
    end = min(end, len(sound))
    high = next((at for at in range(end - 1, low, -1) if LOUDNESS[sound[at]] > edge), end - 1)
    return Segment(low / SAMPLE_RATE_HZ, (high + 1) / SAMPLE_RATE_HZ)


def _merge(found: list[Segment], merge_s: float) -> list[Segment]:
    merged: list[Segment] = []
    for segment in found:
        if merged and segment.start_s - merged[-1].end_s <= merge_s:
            merged[-1] = Segment(merged[-1].start_s, segment.end_s)
        else:
            merged.append(segment)
    return merged
