"""Voices: words in, sound out.

espeak-ng where it is installed; else bursts of tone that are as long as the words would be.

Tones are no speech, but they have what timing needs: an onset, a length, an end.
"""

import subprocess
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
    encode,
    read_wav,
    tone,
)

WORD_FRAMES = (8, 26)  # the shortest and the longest word, in frames of 20 ms
GAP_FRAMES = 3
MIN_AUDIBLE_LEVEL = 200
_KEYS = {
    "1": (697, 1209),
    "2": (697, 1336),
    "3": (697, 1477),
    "A": (697, 1633),
    "4": (770, 1209),
    "5": (770, 1336),
    "6": (770, 1477),
    "B": (770, 1633),
    "7": (852, 1209),
    "8": (852, 1336),
    "9": (852, 1477),
    "C": (852, 1633),
    "*": (941, 1209),
    "0": (941, 1336),
    "#": (941, 1477),
    "D": (941, 1633),
}


@dataclass(frozen=True)
class VoiceClip:
    """Sound, and the words in it, each with the sample at which it begins."""

    sound: bytes
    words: tuple[tuple[int, str], ...] = ()

    @property
    def text(self) -> str:
        return " ".join(word for _, word in self.words)

    @property
    def seconds(self) -> float:
        return len(self.sound) / SAMPLE_RATE_HZ

    def delayed(self, seconds: float) -> "VoiceClip":
        """The same after this much silence, to the sample."""
        lead = max(0, round(seconds * SAMPLE_RATE_HZ))
        return (
            VoiceClip(
                b"\xff" * lead + self.sound, tuple((at + lead, word) for at, word in self.words)
            )
            if lead
            else self
        )


class CallerVoice(Protocol):
    def speak(self, text: str) -> VoiceClip: ...


class ToneVoice:
    """A burst for each word.

    The pitch makes whole waves in a frame, so that all frames of a voice are the same bytes.
    """

    def __init__(self, hertz: int = 250) -> None:
        self._loud = encode(tone(round(hertz / 50) * 50, FRAME_BYTES / SAMPLE_RATE_HZ))

    def speak(self, text: str) -> VoiceClip:
        return _burst(self._loud, text)


@lru_cache(maxsize=4096)
def _burst(loud: bytes, text: str) -> VoiceClip:
    sound = bytearray()
    words: list[tuple[int, str]] = []
    for word in text.split():
        if words:
            sound += SILENCE * GAP_FRAMES
        words.append((len(sound), word))
        sound += loud * min(WORD_FRAMES[1], max(WORD_FRAMES[0], 2 * len(word) + 6))
    return VoiceClip(bytes(sound), tuple(words))


class EspeakVoice:
    """Real words from espeak-ng, which is started once for each new sentence."""

    def __init__(self, *command: str, language: str = "en", pitch: int = 50) -> None:
        self._espeak = Espeak(command, language, pitch=pitch)
        self._speak = cache(self._run)

    def speak(self, text: str) -> VoiceClip:
        return self._speak(text)

    def _run(self, text: str) -> VoiceClip:
        try:
            sound = self._espeak.speak(text)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise LineFailed(
                f"espeak-ng could not speak ({type(error).__name__}); `--voice tones` needs "
                "no program"
            ) from None
        return spread_words(trim(sound), text)


def trim(sound: bytes) -> bytes:
    """Without the silence that voices leave before and after: what is said ends when nothing is
    heard any more.
    """
    heard = [at for at, sample in enumerate(sound) if LOUDNESS[sample] > MIN_AUDIBLE_LEVEL]
    return sound[heard[0] : heard[-1] + 1] if heard else sound


def spread_words(sound: bytes, text: str) -> VoiceClip:
    """A clip whose words are placed by their letters: near enough to say what was heard of it."""
    words = text.split()
    total = sum(len(word) + 1 for word in words) or 1
    placed, passed = [], 0
    for word in words:
        placed.append((len(sound) * passed // total, word))
        passed += len(word) + 1
    return VoiceClip(sound, tuple(placed))


def read_clip(path: Path, text: str) -> VoiceClip:
    try:
        return spread_words(trim(read_wav(path)[0]), text)
    except (OSError, ValueError) as error:
        raise LineFailed(f"{path}: {error}") from None


@cache
def press_keys(digits: str) -> VoiceClip:
    """Keys as they sound: a tenth of a second each, and a tenth between."""
    sound = bytearray()
    for digit in digits:
        low, high = _KEYS[digit]
        sound += encode(tone(low, 0.1, 8000, high)) + b"\xff" * (SAMPLE_RATE_HZ // 10)
    return VoiceClip(bytes(sound))


def choose_voice(wanted: str, language: str = "en", *, for_agent: bool = False) -> CallerVoice:
    """`espeak`, `tones`, or empty for the best there is."""
    command = find_espeak() if wanted in ("", "espeak") else None
    if command:
        return EspeakVoice(*command, language=language, pitch=35 if for_agent else 60)
    if wanted == "espeak":
        raise LineFailed(
            "espeak-ng is not installed; install aftercall[speech], or `--voice tones`, which "
            "needs nothing"
        )
    return ToneVoice(350 if for_agent else 250)
