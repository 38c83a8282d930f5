"""How a caller in the lab sounds on a streamed call: the lab's own speech, which its engines
understand; espeak-ng; or tones.
"""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Literal, get_args

from aftercall.errors import EngineLost, RefusedInput
from aftercall.lab.speech import utter
from aftercall.speech.kit import Espeak, LocalRecogniser, find_espeak
from aftercall.speech.sound import FRAME_BYTES, SAMPLE_RATE_HZ, encode, tone

VoiceName = Literal["words", "espeak", "tones"]
VOICES: tuple[str, ...] = get_args(VoiceName)
ESPEAK_VOICE = "en-us+m7"  # of its voices the one that recognisers make out best
BURST_S, GAP = 0.3, b"\xff" * 3 * FRAME_BYTES

Speak = Callable[[str], Awaitable[bytes]]


def make_voice(name: VoiceName) -> Speak:
    if name == "words":
        return _speak_words
    if name == "tones":
        return _speak_tones
    command = find_espeak()
    if command is None:
        raise RefusedInput(
            "voice",
            "espeak-ng is not installed; install aftercall[speech], or choose words or tones",
        )
    espeak = Espeak(command, ESPEAK_VOICE, words_per_minute=130, pitch=60)
    return lambda text: asyncio.to_thread(espeak.speak, text)


async def _speak_words(text: str) -> bytes:
    return utter(text)


async def _speak_tones(text: str) -> bytes:
    return GAP.join([encode(tone(250, BURST_S))] * len(text.split()))


class SoundTranscriber:
    def __init__(self) -> None:
        self._ear: LocalRecogniser | None = None

    async def transcribe(self, sound: bytes) -> str:
        if find_spec("moonshine_voice") is None:
            return _describe_length(sound)
        self._ear = self._ear or LocalRecogniser(1)
        try:
            return await self._ear.recognise(sound) or _describe_length(sound)
        except EngineLost:
            return _describe_length(sound)

    def close(self) -> None:
        if self._ear is not None:
            self._ear.close()


def _describe_length(sound: bytes) -> str:
    return f"({len(sound) / SAMPLE_RATE_HZ:.1f} s of sound)"
