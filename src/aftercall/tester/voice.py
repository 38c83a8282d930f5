"""The caller's voice, and what a bad line does to it.

Voices turn words into sound: espeak-ng where it is installed, else bursts of tone as long as the
words. Tones have what timing needs: an onset, a length, an end.
"""

import math
import random
import subprocess
from array import array
from collections import deque
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Protocol

from aftercall.errors import LineFailed
from aftercall.speech.kit import Espeak, find_espeak
from aftercall.speech.sound import (
    FRAME_BYTES,
    LOUDNESS,
    SAMPLE_RATE_HZ,
    SILENCE,
    cached_loudness,
    decode,
    encode,
    read_wav,
    tone,
)
from aftercall.tester.scenario import LineNoise, LineQuality, SpeakingManner

MIN_WORD_FRAMES, MAX_WORD_FRAMES = 8, 26
GAP_FRAMES = 3
MIN_AUDIBLE_LEVEL = 200
SPEECH_LEVEL = 3800  # the mean level of a sample while our voices speak
MAX_SAMPLE = 32_000
NOISE_FRAMES = 150
JITTER_SHARE = 0.03  # of frames; those behind a late one wait, too
_KEY_ROWS = {697: "123A", 770: "456B", 852: "789C", 941: "*0#D"}
_KEY_COLUMNS = (1209, 1336, 1477, 1633)
_KEYS = {
    key: (low, high)
    for low, keys in _KEY_ROWS.items()
    for key, high in zip(keys, _KEY_COLUMNS, strict=True)
}


@dataclass(frozen=True)
class VoiceClip:
    """Sound, and the words in it, each with the sample at which it starts."""

    sound: bytes
    words: tuple[tuple[int, str], ...] = ()

    def delayed(self, seconds: float) -> "VoiceClip":
        """The same after this much silence, to the sample."""
        lead = max(0, round(seconds * SAMPLE_RATE_HZ))
        words = tuple((at + lead, word) for at, word in self.words)
        return VoiceClip(b"\xff" * lead + self.sound, words)


class CallerVoice(Protocol):
    def speak(self, text: str) -> VoiceClip: ...

    def adapt(self, manner: SpeakingManner, language: str) -> "CallerVoice":
        """The voice of one caller; the same where a voice has no manners."""
        ...


class ToneVoice:
    """A burst for each word.

    A frame holds whole waves of the pitch, so all frames of a voice are the same bytes.
    """

    def __init__(self, hertz: int = 250) -> None:
        self._loud = encode(tone(round(hertz / 50) * 50, FRAME_BYTES / SAMPLE_RATE_HZ))

    def speak(self, text: str) -> VoiceClip:
        return _burst(self._loud, text)

    def adapt(self, manner: SpeakingManner, language: str) -> "ToneVoice":
        return self


@lru_cache(maxsize=4096)
def _burst(loud: bytes, text: str) -> VoiceClip:
    """A sound for each word, as long as the word, with pauses in between."""
    sound = bytearray()
    words: list[tuple[int, str]] = []
    for word in text.split():
        if words:
            sound += SILENCE * GAP_FRAMES
        words.append((len(sound), word))
        sound += loud * min(MAX_WORD_FRAMES, max(MIN_WORD_FRAMES, 2 * len(word) + 6))
    return VoiceClip(bytes(sound), tuple(words))


class EspeakVoice:
    """Real words from espeak-ng, which is started once for each new sentence."""

    def __init__(
        self,
        *command: str,
        language: str = "en",
        words_per_minute: int = 165,
        pitch: int = 50,
    ) -> None:
        self._espeak = Espeak(command, language, words_per_minute, pitch)
        self.speak = cache(self._speak)

    def adapt(self, manner: SpeakingManner, language: str) -> "EspeakVoice":
        return _adapted(self._espeak.command, manner, manner.accent or language)

    def _speak(self, text: str) -> VoiceClip:
        try:
            sound = self._espeak.speak(text)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            reason = f"espeak-ng could not speak ({type(error).__name__})"
            raise LineFailed(f"{reason}; `--voice tones` needs no program") from None
        return _spread_words(_trim(sound), text)


@cache
def _adapted(
    command: tuple[str, ...], manner: SpeakingManner, language: str
) -> EspeakVoice:
    """One for all calls that sound alike: each keeps what it has said."""
    return EspeakVoice(
        *command,
        language=language,
        words_per_minute=manner.words_per_minute,
        pitch=manner.pitch,
    )


def _trim(sound: bytes) -> bytes:
    """Without the silence that voices leave before and after the words."""
    heard = [
        at for at, sample in enumerate(sound) if LOUDNESS[sample] > MIN_AUDIBLE_LEVEL
    ]
    return sound[heard[0] : heard[-1] + 1] if heard else sound


