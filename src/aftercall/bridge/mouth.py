"""The agent's voice on the line: what it says goes out, what was heard of it comes into the minutes.

A caller who interrupts empties the carrier's buffer; what they had not heard is not in the transcript but in an event beside it.
"""

from itertools import count

from aftercall.bridge.barge_in import heard_text
from aftercall.bridge.clips import Clip
from aftercall.bridge.minutes import Minutes
from aftercall.bridge.playback import Heard, Playback, Speech
from aftercall.bridge.pump import Pump
from aftercall.clock import Clock
from aftercall.model.turns import BARGE_IN
from aftercall.phone.wire import LONGEST_AUDIO

STALLED_S = 3.0


class Mouth:
    def __init__(self, pump: Pump, minutes: Minutes, clock: Clock) -> None:
        self._pump = pump
        self._minutes = minutes
        self._clock = clock
        self._playback = Playback()
        self._clips = count(1)
        self._audio_at_s = 0.0
        self._silent_since_s = clock.monotonic()

    @property
    def is_idle(self) -> bool:
        return self._playback.is_idle

    def idle_s(self) -> float:
        return self._clock.monotonic() - self._silent_since_s if self._playback.is_idle else 0.0

    def offer(self, key: str, payload: bytes) -> bool:
        """Play it if that needs no waiting, as it hardly ever does."""
        if not self._pump.is_free or len(payload) > LONGEST_AUDIO:
            return False
        self._pump.offer(payload, self._count(key, payload))
        return True

    async def play(self, key: str, payload: bytes) -> None:
        mark = self._count(key, payload)
        await self._pump.play(payload)
        if mark:
            await self._pump.mark(mark)

    def tell(self, key: str, text: str) -> None:
        self._speech(key).text += text

    async def finish(self, key: str) -> None:
        speech = self._playback.find(key)
        if speech and (mark := self._playback.finish(speech)):
            await self._pump.mark(mark)
        self.settle()

    async def play_clip(self, clip: Clip) -> None:
        key = f"clip{next(self._clips)}"
        self.tell(key, clip.text)
        await self.play(key, clip.audio)
        await self.finish(key)

    def mark_played(self, name: str) -> None:
        self._playback.take_back(name, self._clock.monotonic())
        self.settle()

    def settle(self) -> None:
        """Write down what has been played to its end."""
        for heard in self._playback.settle(self._clock.monotonic()):
            self._keep(heard)

    async def interrupt(self) -> list[Heard]:
        """Fall silent at once; what was cut, so that the engine may know."""
        self.settle()
        if self._playback.is_idle:
            return []
        cut = self.fall_silent()
        await self._pump.clear()
        return cut

    def fall_silent(self) -> list[Heard]:
        """Nobody hears any more of it: write down what was heard."""
        cut = self._playback.clear(self._clock.monotonic())
        for heard in cut:
            self._keep(heard)
        return cut

    async def finish_stalled(self) -> None:
        """A speech whose end the engine never told is over when no more of it has come for a while."""
        if self._playback.is_waiting and self._clock.monotonic() - self._audio_at_s >= STALLED_S:
            await self.finish_all()

    async def finish_all(self) -> None:
        """No more audio comes: what was begun ends with what is there."""
        for speech in self._playback.unfinished():
            await self.finish(speech.key)

    def _count(self, key: str, payload: bytes) -> str | None:
        """So much is on its way to the caller; the mark that must follow it, if one is due."""
        self._audio_at_s = self._clock.monotonic()
        return self._playback.send(self._speech(key), len(payload), self._audio_at_s)

    def _speech(self, key: str) -> Speech:
        speech = self._playback.find(key)
        if speech is None:
            self._minutes.begin("agent", key)
            speech = self._playback.begin(key, self._clock.now())
        return speech

    def _keep(self, heard: Heard) -> None:
        text = heard_text(heard)
        self._silent_since_s = self._clock.monotonic()
        self._minutes.know("agent", heard.speech.key, text)
        if heard.was_cut and heard.speech.text.strip() != text:
            self._minutes.note(BARGE_IN, {"said": heard.speech.text.strip(), "heard": text, "heard_ms": heard.heard_ms})
