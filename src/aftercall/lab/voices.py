"""How a caller in the lab sounds on a streamed call: the lab's own speech, which its engines understand; espeak-ng; or tones."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, get_args

from aftercall.errors import RefusedInput
from aftercall.lab.speech import utter
from aftercall.speech.espeak import Espeak, find_espeak
from aftercall.speech.sound import FRAME, encode, tone

VoiceName = Literal["words", "espeak", "tones"]
VOICES: tuple[str, ...] = get_args(VoiceName)
CLEAREST = "en-us+m7"  # of its voices the one that recognisers make out best
BURST_S, GAP = 0.3, b"\xff" * 3 * FRAME

Speak = Callable[[str], Awaitable[bytes]]


def make_voice(name: VoiceName) -> Speak:
    if name == "words":
        return _speak_words
    if name == "tones":
        return _speak_tones
    command = find_espeak()
    if command is None:
        raise RefusedInput("voice", "espeak-ng is not installed; install aftercall[speech], or choose words or tones")
    espeak = Espeak(command, CLEAREST, words_per_minute=130, pitch=60)
    return lambda text: asyncio.to_thread(espeak.speak, text)


async def _speak_words(text: str) -> bytes:
    return utter(text)


async def _speak_tones(text: str) -> bytes:
    return GAP.join([encode(tone(250, BURST_S))] * len(text.split()))
