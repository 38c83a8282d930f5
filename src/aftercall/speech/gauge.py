"""Whether a frame holds speech, while the call goes on: louder than the line's own noise, which is what it sounds like at its quietest."""

from collections import deque
from collections.abc import Callable

from aftercall.speech.sound import level

FLOOR = 120.0  # quieter than this is silence on any line
ABOVE_NOISE = 2.8
LOUDEST_NOISE = 1500.0  # a voice that speaks from the first frame on is no noise
_MEMORY = 250
_LOOK_EVERY = 25


class Gauge:
    def __init__(self, measure: Callable[[bytes], float] = level) -> None:
        self._measure = measure
        self._levels: deque[float] = deque(maxlen=_MEMORY)
        self._ticks = 0
        self._threshold = FLOOR

    def is_loud(self, frame: bytes) -> bool:
        loud = self._measure(frame)
        self._levels.append(loud)
        self._ticks += 1
        if self._ticks % (_LOOK_EVERY if self._ticks > 50 else 5) == 0:
            self._threshold = max(FLOOR, min(LOUDEST_NOISE, ABOVE_NOISE * _quiet(self._levels)))
        return loud > self._threshold


def _quiet(levels: deque[float]) -> float:
    """The tenth quietest of a hundred frames: a lost frame or two do not make a noisy line quiet."""
    return sorted(levels)[len(levels) // 10]
