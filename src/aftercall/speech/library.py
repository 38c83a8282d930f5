"""espeak-ng's library as a program: `python -m aftercall.speech.library`.

It takes the options of espeak-ng's own program that we use.
"""

import argparse
import ctypes
import sys
import wave
from importlib import import_module
from typing import Any

SYNCHRONOUS, NO_EXIT = 2, 0x8000
RATE_PARAMETER, PITCH_PARAMETER = 1, 3
BY_CHARACTER, UTF8 = 1, 1
_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


class _VoiceWanted(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_char_p),
        ("identifier", ctypes.c_char_p),
        ("gender", ctypes.c_ubyte),
        ("age", ctypes.c_ubyte),
        ("variant", ctypes.c_ubyte),
        ("reserved", ctypes.c_ubyte),
        ("score", ctypes.c_int),
        ("spare", ctypes.c_void_p),
    )


def speak(
    text: str, language: str, words_per_minute: int, pitch: int
) -> tuple[bytes, int]:
    """16-bit samples and their rate. Raises ValueError when the library fails."""
    loader: Any = import_module("espeakng_loader")
    library = ctypes.CDLL(loader.get_library_path())
    rate: int = library.espeak_Initialize(
        SYNCHRONOUS, 0, str(loader.get_data_path()).encode(), NO_EXIT
    )
    if rate <= 0:
        raise ValueError("espeak-ng's library does not start")
    samples = bytearray()

    def collect(sound: Any, count: int, _: Any) -> int:
        if sound and count:
            samples.extend(ctypes.string_at(sound, 2 * count))
        return 0

    callback = _Callback(collect)  # held here: the library keeps no reference
    library.espeak_SetSynthCallback(callback)
    if library.espeak_SetVoiceByName(language.encode()) and _choose(library, language):
        raise ValueError("espeak-ng has no such voice")
    library.espeak_SetParameter(RATE_PARAMETER, words_per_minute, 0)
    library.espeak_SetParameter(PITCH_PARAMETER, pitch, 0)
    words = text.encode()
    if library.espeak_Synth(
        words, ctypes.c_size_t(len(words) + 1), 0, BY_CHARACTER, 0, UTF8, None, None
    ):
        raise ValueError("espeak-ng could not speak")
    library.espeak_Synchronize()
    return bytes(samples), rate


def _choose(library: Any, language: str) -> int:
    """Choose a voice by language, when none has this name."""
    code: int = library.espeak_SetVoiceByProperties(
        ctypes.byref(_VoiceWanted(languages=language.encode()))
    )
    return code


def main() -> None:
    options = argparse.ArgumentParser(description="espeak-ng's library as a program")
    options.add_argument("-v", dest="language", default="en")
    options.add_argument("-s", dest="words_per_minute", type=int, default=165)
    options.add_argument("-p", dest="pitch", type=int, default=50)
    options.add_argument("--stdin", action="store_true", required=True)
    options.add_argument("--stdout", action="store_true", required=True)
    wanted = options.parse_args()
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    samples, rate = speak(text, wanted.language, wanted.words_per_minute, wanted.pitch)
    with wave.open(sys.stdout.buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.setnframes(len(samples) // 2)
        file.writeframes(samples)


if __name__ == "__main__":
    main()
