"""The agent's voice on the line: what it says goes out, what was heard of it comes into the
minutes.

A caller who interrupts empties the carrier's buffer; what they had not heard is not in the
transcript but in an event beside it.
"""

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import count

from aftercall.bridge.playback import HeardSpeech, Playback, QueuedSpeech
from aftercall.bridge.pump import MediaPump
from aftercall.bridge.turn_log import TurnLog
from aftercall.clock import Clock
from aftercall.model.turns import BARGE_IN
from aftercall.phone.wire import BYTES_PER_MS, MAX_AUDIO_BYTES


@dataclass(frozen=True, slots=True)
class AudioClip:
    text: str
    audio: bytes = field(repr=False)


_TEXTS = {
    "apology": (
        "I'm sorry, something is wrong on my side. What you told me is written down. Please "
        "call again later. Goodbye."
    ),
    "one_moment": "One moment, please.",
}


@cache
def load_clip(name: str) -> AudioClip:
    return AudioClip(
        _TEXTS[name], (files("aftercall.bridge") / "clips" / f"{name}.ulaw").read_bytes()
    )


SPEECH_STALL_TIMEOUT_S = 3.0


class AgentVoice:
    def __init__(self, pump: MediaPump, turn_log: TurnLog, clock: Clock) -> None:
        self._pump = pump
        self._turn_log = turn_log
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

    def try_play(self, key: str, payload: bytes) -> bool:
        """Play it if that needs no waiting, as it hardly ever does."""
        if not self._pump.can_play_now or len(payload) > MAX_AUDIO_BYTES:
            return False
        self._pump.play_now(payload, self._count(key, payload))
        return True

    async def play(self, key: str, payload: bytes) -> None:
        mark = self._count(key, payload)
        await self._pump.play(payload)
        if mark:
            await self._pump.mark(mark)

    def append_text(self, key: str, text: str) -> None:
        self._speech(key).text += text

    async def finish(self, key: str) -> None:
        speech = self._playback.find(key)
        if speech and (mark := self._playback.finish(speech)):
            await self._pump.mark(mark)
        self.record_played()

    async def play_clip(self, clip: AudioClip) -> None:
        key = f"clip{next(self._clips)}"
        self.append_text(key, clip.text)
        await self.play(key, clip.audio)
        await self.finish(key)

    def on_mark_played(self, name: str) -> None:
        self._playback.on_mark_played(name, self._clock.monotonic())
        self.record_played()

    def record_played(self) -> None:
        """Write down what has been played to its end."""
        for heard in self._playback.pop_played(self._clock.monotonic()):
            self._record_heard(heard)

    async def interrupt(self) -> list[HeardSpeech]:
        """Fall silent at once; what was cut, so that the engine may know."""
        self.record_played()
        if self._playback.is_idle:
            return []
        cut = self.discard_unplayed()
        await self._pump.clear()
        return cut

    def discard_unplayed(self) -> list[HeardSpeech]:
        """Nobody hears any more of it: write down what was heard."""
        cut = self._playback.clear(self._clock.monotonic())
        for heard in cut:
            self._record_heard(heard)
        return cut

    async def finish_stalled(self) -> None:
        """A speech whose end the engine never told is over when no more of it has come for a
        while.
        """
        if (
            self._playback.is_waiting
            and self._clock.monotonic() - self._audio_at_s >= SPEECH_STALL_TIMEOUT_S
        ):
            await self.finish_all()

    async def finish_all(self) -> None:
        """No more audio comes: what was begun ends with what is there."""
        for speech in self._playback.list_unfinished():
            await self.finish(speech.key)

    def _count(self, key: str, payload: bytes) -> str | None:
        """So much is on its way to the caller; the mark that must follow it, if one is due."""
        self._audio_at_s = self._clock.monotonic()
        return self._playback.record_sent(self._speech(key), len(payload), self._audio_at_s)

    def _speech(self, key: str) -> QueuedSpeech:
        speech = self._playback.find(key)
        if speech is None:
            self._turn_log.start_turn("agent", key)
            speech = self._playback.start(key, self._clock.now())
        return speech

    def _record_heard(self, heard: HeardSpeech) -> None:
        text = heard_text(heard)
        self._silent_since_s = self._clock.monotonic()
        self._turn_log.set_text("agent", heard.speech.key, text)
        if heard.was_cut and heard.speech.text.strip() != text:
            self._turn_log.add_event(
                BARGE_IN,
                {"said": heard.speech.text.strip(), "heard": text, "heard_ms": heard.heard_ms},
            )


MS_PER_CHARACTER = 60  # how fast agents talk, for a speech whose end never came
_WORD = re.compile(r"\S+\s*")


def heard_text(heard: HeardSpeech) -> str:
    """The words that reached the caller; a word counts when more than half of it did."""
    text = heard.speech.text.strip()
    if not heard.was_cut:
        return text
    length_ms = heard.speech.sent_bytes // BYTES_PER_MS
    if not heard.speech.is_done:
        length_ms = max(length_ms, len(text) * MS_PER_CHARACTER)
    return cut_text(text, heard.heard_ms, length_ms)


def cut_text(text: str, heard_ms: int, length_ms: int) -> str:
    if length_ms <= 0 or heard_ms <= 0:
        return ""
    reach = len(text) * heard_ms / length_ms
    end = 0
    for word in _WORD.finditer(text):
        if (word.start() + word.end()) / 2 >= reach:
            break
        end = word.end()
    return text[:end].rstrip()