def _spread_words(sound: bytes, text: str) -> VoiceClip:
    """A clip whose words are placed by their number of letters."""
    words = text.split()
    total = sum(len(word) + 1 for word in words) or 1
    placed, passed = [], 0
    for word in words:
        placed.append((len(sound) * passed // total, word))
        passed += len(word) + 1
    return VoiceClip(sound, tuple(placed))


def read_clip(path: Path, text: str) -> VoiceClip:
    try:
        return _spread_words(_trim(read_wav(path)[0]), text)
    except (OSError, ValueError) as error:
        raise LineFailed(f"{path}: {error}") from None


@cache
def press_keys(digits: str) -> VoiceClip:
    """Key tones: a tenth of a second each, and a tenth between."""
    sound = bytearray()
    for digit in digits:
        low, high = _KEYS[digit]
        sound += encode(tone(low, 0.1, 8000, high)) + b"\xff" * (SAMPLE_RATE_HZ // 10)
    return VoiceClip(bytes(sound))


def choose_voice(wanted: str, *, for_agent: bool = False) -> CallerVoice:
    """`espeak`, `tones`, or empty for the best there is."""
    command = find_espeak() if wanted in ("", "espeak") else None
    if command:
        return EspeakVoice(*command, pitch=35 if for_agent else 60)
    if wanted == "espeak":
        raise LineFailed(
            "espeak-ng is not installed; install aftercall[speech], or use `--voice tones`, "
            "which needs nothing"
        )
    return ToneVoice(350 if for_agent else 250)


class LineQualityFilter:
    """Noise, loss and volume on one direction of one call, drawn from a seed."""

    def __init__(self, line: LineQuality, noise: LineNoise, seed: int) -> None:
        self._line = line
        self._gain = 10 ** (line.volume_db / 20)
        self._random = random.Random(seed)
        self._noise = _noise_frames(noise.kind, noise.snr_db, seed)
        self._at = 0
        self._losing = 0
        self._held: deque[bytes] = deque()
        self._stalled = 0
        self.lost_s: list[float] = []
        self.is_clean = not self._noise and line == LineQuality()

    def apply(self, frame: bytes, at_s: float) -> bytes:
        """The frame as it arrives; a lost one is silence, and the loss of speech is noted."""
        if self.is_clean:
            return frame
        if self._is_lost():
            if cached_loudness(frame) > 0:
                self.lost_s.append(at_s)
            return SILENCE
        frame = self._delay(frame)
        noise = self._noise[self._at % len(self._noise)] if self._noise else None
        self._at += 1
        if noise is None and (self._gain == 1 or frame == SILENCE):
            return frame
        return _mix(frame, self._gain, noise)

    def _delay(self, frame: bytes) -> bytes:
        """Frames in order, some late: a gap in the sound, which the next silence takes up."""
        limit = self._line.jitter_ms // round(1000 * FRAME_BYTES / SAMPLE_RATE_HZ)
        if not limit:
            return frame
        if frame != SILENCE or not self._held:
            self._held.append(frame)
        if not self._stalled and self._random.random() < JITTER_SHARE:
            self._stalled = self._random.randint(1, limit)
        if self._stalled and len(self._held) <= limit:
            self._stalled -= 1
            return SILENCE
        self._stalled = 0
        return self._held.popleft()

    def find_arrived_words(self, clip: VoiceClip, start_s: float) -> str:
        """The words of which more than half arrived."""
        lost = [
            round((at_s - start_s) * SAMPLE_RATE_HZ)
            for at_s in self.lost_s
            if at_s >= start_s - FRAME_BYTES / SAMPLE_RATE_HZ / 2
        ]
        ends = [*(at for at, _ in clip.words[1:]), len(clip.sound)]
        arrived = []
        for (at, word), end in zip(clip.words, ends, strict=True):
            gone = sum(FRAME_BYTES for place in lost if at - FRAME_BYTES < place < end)
            if gone * 2 < end - at:
                arrived.append(word)
        return " ".join(arrived)

    def _is_lost(self) -> bool:
        if self._losing:
            self._losing -= 1
            return True
        if (
            self._line.loss
            and self._random.random() < self._line.loss / self._line.burst
        ):
            self._losing = self._line.burst - 1
            return True
        return False


@lru_cache(maxsize=20_000)
def _mix(frame: bytes, gain: float, noise: bytes | None) -> bytes:
    """Cached: tone voices and looped noise meet in the same pairs again and again."""
    behind = array("h", noise or bytes(2 * FRAME_BYTES))
    pairs = zip(decode(frame), behind, strict=False)
    return encode(array("h", (_clamp(near * gain + far) for near, far in pairs)))


def _clamp(sample: float) -> int:
    return max(-MAX_SAMPLE, min(MAX_SAMPLE, int(sample)))


@cache
def _noise_frames(kind: str, snr_db: float, seed: int) -> tuple[bytes, ...]:
    """Three seconds of noise, played in a loop."""
    if kind == "none":
        return ()
    draw = random.Random(f"{kind}/{seed}")
    size = SPEECH_LEVEL / 10 ** (snr_db / 20) * 1.57
    samples = [
        _noise_sample(kind, at, draw) for at in range(NOISE_FRAMES * FRAME_BYTES)
    ]
    mean = sum(abs(sample) for sample in samples) / len(samples) or 1.0
    scaled = array("h", (_clamp(sample / mean * size * 0.64) for sample in samples))
    starts = range(0, len(scaled), FRAME_BYTES)
    return tuple(scaled[at : at + FRAME_BYTES].tobytes() for at in starts)


def _noise_sample(kind: str, at: int, draw: random.Random) -> float:
    """Hum of the mains, three voices, a street that swells, or plain noise."""
    t = at / SAMPLE_RATE_HZ
    if kind == "hum":
        hum = math.sin(2 * math.pi * 50 * t) + 0.4 * math.sin(2 * math.pi * 150 * t)
        return hum + 0.05 * draw.gauss(0, 1)
    if kind == "babble":
        voices = ((180, 9), (240, 11), (320, 7))
        return sum(
            math.sin(2 * math.pi * pitch * t) * (0.6 + 0.4 * math.sin(pace * t))
            for pitch, pace in voices
        )
    if kind == "street":
        return draw.gauss(0, 1) * (0.5 + 0.5 * math.sin(2 * math.pi * 0.3 * t) ** 2)
    return draw.gauss(0, 1)
