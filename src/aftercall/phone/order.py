"""Puts a caller's audio back into the order it was spoken in, and lets nothing through twice."""

from collections.abc import Sequence

from aftercall.phone.wire import AudioIn, Odd, Oddity

HELD = 5  # frames, 100 ms: longer than a network shuffles, short enough not to be noticed in an answer
RESTARTED = 50  # frames, one second of nothing but old numbers: the carrier has begun to count anew

_LATE = (Odd(Oddity.LATE),)
_REPEATED = (Odd(Oddity.REPEATED),)


class AudioOrder:
    def __init__(self) -> None:
        self._next = 1
        self._held: dict[int, AudioIn] = {}
        self._late = 0

    def take(self, audio: AudioIn) -> Sequence[AudioIn | Odd]:
        return (audio,) if self.passes(audio.sequence) else self._sort(audio)

    def passes(self, sequence: int) -> bool:
        """Whether audio of this number is next, with nothing held back; then it is counted as taken."""
        if sequence != self._next or self._held:
            return False
        self._next += 1
        self._late = 0
        return True

    def flush(self) -> list[AudioIn]:
        """What is still held back, gaps and all: nothing more will come to fill them."""
        rest = [self._held[number] for number in sorted(self._held)]
        self._held.clear()
        return rest

    def _sort(self, audio: AudioIn) -> Sequence[AudioIn | Odd]:
        if audio.sequence in self._held:
            return _REPEATED
        if audio.sequence < self._next:
            self._late += 1
            if self._late < RESTARTED:
                return _LATE
            return self._begin_anew(audio)
        self._late = 0
        self._held[audio.sequence] = audio
        if len(self._held) > HELD:
            self._next = min(self._held)
        return self._release()

    def _release(self) -> list[AudioIn]:
        ready = []
        while self._next in self._held:
            ready.append(self._held.pop(self._next))
            self._next += 1
        return ready

    def _begin_anew(self, audio: AudioIn) -> list[AudioIn]:
        """One wild number must not mute a caller for the rest of the call."""
        rest = self.flush()
        self._next = audio.sequence + 1
        self._late = 0
        return [*rest, audio]
