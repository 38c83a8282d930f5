"""The child process of a recogniser or synthesiser: requests on stdin, answers on stdout.

A request is its length in four bytes and its body. An answer is one byte (1: done), its length
and its body. The process ends with its input, so it never outlives its parent. Output of
libraries is dropped: it may hold what was spoken.

`python -m aftercall.speech.child espeak` stands in for the program espeak-ng where only its
library is installed.
"""

import argparse
import ctypes
import os
import signal
import sys
import wave
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

from aftercall.speech.kit import Espeak, find_espeak
from aftercall.speech.sound import MULAW_TO_LINEAR, SAMPLE_RATE_HZ

SYNCHRONOUS, NO_EXIT = 2, 0x8000
RATE_PARAMETER, PITCH_PARAMETER = 1, 3
BY_CHARACTER, UTF8 = 1, 1
NICENESS = 5  # the process with the audio of live calls goes first
Work = Callable[[bytes], bytes]
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


def run_espeak(arguments: list[str]) -> None:
    """espeak-ng's library as a program, with the options of the real one that we use."""
    options = argparse.ArgumentParser(description="espeak-ng's library as a program")
    options.add_argument("-v", dest="language", default="en")
    options.add_argument("-s", dest="words_per_minute", type=int, default=165)
    options.add_argument("-p", dest="pitch", type=int, default=50)
    options.add_argument("--stdin", action="store_true", required=True)
    options.add_argument("--stdout", action="store_true", required=True)
    wanted = options.parse_args(arguments)
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    samples, rate = speak(text, wanted.language, wanted.words_per_minute, wanted.pitch)
    with wave.open(sys.stdout.buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.setnframes(len(samples) // 2)
        file.writeframes(samples)


def open_recogniser() -> Work:
    """Moonshine's smallest model of English, which is part of its wheel."""
    os.nice(NICENESS)
    numpy: Any = import_module("numpy")
    moonshine: Any = import_module("moonshine_voice.transcriber")
    model = import_module("moonshine_voice.utils").get_model_path("tiny-en")
    recogniser = moonshine.Transcriber(model, moonshine.ModelArch.TINY)
    scale = (
        numpy.frombuffer(MULAW_TO_LINEAR, dtype=numpy.int16).astype(numpy.float32)
        / 32_768
    )

    def hear(sound: bytes) -> bytes:
        samples = scale[numpy.frombuffer(sound, dtype=numpy.uint8)]
        lines = recogniser.transcribe_without_streaming(
            samples.tolist(), SAMPLE_RATE_HZ
        ).lines
        return " ".join(
            line.text.strip() for line in lines if line.text.strip()
        ).encode()

    return hear


def open_synthesiser(voice: str = "en-us") -> Work:
    command = find_espeak()
    if command is None:
        raise LookupError("espeak-ng is not installed")
    espeak = Espeak(command, voice, words_per_minute=160, pitch=45)
    return lambda text: espeak.speak(text.decode())


OPENERS: dict[str, Callable[..., Work]] = {
    "recogniser": open_recogniser,
    "synthesiser": open_synthesiser,
}


def serve(work: Work, requests: BinaryIO, answers: BinaryIO) -> None:
    _write_answer(answers, True, b"")
    while head := requests.read(4):
        body = requests.read(int.from_bytes(head))
        try:
            answer = work(body)
        except Exception as error:  # noqa: BLE001 - the edge of a process
            _write_answer(answers, False, type(error).__name__.encode())
        else:
            _write_answer(answers, True, answer)


def _write_answer(answers: BinaryIO, is_done: bool, body: bytes) -> None:
    answers.write(is_done.to_bytes() + len(body).to_bytes(4) + body)
    answers.flush()


def main() -> None:
    kind, *options = sys.argv[1:]
    if kind == "espeak":
        run_espeak(options)
        return
    # Ctrl-C hits the group; the input ends us
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(OPENERS[kind](*options), sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
